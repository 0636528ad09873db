"""Random changes of rows, over few values, so that keys and unique values meet and move."""

from __future__ import annotations

import random
from collections.abc import Callable

from setl_drills.oracle.sessions import Session
from setl_drills.oracle.shapes import Column, Shape
from setl_drills.oracle.values import SPATIAL, random_value

_NO_KEYS = ("json", "vector", *SPATIAL)
"""Types that count as BLOB."""


class Rows:
    """Writes statements for one table, as a session would send them."""

    def __init__(
        self, chance: random.Random, session: Session, shape: Shape, *, odd: float | None = None
    ) -> None:
        """Describe it.

        Args:
            chance: decides.
            session: sends the statements.
            shape: the table.
            odd: how often a value is one that is seldom seen, see `random_value`; None for more
                of them in sessions that take whatever comes.
        """
        self._chance = chance
        self._session = session
        self._shape = shape
        self._odd = (0.1 if session.strict else 0.25) if odd is None else odd

    def some(self) -> list[str]:
        """One statement or, for a swap, those that belong together."""
        kinds: dict[Callable[[], list[str]], int] = {
            self.insert: 8,
            self.update: 10,
            self.delete: 4,
            self.replace: 3,
            self.upsert: 3,
            self.move_all: 1,
            self.swap: 3,
            self.reinsert: 2,
            self.copy: 1,
        }
        return self._chance.choices(list(kinds), list(kinds.values()))[0]()

    def with_image(self, image: str) -> list[str]:
        """A statement that arrives though the session does not log whole rows."""
        columns = self._shape.columns
        left_out = image == "NOBLOB" and any(c.long or c.kind in _NO_KEYS for c in columns)
        if left_out or any(column.computed for column in columns):
            return self.delete()
        kinds = [
            lambda: self._insert(all_columns=True),
            lambda: self.update(keys=False),
            self.delete,
        ]
        return self._chance.choice(kinds)()

    def insert(self) -> list[str]:
        """An INSERT of one row or a few."""
        verb = self._passing if self._chance.random() < 0.15 else "INSERT"
        return self._insert(verb)

    def replace(self) -> list[str]:
        """A REPLACE, which may take several rows away."""
        return self._insert("REPLACE")

    def upsert(self) -> list[str]:
        """An INSERT … ON DUPLICATE KEY UPDATE."""
        column = self._session.name(self._chance.choice(self._shape.plain).name)
        new = self._chance.choice([f"VALUES({column})", "DEFAULT", "NULL"])
        return self._insert(tail=f" ON DUPLICATE KEY UPDATE {column} = {new}")

    def update(self, *, keys: bool = True) -> list[str]:
        """An UPDATE of rows that agree in one column; `keys` says whether keys may change."""
        plain, key = self._shape.plain, self._shape.keys
        pool = key if key and self._chance.random() < 0.2 else plain
        if not keys:
            pool = [column for column in plain if column not in key] or plain
        columns = self._chance.sample(pool, min(len(pool), self._chance.choice([1, 1, 2, 3])))
        sets = ", ".join(f"{self._session.name(c.name)} = {self._new(c)}" for c in columns)
        return [f"UPDATE {self._table} SET {sets} WHERE {self._where()}{self._limit()}"]

    def delete(self) -> list[str]:
        """A DELETE of rows that agree in one column."""
        return [f"DELETE FROM {self._table} WHERE {self._where()}{self._limit()}"]

    def move_all(self) -> list[str]:
        """All numbers of a column become one more, or all times an hour later."""
        numbers = [c for c in self._shape.plain if c.whole]
        if not numbers:
            return self.update()
        name = self._session.name(self._chance.choice(numbers).name)
        way, order = self._chance.choice([("+ 1", "DESC"), ("- 1", "ASC"), ("* 2", "DESC")])
        return [f"UPDATE {self._table} SET {name} = {name} {way} ORDER BY {name} {order}"]

    def swap(self) -> list[str]:
        """Two values of a column change places, by way of a third."""
        column = self._chance.choice(self._shape.keys or self._shape.plain)
        name = self._session.name(column.name)
        first, second, third = (self.value(column) for _ in range(3))
        if column.whole:
            third = "99"
        moves = [(third, first), (first, second), (second, third)]
        return [
            f"UPDATE {self._table} SET {name} = {new} WHERE {name} <=> {old}" for new, old in moves
        ]

    def reinsert(self) -> list[str]:
        """Rows are taken away, and others with the same values put in."""
        return [*self.delete(), *self.delete(), *self.insert(), *self.insert()]

    def copy(self) -> list[str]:
        """Rows are copied within the table, with another value in one column."""
        plain = self._shape.plain
        changed = self._chance.choice(self._shape.keys or plain)
        names = ", ".join(self._session.name(c.name) for c in plain)
        chosen = [self.value(c) if c is changed else self._session.name(c.name) for c in plain]
        limit = self._chance.choice(["", " LIMIT 1", " LIMIT 5"])
        source = f"SELECT {', '.join(chosen)} FROM {self._table}{limit}"
        return [f"{self._passing} INTO {self._table} ({names}) {source}"]

    def bulk(self, count: int) -> list[str]:
        """Many rows at once, whose whole numbers count up."""
        plain = self._shape.plain
        names = ", ".join(self._session.name(c.name) for c in plain)
        chosen = [
            f"n % {self._chance.choice([count * 2, 127, 5])}"
            if c.whole and not c.type.startswith("tinyint(1)")
            else self.value(c)
            for c in plain
        ]
        counted = f"SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < {count}"
        source = f"WITH RECURSIVE s AS ({counted}) SELECT {', '.join(chosen)} FROM s"
        return [f"{self._passing} INTO {self._table} ({names}) {source}"]

    def from_other(self, other: Shape) -> list[str]:
        """Rows of another table, column by column, whatever their types."""
        pairs = list(zip(self._shape.plain, other.columns, strict=False))
        names = ", ".join(self._session.name(c.name) for c, _ in pairs)
        chosen = ", ".join(self._session.name(c.name) for _, c in pairs)
        source = self._session.name(other.name)
        verb = self._chance.choice([self._passing, "INSERT", "REPLACE"])
        return [f"{verb} INTO {self._table} ({names}) SELECT {chosen} FROM {source} LIMIT 20"]

    def with_other(self, other: Shape) -> list[str]:
        """An UPDATE or DELETE over two tables."""
        own, its = self._table, self._session.name(other.name)
        mine, theirs = self._chance.choice(self._shape.plain), self._chance.choice(other.columns)
        key = f"{own}.{self._session.name(mine.name)} = {its}.{self._session.name(theirs.name)}"
        if self._chance.random() < 0.5:
            both = f"{own}, {its}" if self._chance.random() < 0.5 else own
            return [f"DELETE {both} FROM {own} JOIN {its} ON {key}"]
        changed = self._chance.choice(self._shape.plain)
        to = self._session.name(changed.name)
        return [f"UPDATE {own} JOIN {its} ON {key} SET {own}.{to} = {self.value(changed)}"]

    @property
    def _table(self) -> str:
        return self._session.name(self._shape.name)

    @property
    def _passing(self) -> str:
        """What inserts where there are such keys; IGNORE makes a zero date of what is none."""
        exact = not self._session.odd_dates and any(c.dated for c in self._shape.columns)
        return "REPLACE" if exact else "INSERT IGNORE"

    def value(self, column: Column) -> str:
        """A random literal for a column."""
        odd = self._odd if self._session.odd_dates or not column.dated else 0
        return self._session.literal(random_value(self._chance, column, odd=odd))

    def _new(self, column: Column) -> str:
        name = self._session.name(column.name)
        if self._chance.random() < 0.08:
            return "DEFAULT"
        if column.whole and self._chance.random() < 0.2:
            return f"{name} + 1"
        if column.text and self._chance.random() < 0.1:
            return f"CONCAT({name}, {self.value(column)})"
        if column.kind == "json" and self._chance.random() < 0.4:
            return self._partial(name)
        return self.value(column)

    def _partial(self, name: str) -> str:
        """A change of a part of a document, which a server may log as such."""
        value = self._chance.choice(["1", "'x'", "NULL", "1.50", "CAST('[1]' AS CHAR)"])
        changed = [f"JSON_SET({name}, '$.a', {value})", f"JSON_REMOVE({name}, '$.a')"]
        return self._chance.choice([*changed, f"JSON_REPLACE({name}, '$.b', {value})"])

    def _where(self) -> str:
        keys = self._shape.keys
        pool = keys if keys and self._chance.random() < 0.7 else list(self._shape.plain)
        column = self._chance.choice(pool)
        name = self._session.name(column.name)
        operator = ">" if self._chance.random() < 0.1 else "<=>"
        return f"{name} {operator} {self.value(column)}"

    def _limit(self) -> str:
        return self._chance.choice(["", "", " LIMIT 1", " LIMIT 3"])

    def _insert(
        self, verb: str = "INSERT", tail: str = "", *, all_columns: bool = False
    ) -> list[str]:
        columns = [
            column
            for column in self._shape.plain
            if all_columns
            or self._chance.random()
            > (0.6 if column.counted else 0.15 if column.has_default else 0)
        ]
        names = ", ".join(self._session.name(column.name) for column in columns)
        rows = [
            f"({', '.join(self._given(column) for column in columns)})"
            for _ in range(self._chance.choice([1, 1, 1, 2, 3, 6]))
        ]
        return [f"{verb} INTO {self._table} ({names}) VALUES {', '.join(rows)}{tail}"]

    def _given(self, column: Column) -> str:
        if column.has_default and self._chance.random() < 0.05:
            return "DEFAULT"
        return self.value(column)
