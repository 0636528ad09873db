"""``python -m tests.bench.relay``: a binlog onto Kafka, setl's relay beside a plain script.

The script is what a person would write: `mysql-replication` reads, `fastavro` writes each row as a
DTS record, `kafka-python` sends it with ``acks=all``. Both get the same binlog, written before, and
both must leave one record for each row change. Only the ratio means much.

Other measurements put a workload on Kafka with `relayed`, before anything is measured.
"""

from __future__ import annotations

import io
import threading
import time
from typing import Any
from uuid import uuid4

import click
import fastavro
from fastavro import parse_schema
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition
from rich.console import Console
from rich.table import Table

from setl.channel.reading import parse_channel
from setl.clock import SystemClock
from setl.codec.dts.wire import published_schema, read_front
from setl.model.leadership import Leadership
from setl.run.measured.progress import Progress
from setl.run.relay.assembly import build_relay_run
from setl_embedded import Kafka, MariaDb
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.bench.plain_script import Settings, events
from tests.bench.servers import mysql_settings, scratch_folder, source_server
from tests.bench.watching import wait_for
from tests.bench.workloads import SCHEMA, Written, inserts, updates, write

_ROWS = frozenset({"INSERT", "UPDATE", "DELETE"})
_NAMESPACE = "com.alibaba.dts.formats.avro"
_LOOK_SECONDS = 0.01


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rows", default=100_000, show_default=True, help="Row changes in each workload.")
@click.option("--rounds", default=1, show_default=True, help="Runs of each, in turns; best counts.")
def main(rows: int, rounds: int) -> None:
    """Measure how fast a binlog gets to Kafka."""
    table = Table("workload", "plain script", "setl relay", "ratio")
    with scratch_folder("relay") as folder, Kafka(folder / "kafka") as kafka:
        for workload in (inserts(rows), updates(rows)):
            with source_server(folder / workload.name) as source:
                with source.connect() as connection:
                    written = write(connection, workload)
                rates = _in_turns(source, written, kafka, rounds)
            plain, relay = rates["plain"], rates["relay"]
            table.add_row(
                workload.name, f"{plain:,.0f}/s", f"{relay:,.0f}/s", f"{relay / plain:.1f}"
            )
    Console().print(table)


def _in_turns(source: MariaDb, written: Written, kafka: Kafka, rounds: int) -> dict[str, float]:
    best = {"plain": 0.0, "relay": 0.0}
    for number in range(rounds):
        for name, measure in (("plain", _plain), ("relay", relay)):
            topic = f"{name}-{written.workload.name}-{number}"
            seconds = measure(source, written, kafka, topic)
            found = _rows_in(kafka, topic)
            if found != written.workload.changes:
                raise RuntimeError(f"{topic}: {found} rows of {written.workload.changes}")
            best[name] = max(best[name], written.workload.changes / seconds)
    return best


def _plain(source: MariaDb, written: Written, kafka: Kafka, topic: str) -> float:
    settings = Settings(
        source=mysql_settings(source),
        start=(written.start.file, written.start.offset),
        end=(written.end.file, written.end.offset),
        schema=SCHEMA,
        tables=list(written.workload.tables),
        key="id",
        target={},
    )
    schema = _writer_schema()
    producer = KafkaProducer(bootstrap_servers=kafka.brokers, acks="all", linger_ms=10)
    began = time.perf_counter()
    for event in events(settings):
        for row in getattr(event, "rows", ()):
            out = io.BytesIO()
            fastavro.schemaless_writer(out, schema, _datum(event, row))
            producer.send(topic, out.getvalue(), partition=0)
    producer.flush()
    seconds = time.perf_counter() - began
    producer.close()
    return seconds


def _writer_schema() -> Any:
    known: dict[str, Any] = {}
    *named, record = published_schema()
    for declared in named:
        parse_schema(declared, named_schemas=known)
    return parse_schema(record, named_schemas=known)


def _datum(event: Any, row: dict[str, Any]) -> dict[str, Any]:
    kind = type(event).__name__
    before = row.get("before_values") or (row.get("values") if kind.startswith("Delete") else None)
    after = row.get("after_values") or (row.get("values") if kind.startswith("Write") else None)
    names = list(after or before or {})
    operation = {"W": "INSERT", "U": "UPDATE", "D": "DELETE"}[kind[0]]
    return {
        "version": 0,
        "id": 1,
        "sourceTimestamp": event.timestamp,
        "sourcePosition": f"{event.packet.log_pos}@1",
        "safeSourcePosition": "4@1",
        "sourceTxid": "0",
        "source": {"sourceType": "MySQL", "version": "10.11"},
        "operation": operation,
        "objectName": f"{SCHEMA}.{event.table}",
        "processTimestamps": None,
        "tags": {"pk_uk_info": '{"PRIMARY":["id"]}'},
        "fields": [{"name": name, "dataTypeNumber": 253} for name in names],
        "beforeImages": _images(before),
        "afterImages": _images(after),
        "bornTimestamp": event.timestamp,
    }


def _images(row: dict[str, Any] | None) -> list[Any] | None:
    if row is None:
        return None
    charset = {"charset": "utf8mb4"}
    return [
        None if v is None else (f"{_NAMESPACE}.Character", {**charset, "value": str(v).encode()})
        for v in row.values()
    ]


def _rows_in(kafka: Kafka, topic: str) -> int:
    consumer = KafkaConsumer(
        bootstrap_servers=kafka.brokers, isolation_level="read_committed", check_crcs=False
    )
    place = TopicPartition(topic, 0)
    end, count = consumer.end_offsets([place])[place], 0
    consumer.assign([place])
    consumer.seek_to_beginning(place)
    while (consumer.position(place) or 0) < end:
        for record in consumer.poll(500, max_records=10_000).get(place, ()):
            count += read_front(record.value)["operation"] in _ROWS
    consumer.close(autocommit=False)
    return count


def relayed(source: MariaDb, written: Written, kafka: Kafka) -> str:
    """Put what was written into a topic of its own, with one partition; returns its name.

    Raises:
        RuntimeError: the relay fails or hangs.
    """
    topic = f"{written.workload.name}-{uuid4().hex[:8]}"
    relay(source, written, kafka, topic)
    return topic


def relay(source: MariaDb, written: Written, kafka: Kafka, topic: str) -> float:
    """Put what was written into a topic, see `relayed`; returns the seconds that it took."""
    pipeline = {
        "name": "r",
        "source": {"type": "mysql", **mysql_settings(source), "start": written.start._asdict(),
                   "heartbeat": 0},
        "target": {"type": "dts", "brokers": [kafka.brokers], "topic": topic},
        "tables": [{"from": f"{SCHEMA}.*"}],
    }  # fmt: skip
    file = parse_channel({"channel": topic, "pipelines": [pipeline]})
    arbiter, clock = MemoryArbiter(MemoryCluster()), SystemClock()
    arbiter.channels.put(topic, {})
    progress = Progress(clock)
    run = build_relay_run(
        file, Leadership(topic, "r", "n1", 1), arbiter=arbiter, progress=progress, clock=clock
    )
    thread = threading.Thread(target=run.run, daemon=True)
    began = time.perf_counter()
    thread.start()

    def done() -> bool:
        figures = progress.figures()
        if not thread.is_alive():
            raise RuntimeError(f"the relay ended: {figures.error}")
        return figures.rows_total >= written.workload.changes

    try:
        wait_for(done, 60 + written.workload.changes / 500, "the relay is not done",
                 every=_LOOK_SECONDS)  # fmt: skip
        return time.perf_counter() - began
    finally:
        run.stop()
        thread.join(30)


if __name__ == "__main__":
    main()
