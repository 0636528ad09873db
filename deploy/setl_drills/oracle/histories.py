"""Random statements over few values, so that keys and unique values meet and move."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pymysql

from setl_drills.oracle.tables import RandomTable
from setl_embedded import DatabaseServer


def write_history(
    server: DatabaseServer, name: str, table: RandomTable, chance: random.Random, count: int
) -> int:
    """Run statements in transactions, those that the server refuses left out.

    Returns:
        How many of them the server took.
    """
    taken = 0
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        writer = _Writer(cursor, name, table, chance)
        open_for = 0
        for _ in range(count):
            try:
                writer.run_one()
                taken += 1
            except (pymysql.IntegrityError, pymysql.DataError, pymysql.OperationalError) as error:
                if error.args[0] in {1205, 1213, 2006, 2013}:
                    raise
            open_for -= 1
            if open_for <= 0:
                connection.commit()
                open_for = chance.choice([1, 1, 2, 5, 30])
        connection.commit()
    return taken


class _Writer:
    """Runs one statement after another."""

    def __init__(self, cursor: Any, name: str, table: RandomTable, chance: random.Random) -> None:
        self._cursor = cursor
        self._name = name
        self._table = table
        self._chance = chance

    def run_one(self) -> None:
        """Run a random statement."""
        kinds = {
            self._insert: 8,
            self._update: 12,
            self._delete: 4,
            self._replace: 3,
            self._upsert: 2,
            self._move_all: 1,
            self._swap: 4,
            self._delete_many: 1,
        }
        self._chance.choices(list(kinds), list(kinds.values()))[0]()

    def _row(self) -> list[Any]:
        return [self._chance.choice(column.values) for column in self._table.columns]

    def _insert(self, verb: str = "INSERT", tail: str = "") -> None:
        rows = [self._row() for _ in range(self._chance.choice([1, 1, 2, 3]))]
        marks = f"({', '.join(['%s'] * len(rows[0]))})"
        names = ", ".join(self._table.names)
        self._cursor.execute(
            f"{verb} INTO {self._name} ({names}) VALUES {', '.join([marks] * len(rows))}{tail}",
            [value for row in rows for value in row],
        )

    def _replace(self) -> None:
        self._insert("REPLACE")

    def _upsert(self) -> None:
        changed = self._chance.choice(self._table.names)
        self._insert(tail=f" ON DUPLICATE KEY UPDATE {changed} = VALUES({changed}), n = n + 1")

    def _some(self, count: int) -> list[Sequence[Any]]:
        names = ", ".join(self._table.names)
        self._cursor.execute(f"SELECT {names} FROM {self._name}")
        # Servers give rows in the order of any key they like; a seed has to mean the same.
        rows = sorted(self._cursor.fetchall(), key=repr)
        return self._chance.sample(rows, min(count, len(rows)))

    def _where(self) -> str:
        return " AND ".join(f"{name} <=> %s" for name in self._table.names) + " LIMIT 1"

    def _update(self) -> None:
        for row in self._some(1):
            columns = self._chance.sample(self._table.columns, self._chance.choice([1, 1, 2, 3]))
            sets = ", ".join(f"{column.name} = %s" for column in columns)
            values = [self._chance.choice(column.values) for column in columns]
            statement = f"UPDATE {self._name} SET {sets} WHERE {self._where()}"
            self._cursor.execute(statement, [*values, *row])

    def _delete(self) -> None:
        for row in self._some(1):
            self._cursor.execute(f"DELETE FROM {self._name} WHERE {self._where()}", row)

    def _delete_many(self) -> None:
        number = self._chance.choice(range(7))
        self._cursor.execute(f"DELETE FROM {self._name} WHERE id = %s OR c = %s", [number, number])

    def _move_all(self) -> None:
        name, order = self._chance.choice([("id", "DESC"), ("c", "DESC")])
        self._cursor.execute(f"UPDATE {self._name} SET {name} = {name} + 1 ORDER BY {name} {order}")

    def _swap(self) -> None:
        """Two rows change places in one column: one is taken out and put back."""
        if len(pair := self._some(2)) < 2:
            return
        at = self._chance.randrange(len(self._table.names))
        first, second = list(pair[0]), list(pair[1])
        first[at], second[at] = second[at], first[at]
        for row in pair:
            self._cursor.execute(f"DELETE FROM {self._name} WHERE {self._where()}", row)
        marks = ", ".join(["%s"] * len(first))
        names = ", ".join(self._table.names)
        for row in (second, first):
            self._cursor.execute(f"INSERT INTO {self._name} ({names}) VALUES ({marks})", row)
