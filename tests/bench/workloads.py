"""What is measured: tables, and changes written into a binlog before anyone reads them.

Rows and their order are the same on every run. Rows that a workload updates or deletes are there
before it begins, at the source (`write` sees to that) and in every target (`fill`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from random import Random
from typing import Any, NamedTuple

from pymysql.connections import Connection

SCHEMA = "bench"

_WORDS = ("blue", "größe", "käse", "紙", "paper", "🧀 cheese", "rope", "𝄞 music", "salt", "tin")
_UNCHANGED = ("id", "name")  # columns that an update leaves alone
_COPIED = 20_000  # rows above which a table's base is copies of its first ones, with other keys

# What setl makes of such columns in an index that it creates: what is indexed costs time.
_TEXT = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 8191}}}
_LONG, _DOUBLE = {"type": "long"}, {"type": "double"}
_DATE = {"type": "date", "format": "strict_date_optional_time"}
_FIELDS = {"BIGINT": _LONG, "INT": _LONG, "DECIMAL": _DOUBLE, "DOUBLE": _DOUBLE, "DATETIME": _DATE}


class Column(NamedTuple):
    """A column: its name, its definition in SQL, and what makes a value of it."""

    name: str
    sql: str
    value: Callable[[Random], Any]

    @property
    def field(self) -> dict[str, Any]:
        """Of an index."""
        return _FIELDS.get(self.sql.split()[0].partition("(")[0], _TEXT)


@dataclass(frozen=True)
class Shape:
    """Columns of a table, of which the first, `id`, is the key."""

    columns: tuple[Column, ...]

    def create(self, table: str) -> str:
        columns = ", ".join(f"{c.name} {c.sql}" for c in self.columns)
        return (
            f"CREATE TABLE `{table}` ({columns}, PRIMARY KEY (id))"
            " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
        )

    def insert(self, table: str) -> str:
        """As `executemany` takes it."""
        return f"INSERT INTO `{table}` VALUES ({', '.join(['%s'] * len(self.columns))})"

    def update(self, table: str) -> str:
        """Takes what `new_values` makes, then the key."""
        assigned = ", ".join(f"{c.name}=%s" for c in self.columns if c.name not in _UNCHANGED)
        return f"UPDATE `{table}` SET {assigned} WHERE id=%s"

    def row(self, key: int, random: Random) -> tuple[Any, ...]:
        return key, *(c.value(random) for c in self.columns[1:])

    def new_values(self, random: Random) -> tuple[Any, ...]:
        return tuple(c.value(random) for c in self.columns if c.name not in _UNCHANGED)


def _integer(low: int, high: int) -> Callable[[Random], int]:
    return lambda random: random.randrange(low, high)


def _words(least: int, most: int) -> Callable[[Random], str]:
    return lambda random: " ".join(random.choices(_WORDS, k=random.randint(least, most)))


def _or_null(share: float, value: Callable[[Random], Any]) -> Callable[[Random], Any]:
    return lambda random: None if random.random() < share else value(random)


def _decimal(random: Random) -> str:
    cents = random.randrange(-(10**6), 10**9)
    return f"{'-' if cents < 0 else ''}{abs(cents) // 100}.{abs(cents) % 100:02d}"


_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


def _time(random: Random) -> str:
    at = _YEAR + timedelta(microseconds=random.randrange(365 * 86_400 * 10**6))
    return f"{at:%Y-%m-%d %H:%M:%S.%f}"


def _customer(random: Random) -> str:
    return f"customer {random.randrange(10**6):06d} {random.choice(_WORDS)}"


_ID = Column("id", "BIGINT NOT NULL", lambda _: None)  # its value is the key that `row` is given
_NAME = Column("name", "VARCHAR(60) NOT NULL", _customer)
_PRICE = Column("price", "DECIMAL(12,2) NOT NULL", _decimal)

NARROW = Shape((
    _ID,
    Column("quantity", "INT NOT NULL", _integer(-1000, 10**6)),
    _NAME,
    _PRICE,
    Column("created", "DATETIME(6) NOT NULL", _time),
    Column("coupon", "VARCHAR(20) NULL", _or_null(0.4, lambda r: f"C-{r.randrange(10**5)}")),
    Column("note", "TEXT NOT NULL", _words(3, 11)),
    Column("score", "DOUBLE NOT NULL", lambda random: random.uniform(-1e6, 1e6)),
))  # fmt: skip

# About 120 bytes: what a plain table of a shop has.
PLAIN = Shape((
    _ID,
    _NAME,
    Column("quantity", "INT NOT NULL", _integer(0, 10**3)),
    Column("stock", "INT NOT NULL", _integer(0, 10**6)),
    Column("shop", "INT NOT NULL", _integer(0, 10**9)),
    Column("created", "DATETIME NOT NULL", lambda random: _time(random)[:19]),
    _PRICE,
    Column("note", "VARCHAR(80) NULL", _or_null(0.1, _words(7, 7))),
))  # fmt: skip

WIDE = Shape((
    _ID,
    _NAME,
    *(Column(f"number_{n:02}", "INT NOT NULL", _integer(-(10**9), 10**9)) for n in range(18)),
    *(Column(f"price_{n:02}", "DECIMAL(12,2) NOT NULL", _decimal) for n in range(10)),
    *(Column(f"time_{n:02}", "DATETIME(6) NOT NULL", _time) for n in range(10)),
    *(Column(f"text_{n:02}", "VARCHAR(200) NOT NULL", _words(13, 13)) for n in range(20)),
))  # fmt: skip


class Position(NamedTuple):
    """A position in the source's binlog."""

    file: str
    offset: int


class Mix(NamedTuple):
    """Fractions of the changes; the rest are deletes."""

    updates: float
    inserts: float


@dataclass(frozen=True)
class Workload:
    """One kind of changes in one size."""

    name: str  # with which its tables begin
    changes: int
    transaction: int  # changes in one; 0 for all in one
    tables_count: int = 1
    base: int = 0  # rows of each table before it begins
    mix: Mix | None = None  # none for inserts only, 100 rows a statement; else one statement each
    shape: Shape = NARROW

    def sized(self, changes: int) -> Workload:
        """The same with other row changes."""
        base = min(self.base, changes) if self.mix == _UPDATES else self.base
        return replace(self, changes=changes, base=base)

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
        if self.tables_count == 1:
            return (self.name,)
        return tuple(f"{self.name}_{number:03}" for number in range(self.tables_count))


_UPDATES, MIX = Mix(1.0, 0.0), Mix(0.6, 0.25)
_ALL = (
    Workload("w1", 200_000, 1_000),
    Workload("w2", 200_000, 100, base=2_000, mix=_UPDATES),
    Workload("w3", 200_000, 20, tables_count=3, base=2_000, mix=MIX),
    Workload("wide", 50_000, 1_000, shape=WIDE),
    Workload("many", 100_000, 20, tables_count=200, base=20, mix=MIX),
    Workload("big", 1_000_000, 0),
)
WORKLOADS = {workload.name: workload for workload in _ALL}


def loaded(rows: int, tables: int = 1) -> Workload:
    """Rows that are there already, and no changes: for loads of whole tables."""
    return Workload("load", 0, 1, tables_count=tables, base=rows, shape=PLAIN)


class Written(NamedTuple):
    """A workload in a binlog: it lies between two positions."""

    workload: Workload
    start: Position
    end: Position


def write(connection: Connection[Any], workload: Workload) -> Written:
    """Create the tables again and write the workload."""
    fill(connection, workload)
    start = position(connection)
    statements = _inserts(workload) if workload.mix is None else _changes(workload, workload.mix)
    pending = 0
    with connection.cursor() as cursor:
        connection.begin()
        for statement, rows in statements:
            cursor.executemany(statement, rows)
            pending += len(rows)
            if pending >= (workload.transaction or workload.changes):
                connection.commit()
                connection.begin()
                pending = 0
        connection.commit()
    return Written(workload, start, position(connection))


_Statements = Iterator[tuple[str, list[tuple[Any, ...]]]]


def _inserts(workload: Workload) -> _Statements:
    rows = new_rows(workload, workload.changes)
    while some := list(islice(rows, 100)):
        yield workload.shape.insert(workload.tables[0]), some


def _changes(workload: Workload, mix: Mix) -> _Statements:
    """One row a statement."""
    random, shape = Random(20260102), workload.shape
    living = [list(range(1, workload.base + 1)) for _ in workload.tables]
    last = workload.base
    for _ in range(workload.changes):
        drawn, number = random.random(), random.randrange(len(living))
        table, keys = workload.tables[number], living[number]
        if keys and drawn < mix.updates:
            yield shape.update(table), [(*shape.new_values(random), random.choice(keys))]
        elif not keys or drawn < mix.updates + mix.inserts:
            last += 1
            keys.append(last)
            yield shape.insert(table), [shape.row(last, random)]
        else:
            # The last one moves to where the one that goes was: a list without gaps.
            gone = random.randrange(len(keys))
            keys[gone], keys[-1] = keys[-1], keys[gone]
            yield f"DELETE FROM `{table}` WHERE id=%s", [(keys.pop(),)]


def fill(connection: Connection[Any], workload: Workload) -> None:
    """New tables of the workload, in `SCHEMA`, with the rows that are there before it begins."""
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION time_zone='+00:00', sql_mode='STRICT_ALL_TABLES'")
        cursor.execute(f"CREATE DATABASE IF NOT EXISTS {SCHEMA}")
        cursor.execute(f"USE {SCHEMA}")
        for table in workload.tables:
            cursor.execute(f"DROP TABLE IF EXISTS `{table}`")
            cursor.execute(workload.shape.create(table))
        for table in workload.tables if workload.base else ():
            connection.begin()
            _fill_table(cursor, workload, table)
            connection.commit()


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
    return new_rows(workload, workload.base)


def new_rows(workload: Workload, count: int) -> Iterator[tuple[Any, ...]]:
    random = Random(20260101)
    return (workload.shape.row(key, random) for key in range(1, count + 1))


def position(connection: Connection[Any]) -> Position:
    """The end of the server's binlog."""
    with connection.cursor() as cursor:
        mariadb = "mariadb" in connection.get_server_info().lower()
        cursor.execute("SHOW MASTER STATUS" if mariadb else "SHOW BINARY LOG STATUS")
        file, offset, *_ = cursor.fetchone()
    return Position(str(file), int(offset))
