"""``python -m tests.bench.worker_steps``: what a Spark task spends on a row, step by step.

The events come from an embedded MariaDB, once; they are kept in a folder, and no server runs while
they are measured. Each load is cut into stretches, dealt out and merged as a batch of that size is,
and ends as the text of the statements that would be sent. Figures are CPU-µs for one row change
that was read, not for one row that is written, so that workloads with hot rows can be compared.
"""

from __future__ import annotations

import pickle
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.table import Table

from setl.channel.file import Pipeline
from setl.channel.routing import Router
from setl.codec.binlog.header import BinlogHeaderReader
from setl.codec.binlog.runs import MOST_EVENTS
from setl.garbage_collection import keep_what_is_loaded
from setl.model.change import TargetChanges
from setl.model.entry import Entry, EntryKind
from setl.model.position import BinlogPosition, document_version
from setl.model.schema import RowSchema
from setl.systems.mysql.catalog import read_table
from setl.systems.mysql.load.statements import Limits, TableWrites, plan_writes
from setl.transform.merging import merge
from setl.transform.share import Dealt, Share, by_buckets, packed
from setl.transform.work import TransformPlan, WorkItem, compact, project
from tests.bench.servers import source_server
from tests.bench.workloads import SCHEMA, Workload, inserts, mixed, updates, wide, write
from tests.unit.codec.binlog_server import raw_events

_ADDRESS = {"type": "mysql", "host": "source", "user": "nobody", "password": "none"}


class Load(NamedTuple):
    """What one load transforms: pickled stretches of work items, and how many rows are in them."""

    stretches: list[bytes]
    rows: int


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rows", default=40_000, show_default=True, help="Row changes in each workload.")
@click.option("--load", default=20_000, show_default=True, help="Row changes in one load.")
@click.option("--tasks", default=2, show_default=True, help="Stretches, and tasks that load.")
@click.option("--rounds", default=5, show_default=True, help="Best of so many.")
@click.option("--single", is_flag=True, help="One event an entry, without runs.")
@click.option("--events", "folder", type=click.Path(path_type=Path), help="Where events are kept.")
def main(rows: int, load: int, tasks: int, rounds: int, single: bool, folder: Path | None) -> None:
    """Measure Transform and the text of statements, without servers."""
    keep_what_is_loaded(collect_rarely=True)
    folder = folder or Path(tempfile.gettempdir()) / "setl-worker-steps"
    table = Table("CPU-µs a row", *_STEPS, "sum")
    for workload in (inserts(rows), updates(rows), mixed(rows), wide(rows // 5)):
        recorded = _recorded(folder, workload)
        loads = list(_loads(recorded, load, tasks, single=single))
        spent = [_measure(workload, recorded.tables, loads, tasks) for _ in range(rounds)]
        best = [min(s[step] for s in spent) / workload.changes * 1e6 for step in _STEPS]
        table.add_row(workload.name, *(f"{f:.2f}" for f in (*best, sum(best))))
    Console().print(table)


class Recorded(NamedTuple):
    """A workload's binlog events, from the FORMAT_DESCRIPTION on, and its tables."""

    events: list[bytes]
    tables: dict[str, RowSchema]


def _recorded(folder: Path, workload: Workload) -> Recorded:
    """What was recorded of a workload; recorded now if nothing was."""
    file = folder / f"{workload.name}-{workload.changes}"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(prefix="setl-bench-") as data,
            source_server(Path(data)) as source,
            source.connect() as connection,
        ):
            written = write(connection, workload)
            start, end = (BinlogPosition(*place) for place in (written.start, written.end))
            events = [event for event, _ in raw_events(source, start, end)]
            described = {t: read_table(connection, SCHEMA, t) for t in workload.tables}
        file.write_bytes(pickle.dumps((events, described)))
    return Recorded(*pickle.loads(file.read_bytes()))


def _loads(recorded: Recorded, size: int, tasks: int, *, single: bool) -> Iterator[Load]:
    entries = _entries(recorded.events, run_events=1 if single else MOST_EVENTS)
    at = 0
    while at < len(entries):
        rows, first = 0, at
        while at < len(entries) and rows < size:
            rows += entries[at].rows
            at += 1
        name = {e.table: (e.schema, e.table) for e in entries[first:at]}
        part = [_item(entry, name[entry.table]) for entry in entries[first:at]]
        limit = -(-len(part) // tasks)
        cut = [part[n : n + limit] for n in range(0, len(part), limit)]
        yield Load([pickle.dumps(stretch, protocol=5) for stretch in cut], rows)


def _entries(events: list[bytes], run_events: int) -> list[Entry]:
    reader = BinlogHeaderReader(BinlogPosition("binlog.000001", 4), run_events=run_events)
    entries = [entry for event in events for entry in reader.read(event, checksum=True)]
    return [entry for entry in entries if entry.kind is EntryKind.ROWS]


def _item(entry: Entry, name: tuple[str, str]) -> WorkItem:
    version = document_version(1, entry.position)
    return WorkItem((_route(entry.table),), version, entry.context, entry.payload, name)


def _route(table: str) -> int:
    return int(table.partition("_")[2] or 0)


# ---- steps

_STEPS = ("unpickle", "compact", "project", "deal", "pack", "unpack", "merge", "text")


class _Clock:
    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        started = time.process_time()
        yield
        self.spent[name] += time.process_time() - started


def _measure(
    workload: Workload, tables: dict[str, RowSchema], loads: list[Load], tasks: int
) -> dict[str, float]:
    clock, plan, writes = _Clock(), _plan(workload), _Writes(tables)
    for load in loads:
        received: dict[int, list[bytes]] = defaultdict(list)
        for stretch in load.stretches:
            for bucket, share in _dealt(clock, plan, stretch, tasks):
                received[bucket].append(share)
        for shares in received.values():
            _written(clock, writes, shares)
    return clock.spent


def _dealt(clock: _Clock, plan: TransformPlan, stretch: bytes, tasks: int) -> Dealt:
    """What `setl.transform.share.deal` does, step by step."""
    with clock.step("unpickle"):
        items = pickle.loads(stretch)
    with clock.step("compact"):
        compacted = compact(plan, items)
    with clock.step("project"):
        changes = project(compacted.survivors)
    with clock.step("deal"):
        routes = [route for route, _, _ in compacted.survivors]
        by_bucket = by_buckets(plan, zip(routes, changes, strict=True), tasks)
    with clock.step("pack"):
        return packed(by_bucket, compacted.rows, 0, 0.0)


def _written(clock: _Clock, writes: _Writes, shares: list[bytes]) -> None:
    with clock.step("unpack"):
        received: list[Share] = [pickle.loads(share) for share in shares]
    with clock.step("merge"):
        merged = merge([part for share in received for part in share.changes])
    with clock.step("text"):
        for change in merged:
            statements = writes.of(change)
            for text, _ in statements.deletes.divided(change.deletes, Limits()):
                assert text
            for text, _ in statements.inserts.divided(change.upserts, Limits()):
                assert text


class _Writes:
    def __init__(self, tables: dict[str, RowSchema]) -> None:
        self._tables = tables
        self._known: dict[object, TableWrites] = {}

    def of(self, change: TargetChanges) -> TableWrites:
        shape = (change.target, change.columns)
        known = self._known.get(shape)
        if known is None:
            described = self._tables[change.target[1]]
            known = self._known[shape] = plan_writes(change.columns, change.key, described)
        return known


def _plan(workload: Workload) -> TransformPlan:
    pipeline = Pipeline.model_validate(
        {
            "name": "bench",
            "source": _ADDRESS,
            "target": {**_ADDRESS, "host": "target"},
            "tables": [{"from": f"{SCHEMA}.{table}"} for table in workload.tables],
        }
    )
    return TransformPlan("binlog", Router(pipeline))


if __name__ == "__main__":
    main()
