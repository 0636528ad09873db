"""What is measured: tables, and changes written into a binlog before anyone reads them.

Rows and their order are the same on every run. Rows that a workload updates or deletes are there
before it begins, at the source (`write` sees to that) and in every target (`fill`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any, NamedTuple

from pymysql.connections import Connection

_WORDS = ("blue", "größe", "käse", "紙", "paper", "🧀 cheese", "rope", "𝄞 music", "salt", "tin")
_KEPT = ("id", "name")  # columns that an update leaves alone

# What setl makes of such columns in an index that it creates: what is indexed costs time.
_LONG, _DOUBLE, _DATE, _TEXT = "long", "double", "date", "text"
_FIELDS: dict[str, dict[str, Any]] = {
    _LONG: {"type": "long"},
    _DOUBLE: {"type": "double"},
    _DATE: {"type": "date", "format": "strict_date_optional_time"},
    _TEXT: {
        "type": "text",
        "fields": {"keyword": {"type": "keyword", "ignore_above": 8191}},
    },
}


class Column(NamedTuple):
    """A column: its name, its definition in SQL, its type in an index."""

    name: str
    sql: str
    field: str


@dataclass(frozen=True)
class Shape:
    """Columns of a table, of which the first, `id`, is the key.

    Attributes:
        columns: all of them.
        values: values of all columns but `id` and `name`, which updates leave alone.
    """

    columns: tuple[Column, ...]
    values: Callable[[Random], tuple[Any, ...]]

    def create(self, table: str) -> str:
        """The statement that creates a table."""
        columns = ", ".join(f"{c.name} {c.sql}" for c in self.columns)
        return (
            f"CREATE TABLE `{table}` ({columns}, PRIMARY KEY (id))"
            " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
        )

    def insert(self, table: str) -> str:
        """The statement that inserts rows, as `executemany` takes it."""
        return f"INSERT INTO `{table}` VALUES ({', '.join(['%s'] * len(self.columns))})"

    def update(self, table: str) -> str:
        """The statement that updates a row: `values`, then the key."""
        assigned = ", ".join(f"{c.name}=%s" for c in self.columns if c.name not in _KEPT)
        return f"UPDATE `{table}` SET {assigned} WHERE id=%s"

    def row(self, key: int, random: Random) -> tuple[Any, ...]:
        """A row to insert."""
        values = iter(self.values(random))
        stored = {
            "id": key,
            "name": f"customer {random.randrange(10**6):06d} {random.choice(_WORDS)}",
        }
        return tuple(stored[c.name] if c.name in stored else next(values) for c in self.columns)

    @property
    def fields(self) -> dict[str, Any]:
        """Of an index."""
        return {c.name: _FIELDS[c.field] for c in self.columns}


def _some_values(random: Random) -> tuple[Any, ...]:
    quantity = random.randrange(-1000, 10**6)
    price, created = _decimal(random), _time(random)
    coupon = None if random.random() < 0.4 else f"C-{random.randrange(10**5)}"
    note = " ".join(random.choices(_WORDS, k=random.randrange(3, 12)))
    return quantity, price, created, coupon, note, random.uniform(-1e6, 1e6)


def _plain_values(random: Random) -> tuple[Any, ...]:
    numbers = (random.randrange(10**3), random.randrange(10**6), random.randrange(10**9))
    note = " ".join(random.choices(_WORDS, k=7)) if random.random() < 0.9 else None
    return *numbers, _time(random)[:19], _decimal(random), note


def _many_values(random: Random) -> tuple[Any, ...]:
    return (
        *(random.randrange(-(10**9), 10**9) for _ in range(18)),
        *(_decimal(random) for _ in range(10)),
        *(_time(random) for _ in range(10)),
        *(" ".join(random.choices(_WORDS, k=13)) for _ in range(20)),
    )


def _decimal(random: Random) -> str:
    cents = random.randrange(-(10**6), 10**9)
    return f"{'-' if cents < 0 else ''}{abs(cents) // 100}.{abs(cents) % 100:02d}"


def _time(random: Random) -> str:
    return (
        f"2026-{random.randrange(1, 13):02d}-{random.randrange(1, 29):02d}"
        f" {random.randrange(24):02d}:{random.randrange(60):02d}:{random.randrange(60):02d}"
        f".{random.randrange(10**6):06d}"
    )


_ID = Column("id", "BIGINT NOT NULL", _LONG)
_NAME = Column("name", "VARCHAR(60) NOT NULL", _TEXT)

NARROW = Shape(
    (
        _ID,
        Column("quantity", "INT NOT NULL", _LONG),
        _NAME,
        Column("price", "DECIMAL(12,2) NOT NULL", _DOUBLE),
        Column("created", "DATETIME(6) NOT NULL", _DATE),
        Column("coupon", "VARCHAR(20) NULL", _TEXT),
        Column("note", "TEXT NOT NULL", _TEXT),
        Column("score", "DOUBLE NOT NULL", _DOUBLE),
    ),
    _some_values,
)

# About 120 bytes: what a plain table of a shop has.
PLAIN = Shape(
    (
        _ID,
        _NAME,
        Column("quantity", "INT NOT NULL", _LONG),
        Column("stock", "INT NOT NULL", _LONG),
        Column("shop", "INT NOT NULL", _LONG),
        Column("created", "DATETIME NOT NULL", _DATE),
        Column("price", "DECIMAL(12,2) NOT NULL", _DOUBLE),
        Column("note", "VARCHAR(80) NULL", _TEXT),
    ),
    _plain_values,
)

WIDE = Shape(
    (
        _ID,
        _NAME,
        *(Column(f"number_{n:02}", "INT NOT NULL", _LONG) for n in range(18)),
        *(Column(f"price_{n:02}", "DECIMAL(12,2) NOT NULL", _DOUBLE) for n in range(10)),
        *(Column(f"time_{n:02}", "DATETIME(6) NOT NULL", _DATE) for n in range(10)),
        *(Column(f"text_{n:02}", "VARCHAR(200) NOT NULL", _TEXT) for n in range(20)),
    ),
    _many_values,
)


SCHEMA = "bench"


class Position(NamedTuple):
    """A position in the source's binlog."""

    file: str
    offset: int


class Mix(NamedTuple):
    """Which share of the changes are updates and inserts; the rest are deletes."""

    updates: float
    inserts: float


@dataclass(frozen=True)
class Workload:
    """One kind of changes in one size.

    Attributes:
        name: what it is called; its tables begin with it.
        changes: row changes between start and end of what is measured.
        transaction: row changes in a transaction.
        tables_count: tables among which the changes are spread.
        base: rows of each table before it begins.
        mix: None for inserts only, 100 rows a statement; else each change has its statement.
        shape: of the tables.
        seed: of the values.
    """

    name: str
    changes: int
    transaction: int
    tables_count: int = 1
    base: int = 0
    mix: Mix | None = None
    shape: Shape = NARROW
    seed: int = 20260101

    @property
    def is_loaded(self) -> bool:
        """Whether it is about the rows that are there before, and not about changes."""
        return not self.changes and bool(self.base)

    @property
    def size(self) -> int:
        """Row changes, or the rows of all tables where these are loaded."""
        return self.base * self.tables_count if self.is_loaded else self.changes

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables, in `SCHEMA`."""
        if self.tables_count == 1:
            return (self.name,)
        return tuple(f"{self.name}_{number:03}" for number in range(self.tables_count))


@dataclass(frozen=True)
class Written:
    """A workload in a binlog: it lies between two positions."""

    workload: Workload
    start: Position
    end: Position


def inserts(rows: int = 200_000) -> Workload:
    """W1: inserts, 1,000 a transaction."""
    return Workload("w1", rows, 1_000)


def updates(changes: int = 200_000, rows: int = 2_000) -> Workload:
    """W2: updates of few rows, over and over, 100 a transaction."""
    return Workload("w2", changes, 100, base=min(rows, changes), mix=Mix(1.0, 0.0))


def mixed(changes: int = 200_000, rows: int = 2_000) -> Workload:
    """W3: 60 % updates, 25 % inserts, 15 % deletes over three tables, 20 a transaction."""
    return Workload("w3", changes, 20, tables_count=3, base=rows, mix=Mix(0.6, 0.25))


def wide(rows: int = 50_000) -> Workload:
    """Inserts of rows with 60 columns and 2 KB, 1,000 a transaction."""
    return Workload("wide", rows, 1_000, shape=WIDE)


def many(changes: int = 100_000, tables: int = 200) -> Workload:
    """As W3, over many tables."""
    return Workload("many", changes, 20, tables_count=tables, base=20, mix=Mix(0.6, 0.25))


def big(rows: int = 1_000_000) -> Workload:
    """One transaction of inserts."""
    return Workload("big", rows, rows)


def loaded(rows: int, tables: int = 1) -> Workload:
    """Rows that are there already, and no changes: for loads of whole tables."""
    return Workload("load", 0, 1, tables_count=tables, base=rows, shape=PLAIN)


def write(connection: Connection[Any], workload: Workload) -> Written:
    """Create the tables again and write the workload; needs a connection that may do both."""
    fill(connection, workload)
    start = position(connection)
    if workload.mix is None:
        _write_inserts(connection, workload)
    else:
        _write_changes(connection, workload, workload.mix)
    return Written(workload, start, position(connection))


def fill(connection: Connection[Any], workload: Workload) -> None:
    """New tables of the workload, in `SCHEMA`, with the rows that are there before it begins."""
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION time_zone='+00:00', sql_mode='STRICT_ALL_TABLES'")
        cursor.execute(f"CREATE DATABASE IF NOT EXISTS {SCHEMA}")
        cursor.execute(f"USE {SCHEMA}")
        for table in workload.tables:
            cursor.execute(f"DROP TABLE IF EXISTS `{table}`")
            cursor.execute(workload.shape.create(table))
        connection.begin()
        if workload.base:
            for table in workload.tables:
                _fill_table(cursor, workload, table)
        connection.commit()


_COPIED = 20_000  # rows above which a table's base is copies of its first ones, with other keys


def _fill_table(cursor: Any, workload: Workload, table: str) -> None:
    first = list(islice(base_rows(workload), _COPIED))
    cursor.executemany(workload.shape.insert(table), first)
    others = ", ".join(column.name for column in workload.shape.columns[1:])
    for start in range(len(first), workload.base, len(first)):
        cursor.execute(
            f"INSERT INTO `{table}` SELECT id + {start}, {others} FROM `{table}`"
            f" WHERE id <= {min(len(first), workload.base - start)}"
        )
        cursor.execute("COMMIT")


def base_rows(workload: Workload) -> Iterator[tuple[Any, ...]]:
    """The rows that each table has before the workload begins."""
    return _rows(workload, workload.base)


def position(connection: Connection[Any]) -> Position:
    """The end of the server's binlog."""
    with connection.cursor() as cursor:
        mariadb = "mariadb" in connection.get_server_info().lower()
        cursor.execute("SHOW MASTER STATUS" if mariadb else "SHOW BINARY LOG STATUS")
        row = cursor.fetchone()
    if row is None:
        raise SystemExit("the source writes no binlog")
    return Position(str(row[0]), int(row[1]))


def _rows(workload: Workload, count: int) -> Iterator[tuple[Any, ...]]:
    random = Random(workload.seed)
    for key in range(1, count + 1):
        yield workload.shape.row(key, random)


def _write_inserts(connection: Connection[Any], workload: Workload) -> None:
    statement = workload.shape.insert(workload.tables[0])
    source = _rows(workload, workload.changes)
    with connection.cursor() as cursor:
        for first in range(0, workload.changes, workload.transaction):
            connection.begin()
            for _ in range(first, min(first + workload.transaction, workload.changes), 100):
                cursor.executemany(statement, list(islice(source, 100)))
            connection.commit()


def _write_changes(connection: Connection[Any], workload: Workload, mix: Mix) -> None:
    statements = _statements(workload, mix)
    with connection.cursor() as cursor:
        for first in range(0, workload.changes, workload.transaction):
            connection.begin()
            count = min(workload.transaction, workload.changes - first)
            for statement, values in islice(statements, count):
                cursor.execute(statement, values)
            connection.commit()


def _statements(workload: Workload, mix: Mix) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """One-row statements without end."""
    random, shape = Random(workload.seed + 1), workload.shape
    living = [list(range(1, workload.base + 1)) for _ in workload.tables]
    last = workload.base
    while True:
        drawn, number = random.random(), random.randrange(len(living))
        table, keys = workload.tables[number], living[number]
        if keys and drawn < mix.updates:
            yield shape.update(table), (*shape.values(random), random.choice(keys))
        elif not keys or drawn < mix.updates + mix.inserts:
            last += 1
            keys.append(last)
            yield shape.insert(table), shape.row(last, random)
        else:
            # The position of the one that goes is taken by the last: a list without gaps.
            other_position = random.randrange(len(keys))
            keys[other_position], keys[-1] = keys[-1], keys[other_position]
            yield f"DELETE FROM `{table}` WHERE id=%s", (keys.pop(),)
