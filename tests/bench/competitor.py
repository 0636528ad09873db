"""What the bench asks of a competitor, and whether its target holds what the source holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

from elasticsearch import Elasticsearch as Client
from pymysql.connections import Connection

from setl_embedded import Kafka, MariaDb
from tests.bench.report import SOURCE, TARGET, Taken
from tests.bench.servers import Target
from tests.bench.watching import DRIVER, PeakMemory, cpu_by_role
from tests.bench.workloads import SCHEMA, Shape, Workload, Written


@dataclass(frozen=True)
class Place:
    """Where a workload lies.

    Attributes:
        folder: for logs and data.
        source: the server in whose binlog it is.
        written: where in it.
        kafka: a broker that has it as DTS records too, if any competitor wants them.
        topic: its topic there, with one partition and nothing else.
        brokers: where the topic is read, see `tests.bench.fetching`.
    """

    folder: Path
    source: MariaDb
    written: Written
    kafka: Kafka | None = None
    topic: str = ""
    brokers: str = ""

    @property
    def limit(self) -> float:
        """Seconds after which a competitor counts as hanging."""
        return 180 + self.written.workload.size / 200


class Competitor(Protocol):
    """Applies a workload to a target.

    Attributes:
        name: for tables.
        source: binlog or kafka.
        target_options: how the target has to be started, if that is MariaDB.
    """

    @property
    def name(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def target_options(self) -> Sequence[str]: ...

    def why_not(self, target: str, workload: Workload) -> str:
        """Why it cannot take part, "" if it can; None of its reasons is a fault of its own."""
        ...

    def measure(self, place: Place, target: Target) -> Taken:
        """Apply everything, ready and connected before the time begins.

        Raises:
            RuntimeError: it failed, or hangs.
        """
        ...


class Meter:
    """Notes what a competitor's processes and the servers use from now on.

    Attributes:
        memory: enter it for as long as memory is to be sampled.
    """

    def __init__(self, pid: int | None, target: Target, source: int) -> None:
        """Begin.

        Args:
            pid: the competitor's process; None if it has none of its own.
            target: what it writes to.
            source: pid of the server from which it reads.
        """
        own = {} if pid is None else {DRIVER: pid}
        self._roots = {**own, TARGET: target.pid, SOURCE: source}
        self._before = cpu_by_role(self._roots)
        self.memory = PeakMemory(self._roots)

    def taken(self, seconds: float, start_seconds: float | None = None) -> Taken:
        """What was used until now."""
        after = cpu_by_role(self._roots)
        used = {role: spent - self._before.get(role, 0.0) for role, spent in after.items()}
        return Taken(seconds, start_seconds, used, dict(self.memory.peak))


_PAGE = 2_000
_SHOWN = 20


def differences(source: MariaDb, target: Target, workload: Workload) -> list[str]:
    """What is wrong with the target, in words; empty if nothing is."""
    if target.elasticsearch is None:
        return _table_differences(source, target.mysql, workload)
    with Client(target.elasticsearch.url, request_timeout=120) as client:
        found: list[str] = []
        for table in workload.tables:
            found += _index_differences(source, client, table, workload.shape)
        return found[:_SHOWN]


def _table_differences(source: MariaDb, target: MariaDb, workload: Workload) -> list[str]:
    found: list[str] = []
    with source.connect() as there, target.connect() as here:
        for table in workload.tables:
            for question in ("SELECT COUNT(*) FROM {}", "CHECKSUM TABLE {} EXTENDED"):
                asked = question.format(f"{SCHEMA}.`{table}`")
                wanted, held = _last(there, asked), _last(here, asked)
                if wanted != held:
                    found.append(f"{asked}: {wanted} at the source, {held} at the target")
    return found[:_SHOWN]


def _last(connection: Connection[Any], question: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(question)
        row = cursor.fetchone()
        return row[-1] if row else None


def _index_differences(source: MariaDb, client: Client, table: str, shape: Shape) -> list[str]:
    """Compares field by field; a decimal or time may be rendered in any sensible way."""
    client.indices.refresh(index=table)
    names = [column.name for column in shape.columns]
    with source.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*) FROM {SCHEMA}.`{table}`")
        wanted, held = cursor.fetchone()[0], int(client.count(index=table)["count"])
        if wanted != held:
            return [f"{table}: {held} documents for {wanted} rows"]
        found: list[str] = []
        cursor.execute(f"SELECT * FROM {SCHEMA}.`{table}` ORDER BY id")
        while rows := cursor.fetchmany(_PAGE):
            answer = client.mget(index=table, ids=[str(row[0]) for row in rows])
            for row, document in zip(rows, answer["docs"], strict=True):
                if not document.get("found"):
                    found.append(f"{table}: no document {document['_id']}")
                elif wrong := _wrong_fields(names, row, document["_source"]):
                    found.append(f"{table}: document {document['_id']}: {', '.join(wrong)}")
    return found


def _wrong_fields(names: list[str], row: tuple[Any, ...], document: dict[str, Any]) -> list[str]:
    return [
        name for name, value in zip(names, row, strict=True) if not _same(value, document.get(name))
    ]


def _same(value: Any, field: Any) -> bool:
    if value is None or field is None:
        return value is field
    if isinstance(value, (Decimal, float)):
        # The embedded server does not keep the last digit of a double.
        return abs(float(value) - float(field)) <= 1e-12 * max(1.0, abs(float(value)))
    if isinstance(value, datetime):
        shown = str(field).replace("T", " ").rstrip("Z")
        return shown.partition(".")[0] == f"{value:%Y-%m-%d %H:%M:%S}" and (
            float(f"0{shown[19:]}" if shown[19:] else 0) == value.microsecond / 1e6
        )
    return bool(value == field)
