"""Which workload in which size goes where, and one workload through all competitors in turns.

And what is asked of a competitor, and whether its target holds what the source holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

from elasticsearch import Elasticsearch as Client
from pymysql.connections import Connection
from rich.console import Console

from setl_embedded import Kafka, MariaDb
from tests.bench.fetching import limited
from tests.bench.relay import relayed
from tests.bench.report import SOURCE, TARGET, Result, Taken
from tests.bench.servers import Target, fresh_target, source_server
from tests.bench.watching import DRIVER, PeakMemory, cpu_by_role
from tests.bench.workloads import (
    SCHEMA,
    Shape,
    Workload,
    Written,
    big,
    inserts,
    many,
    mixed,
    updates,
    wide,
    write,
)


@dataclass(frozen=True)
class StartPoint:
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

    def measure(self, position: StartPoint, target: Target) -> Taken:
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


WORKLOADS: dict[str, Callable[[int], Workload]] = {
    "w1": inserts, "w2": updates, "w3": mixed, "wide": wide, "many": many, "big": big,
}  # fmt: skip
_CHANGES = {"w1": 200_000, "w2": 200_000, "w3": 200_000, "wide": 50_000, "many": 100_000,
            "big": 1_000_000}  # fmt: skip

# The embedded Elasticsearch overwrites a thousand documents a second, and stalls when it holds
# a million: by its own fault, and no subject of this measurement.
_CHANGES_SEARCH = {**_CHANGES, "w3": 20_000, "many": 20_000, "big": 200_000}
# It writes every last image of each ten thousand changes, setl fewer of them.
_CHANGES_PLAIN_SEARCH = {"w2": 20_000}


def sized(name: str, target: str, competitor: str, changes: int | None = None) -> Workload:
    """A workload in the size in which a competitor can do it in a few minutes.

    Args:
        name: of `WORKLOADS`.
        target: mysql or elasticsearch.
        competitor: its name.
        changes: at most so many row changes; None for the size that the workload usually has.
    """
    usual = (_CHANGES_SEARCH if target == "elasticsearch" else _CHANGES)[name]
    count = usual if changes is None else changes
    if target == "elasticsearch" and competitor in {"plain", "debezium"}:
        count = min(count, _CHANGES_PLAIN_SEARCH.get(name, count))
    return WORKLOADS[name](count)


@dataclass(frozen=True)
class Case:
    """One workload into one target, by competitors who may do it in different sizes.

    Attributes:
        family: of the source, and of a target that is a database.
    """

    name: str
    target: str
    competitors: Sequence[Competitor]
    changes: int | None = None
    rounds: int = 1
    family: str = "mariadb"

    def groups(self) -> dict[Workload, list[Competitor]]:
        """Who does the workload in which size."""
        groups: dict[Workload, list[Competitor]] = {}
        for competitor in self.competitors:
            workload = sized(self.name, self.target, competitor.name, self.changes)
            groups.setdefault(workload, []).append(competitor)
        return groups


def run(case: Case, folder: Path, console: Console) -> Iterator[Result]:
    """One result for each competitor, also for one that cannot take part."""
    for number, (workload, competitors) in enumerate(case.groups().items()):
        able: list[_Entrant] = []
        for competitor in competitors:
            entrant = _Entrant(case.target, workload, competitor, case.family)
            if why := competitor.why_not(case.target, workload):
                if why == "not installed":
                    yield entrant.result(missing=why)
            else:
                able.append(entrant)
        if able:
            with ExitStack() as stack:
                server = stack.enter_context(source_server(folder / f"{number}", case.family))
                position = _written(workload, folder / f"{number}", able, server, stack, console)
                for entrant in able * case.rounds:
                    entrant.take_turn(position, console)
            yield from (entrant.result() for entrant in able)


def _written(
    workload: Workload, folder: Path, able: list[_Entrant], source: MariaDb, stack: ExitStack,
    console: Console,
) -> StartPoint:  # fmt: skip
    console.print(f"{workload.name}: writing {workload.changes:,} changes")
    with source.connect() as connection:
        written = write(connection, workload)
    if all(entrant.competitor.source != "kafka" for entrant in able):
        return StartPoint(folder, source, written)
    kafka = stack.enter_context(Kafka(folder / "kafka"))
    topic = relayed(source, written, kafka)
    brokers = stack.enter_context(limited(kafka, topic))
    return StartPoint(folder, source, written, kafka, topic, brokers)


@dataclass
class _Entrant:
    """A competitor in one workload, and what it has done so far."""

    target: str
    workload: Workload
    competitor: Competitor
    family: str
    runs: list[Taken] = field(default_factory=list[Taken])
    wrong: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])

    def take_turn(self, position: StartPoint, console: Console) -> None:
        """Into a target of its own, whose contents are looked at afterwards."""
        options = self.competitor.target_options
        with fresh_target(
            position.folder, self.target, self.workload, options, self.family
        ) as target:
            try:
                taken = self.competitor.measure(position, target)
            except RuntimeError as error:
                self.failed.append(str(error))
                console.print(f"  {self.competitor.name}: {error}", markup=False)
                return
            self.runs.append(taken)
            wrong = differences(position.source, target, self.workload)
            self.wrong += wrong
        rate = self.workload.changes / taken.seconds
        console.print(
            f"  {self.competitor.name}: {taken.seconds:.1f} s, {rate:,.0f} a second"
            f"{', wrong contents' if wrong else ''}"
        )

    def result(self, missing: str = "") -> Result:
        """All of it."""
        return Result(
            self.workload.name, self.target, self.competitor.name, self.workload.changes,
            tuple(self.runs), tuple(self.wrong), tuple(self.failed), missing,
        )  # fmt: skip
