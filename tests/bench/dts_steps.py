"""``python -m tests.bench.dts_steps``: what a DTS record costs on its way, step by step.

The records are those that a relay writes of the workloads W1 (inserts), W2 (updates, both images)
and W3 (small transactions over three tables), as librdkafka gives them out; no server runs.
Figures are CPU-µs for one row change, and are for comparing within one run: the best of several
rounds. `sort` makes work items of entries; `compact` is what a task does; `decode` is no step of
its own, but what it costs to decode every image.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from random import Random
from typing import Any, Final, NamedTuple

import click
from rich.console import Console
from rich.table import Table

from setl.channel.file import DtsSource, Pipeline
from setl.channel.routing import Router
from setl.clock import SystemClock
from setl.codec.binlog.table_map import ColumnType, WireColumn
from setl.codec.dts.record_writer import DtsRecordWriter, TransactionFacts
from setl.codec.dts.relayed import HEADER, LAST, RelayPlace, RelayTransaction
from setl.codec.dts.rows import DtsRowCodec
from setl.codec.dts.table_form import TableForm
from setl.extract.extractor import RoutedRows
from setl.model.change import DecodedRows, Op, Row
from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry, EntryKind
from setl.model.position import BinlogPosition, KafkaOrigin, KafkaPosition
from setl.model.schema import Column, Kind, RowSchema
from setl.run.sorting import Sorting
from setl.select.batching import BatchAssembler, BatchSettings
from setl.systems.kafka.reader import Bounds
from setl.systems.kafka.source.subscription import DtsKafkaSource
from setl.transform.work import TransformPlan, WorkItem, compact

_TABLES: Final = 3  # of W3
_TIME: Final = "%Y-%m-%d %H:%M:%S.%f"
_LOAD: Final = 10_000  # rows that one task has of a load
_READ: Final = 4096  # records of one read, as Select asks for them
_WORDS: Final = ("blue", "größe", "käse", "紙", "paper", "🧀 cheese", "rope", "𝄞 music", "salt")
_COLUMNS: Final = (
    (Column("id", Kind.INTEGER), WireColumn(ColumnType.LONGLONG)),
    (Column("quantity", Kind.INTEGER), WireColumn(ColumnType.LONG)),
    (Column("name", Kind.TEXT), WireColumn(ColumnType.VARCHAR, 240)),
    (Column("price", Kind.DECIMAL, precision=12, scale=2), WireColumn(ColumnType.NEWDECIMAL, 12)),
    (Column("created", Kind.DATETIME), WireColumn(ColumnType.DATETIME2, 6)),
    (Column("coupon", Kind.TEXT), WireColumn(ColumnType.VARCHAR, 80)),
    (Column("note", Kind.TEXT), WireColumn(ColumnType.BLOB, 2)),
    (Column("score", Kind.FLOAT), WireColumn(ColumnType.DOUBLE, 8)),
)


class _Message:
    """A record as librdkafka has it."""

    def __init__(self, offset: int, value: bytes, headers: list[tuple[str, bytes]]) -> None:
        self._offset, self._value, self._headers = offset, value, headers

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return self._value

    def headers(self) -> list[tuple[str, bytes]]:
        return self._headers


class _Change(NamedTuple):
    """A change of one row; `table` is a number below `_TABLES`."""

    op: Op
    before: Row | None
    after: Row | None
    table: int = 0


class _Stream:
    """Records as a relay writes them."""

    def __init__(self, transaction_rows: int) -> None:
        columns, wires = tuple(c for c, _ in _COLUMNS), [wire for _, wire in _COLUMNS]
        self._forms = [
            TableForm(RowSchema("bench", f"t{n}", columns, (0,)), wires) for n in range(_TABLES)
        ]
        self._writer = DtsRecordWriter("10.11.6-MariaDB")
        self._size = transaction_rows
        self.records: list[_Message] = []

    def write(self, changes: list[_Change]) -> None:
        for number, first in enumerate(range(0, len(changes), self._size), 1):
            self._transaction(number, changes[first : first + self._size])

    def _transaction(self, number: int, changes: list[_Change]) -> None:
        begin = BinlogPosition("mariadb-bin.000001", number * 100_000)
        facts = TransactionFacts(begin, 1_790_000_000_000, f"0-1-{number}", 55, 9)
        place = RelayTransaction(1, begin.file, begin.offset, "1", 1, 1_700_000_000, facts.gtid)
        records = self._writer.transaction(facts)
        ident, seconds = (1 << 40) + begin.offset, 1_790_000_000
        self._append(records.begin(ident, seconds=seconds, position=begin), place, 0)
        for i, change in enumerate(changes, 1):
            form = self._forms[change.table]
            rows = DecodedRows(form.schema, change.op, [(change.before, change.after)])
            here = BinlogPosition(begin.file, begin.offset + 100 * i)
            made = records.rows(form, rows, first_id=ident + i, seconds=seconds, position=here)
            self._append(made[0], place, 100 * i)
        end = BinlogPosition(begin.file, begin.offset + 100 * len(changes) + 50)
        commit = records.commit(ident + len(changes), seconds=seconds, position=end)
        self._append(commit, place, LAST)

    def _append(self, value: bytes, transaction: RelayTransaction, ordinal: int) -> None:
        headers = [(HEADER, RelayPlace(transaction, ordinal).encoded())]
        offset = len(self.records)
        self.records.append(_Message(offset, value, headers))


def _row(random: Random, number: int) -> Row:
    return (
        number,
        random.randrange(-1000, 10**6),
        f"customer {random.randrange(10**6):06d} {random.choice(_WORDS)}",
        f"{random.randrange(10**7)}.{random.randrange(100):02d}",
        f"{datetime.fromtimestamp(1_790_000_000 + random.randrange(10**8) / 7, UTC):{_TIME}}",
        None if random.random() < 0.4 else f"C-{random.randrange(10**5)}",
        " ".join(random.choices(_WORDS, k=random.randrange(3, 12))),
        random.uniform(-1e6, 1e6),
    )


def _update(random: Random, rows: list[Row], table: int = 0) -> _Change:
    number = random.randrange(len(rows))
    before = rows[number]
    after = rows[number] = (*before[:3], *_row(random, 0)[3:])
    return _Change(Op.UPDATE, before, after, table)


def _mixed(random: Random, tables: list[list[Row]], number: int) -> _Change:
    table, choice = random.randrange(_TABLES), random.random()
    rows = tables[table]
    if choice < 0.6:
        return _update(random, rows, table)
    if choice < 0.85:
        rows.append(_row(random, number))
        return _Change(Op.INSERT, None, rows[-1], table)
    return _Change(Op.DELETE, rows.pop(random.randrange(len(rows))), None, table)


def _written(workload: str, count: int) -> list[list[_Message]]:
    """Records of the workload, in lists of one read."""
    random = Random(1)
    if workload == "w1":
        stream = _Stream(1_000)
        stream.write([_Change(Op.INSERT, None, _row(random, n)) for n in range(count)])
    elif workload == "w2":
        stream = _Stream(100)
        rows = [_row(random, n) for n in range(2_000)]
        stream.write([_update(random, rows) for _ in range(count)])
    else:
        stream = _Stream(20)
        tables = [[_row(random, n) for n in range(2_000)] for _ in range(_TABLES)]
        stream.write([_mixed(random, tables, n) for n in range(2_000, 2_000 + count)])
    records = stream.records
    return [records[at : at + _READ] for at in range(0, len(records), _READ)]


class _Reader:
    """In place of a `TopicReader`: gives out what was made before."""

    lost_connection = False
    origin = KafkaOrigin("c", "t")

    def __init__(self, reads: list[list[_Message]]) -> None:
        self.reads = iter(reads)

    def take(self, *_: Any) -> list[_Message]:
        return next(self.reads, [])

    def highwater(self, _: int) -> None:
        return None

    def bounds(self, _: int) -> Bounds:
        return Bounds(0, 1 << 40)

    def seek(self, _: Any) -> None: ...
    def close(self) -> None: ...


def _entries(reads: list[list[_Message]]) -> Iterator[list[Entry]]:
    """What the source makes of the records, for each read."""
    config = DtsSource.model_validate({"type": "dts", "brokers": ["b:1"], "topic": "bench"})
    source = DtsKafkaSource(config)
    reader: Any = _Reader(reads)
    source._access.connect = lambda **_: reader  # type: ignore[method-assign]
    source.open(KafkaPosition("bench", 0, 0))
    while found := source.read(_READ, 0.0):
        yield list(found)
    source.close()


def _measured(rounds: int, work: Callable[[], object]) -> float:
    """CPU seconds, the best of some rounds."""
    best = float("inf")
    for _ in range(rounds):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best


def _assemble(reads: list[list[Entry]]) -> int:
    assembler = BatchAssembler(
        1, Checkpoint(KafkaPosition("bench", 0, 0)), BatchSettings(20_000), SystemClock()
    )
    return sum(len(assembler.add(entries)) for entries in reads)


def _plan() -> TransformPlan:
    there = {"type": "mysql", "host": "target", "user": "nobody", "password": "none"}
    source = {"type": "dts", "brokers": ["b:1"], "topic": "bench"}
    return TransformPlan(
        "dts",
        Router(
            Pipeline.model_validate(
                {"name": "b", "source": source, "target": there, "tables": [{"from": "bench.*"}]}
            )
        ),
    )


def _loads(entries: list[Entry], size: int) -> Iterator[list[Entry]]:
    for first in range(0, len(entries), size):
        yield entries[first : first + size]


def steps(workload: str, count: int, rounds: int) -> dict[str, float]:
    """CPU-µs for a row change, by step."""
    reads = _written(workload, count)
    entries = list(_entries(reads))
    records = [e for part in entries for e in part if e.kind is EntryKind.ROWS]
    codec = DtsRowCodec()

    def sort() -> list[list[WorkItem]]:
        return [sorting.work(load, 1).plain for load in loads]

    def transform() -> None:
        for load in items:
            compact(plan, load)

    def decode() -> None:
        for load in items:
            for item in load:
                for _, value in codec.records(item.payload):
                    codec.decode(value, ())

    plan = _plan()
    sorting = Sorting(plan, lambda *_: None)
    per_load = max(1, len(records) * _LOAD // count)
    loads = [
        [RoutedRows(entry, plan.router.route(entry.schema, entry.table)) for entry in part]
        for part in _loads(records, per_load)
    ]
    items = sort()
    decode()
    spent = {
        "entries": _measured(rounds, lambda: sum(map(len, _entries(reads)))),
        "batches": _measured(rounds, lambda: _assemble(entries)),
        "sort": _measured(rounds, sort),
        "compact": _measured(rounds, transform),
        "decode": _measured(rounds, decode),
    }
    return {step: seconds / count * 1e6 for step, seconds in spent.items()}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rows", "count", default=20_000, show_default=True, help="Row changes of each.")
@click.option("--rounds", default=5, show_default=True, help="Best of so many.")
def main(count: int, rounds: int) -> None:
    """Measure what the driver and a task spend on DTS records, without servers."""
    found = {w: steps(w, count, rounds) for w in ("w1", "w2", "w3")}
    table = Table("CPU-µs a row", *found["w1"])
    for name, spent in found.items():
        table.add_row(name, *(f"{microseconds:.2f}" for microseconds in spent.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
