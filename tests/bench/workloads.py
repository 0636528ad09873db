"""What is measured: changes written into a source's binlog before anyone reads them.

W1 inserts rows, 100 a statement and 1,000 a transaction. W2 updates few rows over and over,
one row a statement and 100 a transaction. Rows and their order are the same on every run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any, NamedTuple

from pymysql.connections import Connection

SCHEMA = "bench"
COLUMNS = ("id", "quantity", "name", "price", "created", "coupon", "note", "score")
CREATE = """CREATE TABLE `{table}` (
  id BIGINT NOT NULL PRIMARY KEY,
  quantity INT NOT NULL,
  name VARCHAR(60) NOT NULL,
  price DECIMAL(12,2) NOT NULL,
  created DATETIME(6) NOT NULL,
  coupon VARCHAR(20) NULL,
  note TEXT NOT NULL,
  score DOUBLE NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"""

_INSERT = "INSERT INTO `{table}` VALUES (%s,%s,%s,%s,%s,%s,%s,%s)"
_UPDATE = (
    "UPDATE `{table}` SET quantity=%s, price=%s, created=%s, coupon=%s, note=%s, score=%s"
    " WHERE id=%s"
)
_WORDS = ("blue", "größe", "käse", "紙", "paper", "🧀 cheese", "rope", "𝄞 music", "salt", "tin")


class Position(NamedTuple):
    """A place in the source's binlog."""

    file: str
    offset: int


@dataclass(frozen=True)
class Workload:
    """One kind of changes in one size.

    Attributes:
        name: w1 or w2.
        changes: row changes between start and end of what is measured.
        rows: rows of the table afterwards.
        seed: of the values.
    """

    name: str
    changes: int
    rows: int
    seed: int = 20260101

    @property
    def table(self) -> str:
        """The table, in `SCHEMA`."""
        return self.name


@dataclass(frozen=True)
class Written:
    """A workload in a binlog: it lies between two positions."""

    workload: Workload
    start: Position
    end: Position


def inserts(rows: int = 200_000) -> Workload:
    """W1."""
    return Workload("w1", changes=rows, rows=rows)


def updates(changes: int = 200_000, rows: int = 2_000) -> Workload:
    """W2; every one of the rows is updated at least once if there are as many changes."""
    return Workload("w2", changes=changes, rows=min(rows, changes))


def write(connection: Connection[Any], workload: Workload) -> Written:
    """Create the table anew and write the workload; needs a connection that may do both."""
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION time_zone='+00:00', sql_mode='STRICT_ALL_TABLES'")
        create_table(connection, workload)
        connection.begin()
        if workload.name == "w2":
            cursor.executemany(
                _INSERT.format(table=workload.table), list(rows(workload, workload.rows))
            )
        connection.commit()
        start = position(connection)
        if workload.name == "w1":
            _write_inserts(connection, workload)
        else:
            _write_updates(connection, workload)
    return Written(workload, start, position(connection))


def create_table(connection: Connection[Any], workload: Workload) -> None:
    """An empty table of the workload, in `SCHEMA`; an old one is dropped."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE IF NOT EXISTS {SCHEMA}")
        cursor.execute(f"USE {SCHEMA}")
        cursor.execute(f"DROP TABLE IF EXISTS `{workload.table}`")
        cursor.execute(CREATE.format(table=workload.table))


def position(connection: Connection[Any]) -> Position:
    """The end of the server's binlog."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW MASTER STATUS")
        row = cursor.fetchone()
    if row is None:
        raise SystemExit("the source writes no binlog")
    return Position(str(row[0]), int(row[1]))


def rows(workload: Workload, count: int) -> Iterator[tuple[Any, ...]]:
    """Rows to insert, in the order of `COLUMNS`."""
    random = Random(workload.seed)
    for number in range(1, count + 1):
        quantity, price, created, coupon, note, score = _values(random)
        name = f"customer {random.randrange(10**6):06d} {random.choice(_WORDS)}"
        yield number, quantity, name, price, created, coupon, note, score


def _values(random: Random) -> tuple[Any, ...]:
    cents = random.randrange(-(10**6), 10**9)
    sign = "-" if cents < 0 else ""
    created = (
        f"2026-{random.randrange(1, 13):02d}-{random.randrange(1, 29):02d}"
        f" {random.randrange(24):02d}:{random.randrange(60):02d}:{random.randrange(60):02d}"
        f".{random.randrange(10**6):06d}"
    )
    return (
        random.randrange(-1000, 10**6),
        f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02d}",
        created,
        None if random.random() < 0.4 else f"C-{random.randrange(10**5)}",
        " ".join(random.choices(_WORDS, k=random.randrange(3, 12))),
        random.uniform(-1e6, 1e6),
    )


def _write_inserts(connection: Connection[Any], workload: Workload) -> None:
    statement = _INSERT.format(table=workload.table)
    source = rows(workload, workload.changes)
    with connection.cursor() as cursor:
        while transaction := list(islice(source, 1_000)):
            connection.begin()
            for first in range(0, len(transaction), 100):
                cursor.executemany(statement, transaction[first : first + 100])
            connection.commit()


def _write_updates(connection: Connection[Any], workload: Workload) -> None:
    random = Random(workload.seed + 1)
    statement = _UPDATE.format(table=workload.table)
    order = list(range(1, workload.rows + 1))
    random.shuffle(order)
    with connection.cursor() as cursor:
        for first in range(0, workload.changes, 100):
            connection.begin()
            for number in range(first, min(first + 100, workload.changes)):
                # Each row once, then any row: so the target needs no rows to begin with.
                row = order[number] if number < len(order) else random.choice(order)
                cursor.execute(statement, (*_values(random), row))
            connection.commit()
