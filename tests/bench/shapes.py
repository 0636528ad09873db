"""Two shapes of tables, and values for their rows: eight columns, and sixty with 2 KB a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

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
        kept = {
            "id": key,
            "name": f"customer {random.randrange(10**6):06d} {random.choice(_WORDS)}",
        }
        return tuple(kept[c.name] if c.name in kept else next(values) for c in self.columns)

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
