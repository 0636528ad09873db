"""Random tables: several unique keys, collations of all sorts, and targets with other keys."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

COLLATIONS: Final = {
    "mariadb": (
        "utf8mb4_general_ci",
        "utf8mb4_bin",
        "utf8mb4_unicode_ci",
        "utf8mb4_nopad_bin",
        "utf8mb4_general_nopad_ci",
        "latin1_swedish_ci",
        "latin1_bin",
    ),
    "mysql": (
        "utf8mb4_general_ci",
        "utf8mb4_bin",
        "utf8mb4_unicode_ci",
        "utf8mb4_0900_ai_ci",
        "utf8mb4_0900_as_cs",
        "utf8mb4_0900_bin",
        "latin1_swedish_ci",
        "latin1_bin",
    ),
    "mixed": ("utf8mb4_general_ci", "utf8mb4_bin", "utf8mb4_unicode_ci", "latin1_swedish_ci"),
}
"""By what the servers are; ``mixed`` for tables that both families have to know."""


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column of text, with its collation and whether it is CHAR."""

    name: str
    collation: str
    fixed: bool = False
    nullable: bool = True

    def definition(self, collation: str = "") -> str:
        """As CREATE TABLE wants it."""
        null = "NULL" if self.nullable else "NOT NULL"
        kind = "CHAR" if self.fixed else "VARCHAR"
        chosen = collation or self.collation
        charset = chosen.partition("_")[0]
        return f"{self.name} {kind}(8) CHARACTER SET {charset} COLLATE {chosen} {null}"


@dataclass(frozen=True, slots=True)
class PlainColumn:
    """A column that compares in one way only."""

    name: str
    type: str
    nullable: bool = False

    def definition(self, collation: str = "") -> str:  # noqa: ARG002 - as `TextColumn`
        """As CREATE TABLE wants it."""
        return f"{self.name} {self.type} {'NULL' if self.nullable else 'NOT NULL'}"


AnyColumn = TextColumn | PlainColumn


@dataclass(frozen=True, slots=True)
class RandomTable:
    """A table of the source, and how the target's differs.

    Attributes:
        columns: its columns.
        key: parts of its primary key.
        unique: parts of each further unique key.
        mapped: whether the key is the mapping's, and to the server one more unique key.
        twist: what the target's differs in, "" if in nothing.
        target: statements that make the target's table out of the source's, ``{t}`` its name.
    """

    columns: tuple[AnyColumn, ...]
    key: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...]
    twist: str = ""
    target: tuple[str, ...] = field(default=())
    mapped: bool = False

    def create(self, name: str) -> str:
        """CREATE TABLE for the source."""
        kind = "UNIQUE KEY" if self.mapped else "PRIMARY KEY"
        keys = [f"{kind} ({', '.join(self.key)})"]
        keys += [f"UNIQUE KEY u{i} ({', '.join(u)})" for i, u in enumerate(self.unique)]
        parts = ", ".join([*(c.definition() for c in self.columns), *keys])
        return f"CREATE TABLE {name} ({parts}) ENGINE=InnoDB"


def random_table(chance: random.Random, collations: Sequence[str], *, twisted: bool) -> RandomTable:
    """Make one up; `twisted` gives it a target with other keys or collations."""
    columns: tuple[AnyColumn, ...] = (
        PlainColumn("id", "INT"),
        TextColumn("k", chance.choice(collations), chance.random() < 0.3, nullable=False),
        TextColumn("a", chance.choice(collations), chance.random() < 0.2),
        PlainColumn("c", "INT", nullable=True),
        PlainColumn("d", "VARBINARY(6)", nullable=True),
        PlainColumn("n", "INT"),
    )
    key = chance.choice([("id",), ("id",), ("k",), ("k",), ("id", "k"), ("k", "id"), ("k(2)",)])
    choices = [
        ("a",), ("c",), ("d",), ("a", "c"), ("c", "id"),
        ("a(2)",), ("k",), ("k(3)", "c"), ("d(1)", "a"),
    ]  # fmt: skip
    unique = tuple(chance.sample(choices, chance.choice([0, 1, 1, 2, 3])))
    mapped = not any("(" in part for part in key) and chance.random() < 0.2
    table = RandomTable(columns, key, unique, mapped=mapped)
    return _twisted(chance, table, collations) if twisted else table


def _twisted(chance: random.Random, table: RandomTable, collations: Sequence[str]) -> RandomTable:
    by_name = {column.name: column for column in table.columns}
    text = by_name[chance.choice(["k", "a"])]
    alter = "ALTER TABLE {t} "
    twists = {
        "a column of its own": (alter + "ADD note INT DEFAULT 7",),
        "a further unique key": (alter + f"ADD UNIQUE KEY x ({chance.choice(['a', 'c', 'd'])})",),
        "a further prefix key": (alter + f"ADD UNIQUE KEY x ({chance.choice(['k(2)', 'a(1)'])})",),
        "another collation": (alter + "MODIFY " + text.definition(chance.choice(collations)),),
        "a key over a column of its own": (
            alter + "ADD tenant VARCHAR(4) DEFAULT 'x'",
            alter + "ADD UNIQUE KEY x (a, tenant)",
        ),
        "no further unique key": tuple(alter + f"DROP KEY u{i}" for i in range(len(table.unique))),
        "a computed unique column": (
            alter + "ADD g INT AS (c % 3) STORED",
            alter + "ADD UNIQUE KEY x (g)",
        ),
        "another number of its own": (
            alter + "ADD own INT NOT NULL AUTO_INCREMENT, ADD UNIQUE KEY own (own)",
        ),
    }
    twist = chance.choice(sorted(twists))
    return replace(table, twist=twist, target=twists[twist])
