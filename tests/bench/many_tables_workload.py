"""Transactions over many tables of which one is hot, as changes and as DTS records.

Six in ten changes are of the table `hot`, one in ten of the three tables of a group (orders with
items and payments, whose rows are never there without their order), the rest of cold tables. A
key that was deleted does not come back. Everything is the same on every run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any, NamedTuple

from pymysql.connections import Connection

from setl.codec.binlog.table_map import ColumnType, WireColumn
from setl.codec.dts.record_writer import DtsRecordWriter, TransactionFacts
from setl.codec.dts.table_form import TableForm
from setl.model.change import DecodedRows, Op
from setl.model.position import BinlogPosition
from setl.model.schema import Column, Kind, RowSchema

SCHEMA = "many"
HOT = "hot"
ORDERS = "orders"
PARTS = ("order_items", "order_payments")
GROUP = (ORDERS, *PARTS)
_COLUMNS = {
    Column("id", Kind.INTEGER): WireColumn(ColumnType.LONGLONG),
    Column("parent", Kind.INTEGER): WireColumn(ColumnType.LONGLONG),
    Column("number", Kind.INTEGER): WireColumn(ColumnType.LONGLONG),
    Column("note", Kind.TEXT): WireColumn(ColumnType.VARCHAR),
}
_CREATE = """CREATE TABLE `{table}` (
  id BIGINT NOT NULL PRIMARY KEY,
  parent BIGINT NOT NULL,
  number BIGINT NOT NULL,
  note VARCHAR(200) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"""
# Of each row that is inserted or updated by a load, also where an upsert finds one.
_SLOW = "CREATE TRIGGER `slow` BEFORE INSERT ON `{table}` FOR EACH ROW DO SLEEP({seconds})"
_WORDS = ("blue", "größe", "紙", "paper", "🧀 cheese", "rope", "salt", "tin", "music", "käse")
_WRITER = DtsRecordWriter("8.0.28")
_AT = 1_790_000_000  # seconds since 1970 at which all of it was committed


class Row(NamedTuple):
    """A row of any of the tables.

    Attributes:
        id: its key.
        parent: for items and payments the id of their order, else 0.
        number: number of the change that wrote it, so that what is seen of it tells which one.
        note: some text.
    """

    id: int
    parent: int
    number: int
    note: str


class Change(NamedTuple):
    """One row change of the source.

    Attributes:
        table: which table.
        op: insert, update or delete.
        before: the row before it, None for an insert.
        after: the row after it, None for a delete.
    """

    table: str
    op: Op
    before: Row | None
    after: Row | None

    @property
    def key(self) -> tuple[str, int]:
        """Table and id."""
        row = self.after or self.before
        assert row is not None
        return self.table, row.id


@dataclass(frozen=True)
class Workload:
    """What is written.

    Attributes:
        changes: row changes, at least.
        hot_keys: rows of the hot table that are updated over and over; 0 if it is only ever
            appended to.
        tables: how many tables.
        seed: of everything random.
    """

    changes: int
    hot_keys: int
    tables: int = 50
    seed: int = 20260101

    @property
    def cold(self) -> tuple[str, ...]:
        """The cold tables."""
        return tuple(f"cold_{number:03}" for number in range(self.tables - len(GROUP) - 1))


@dataclass
class _Source:
    """The source's tables while it is written to."""

    workload: Workload
    random: Random
    number: int = 0
    last_id: int = 0
    rows: dict[str, dict[int, Row]] = field(default_factory=dict)

    def insert(self, table: str, parent: int = 0, key: int = 0) -> Change:
        if not key:
            key = self.last_id = self.last_id + 1
        row = self._row(key, parent)
        self.rows.setdefault(table, {})[key] = row
        return Change(table, Op.INSERT, None, row)

    def update(self, table: str, key: int) -> Change:
        before = self.rows[table][key]
        after = self.rows[table][key] = self._row(key, before.parent)
        return Change(table, Op.UPDATE, before, after)

    def delete(self, table: str, key: int) -> Change:
        self.number += 1
        return Change(table, Op.DELETE, self.rows[table].pop(key), None)

    def oldest_key(self, table: str) -> int:
        # The oldest, so that few rows come and go within one load and are never seen.
        keys = self.rows.get(table)
        return 0 if not keys else next(iter(keys))

    def _row(self, key: int, parent: int) -> Row:
        self.number += 1
        note = " ".join(self.random.choices(_WORDS, k=self.random.randrange(2, 9)))
        return Row(key, parent, self.number, note)


def transactions(workload: Workload) -> list[list[Change]]:
    """The source's transactions, of 5 to 20 changes or a few more to end an order with.

    Changes are numbered from 1 in their order, which is `Row.number` of their after images.
    """
    source = _Source(workload, Random(workload.seed))
    result: list[list[Change]] = []
    while source.number < workload.changes:
        size, changes = source.random.randrange(5, 21), list[Change]()
        while len(changes) < size:
            changes += _some(source)
        result.append(changes)
    return result


def _some(source: _Source) -> list[Change]:
    """One change of the hot or of a cold table, or all of an order."""
    random, workload = source.random, source.workload
    drawn = random.random()
    if drawn < 0.03:  # a tenth of all changes, since they are about four at a time
        return list(_of_an_order(source))
    if drawn < 0.676:
        if not workload.hot_keys:
            return [source.insert(HOT)]
        key = -random.randrange(1, workload.hot_keys + 1)
        known = key in source.rows.get(HOT, {})
        return [source.update(HOT, key) if known else source.insert(HOT, key=key)]
    table = random.choice(workload.cold)
    key = source.oldest_key(table)
    drawn = random.random()
    if not key or drawn < 0.75:
        return [source.insert(table)]
    return [source.update(table, key) if drawn < 0.95 else source.delete(table, key)]


def _of_an_order(source: _Source) -> Iterator[Change]:
    """An order with its items and its payment, or the oldest order goes with all of them."""
    oldest = source.oldest_key(ORDERS)
    if oldest and source.random.random() < 0.3:
        for table in PARTS:
            for key in [k for k, row in source.rows[table].items() if row.parent == oldest]:
                yield source.delete(table, key)
        yield source.delete(ORDERS, oldest)
        return
    order = source.insert(ORDERS)
    yield order
    for _ in range(source.random.randrange(1, 4)):
        yield source.insert(PARTS[0], parent=order.key[1])
    yield source.insert(PARTS[1], parent=order.key[1])


def contents(written: list[list[Change]]) -> dict[str, dict[int, Row]]:
    """What the tables hold in the end."""
    tables: dict[str, dict[int, Row]] = {}
    for change in (change for transaction in written for change in transaction):
        table, key = change.key
        if change.after is None:
            del tables[table][key]
        else:
            tables.setdefault(table, {})[key] = change.after
    return tables


def records(number: int, changes: list[Change]) -> list[bytes]:
    """A transaction as DTS records: BEGIN, a record for each row change, COMMIT.

    Args:
        number: which transaction, from 1.
        changes: its changes.
    """
    place = BinlogPosition("binlog.000001", 100 * number)
    facts = TransactionFacts(place, _AT * 1000, gtid=f"0-1-{number}")
    write, at = _WRITER.transaction(facts), {"seconds": _AT, "position": place}
    result = [write.begin(number, **at)]
    for change in changes:
        form = _form(change.table)
        rows = DecodedRows(form.schema, change.op, [(change.before, change.after)])
        result += write.rows(form, rows, first_id=number, **at)
    result.append(write.commit(number, **at))
    return result


@cache
def _form(table: str) -> TableForm:
    schema = RowSchema(SCHEMA, table, tuple(_COLUMNS), key=(0,))
    return TableForm(schema, tuple(_COLUMNS.values()))


def create_tables(connection: Connection[Any], workload: Workload, slow: float) -> None:
    """Empty tables in `SCHEMA`; what was there goes.

    Args:
        connection: to the target.
        workload: whose tables.
        slow: seconds that every row costs that is written into the hot table.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {SCHEMA}")
        cursor.execute(f"CREATE DATABASE {SCHEMA}")
        cursor.execute(f"USE {SCHEMA}")
        for table in (HOT, *GROUP, *workload.cold):
            cursor.execute(_CREATE.format(table=table))
        if slow:
            cursor.execute(_SLOW.format(table=HOT, seconds=slow))
