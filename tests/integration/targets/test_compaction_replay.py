"""Compacted loads against a replay of the same changes, row by row, on a real server."""

import random
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from setl.model.change import DecodedRows, Op, RowChange
from setl.model.schema import Column, Kind, RowSchema
from setl.transform.compaction import Compactor

# Key and unique value are text that the server compares without regard to case, so that two
# different images may hold what is one value to it.
COLUMNS = (Column("code", Kind.TEXT), Column("n", Kind.INTEGER), Column("email", Kind.TEXT))
TABLE = RowSchema("", "people", COLUMNS, key=(0,), unique=((2,),))
CODES, EMAILS = "aAbBcd", ["x", "X", "y", "Y", "z", None]


@pytest.fixture
def people(site_a):
    """Cursor in a schema of its own, with two equal tables."""
    schema = f"compaction_{uuid.uuid4().hex[:8]}"
    with site_a.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {schema} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        cursor.execute(f"USE {schema}")
        for table in ("replayed", "compacted"):
            cursor.execute(
                f"CREATE TABLE {table} (code VARCHAR(9) PRIMARY KEY, n INT, email VARCHAR(9),"
                " UNIQUE KEY (email)) ENGINE=InnoDB"
            )
        yield cursor
        cursor.execute(f"DROP DATABASE {schema}")


def fold(text):
    return None if text is None else text.lower()


def histories(chance, table, length) -> Iterator[tuple[Op, Any, Any]]:
    """Changes that the server would accept one by one; `table` (key → row) follows them."""
    for number in range(length):
        row = (chance.choice(CODES), number, chance.choice(EMAILS))
        taken = {fold(r[2]) for r in table.values() if r[2] is not None}
        same = table.get(fold(row[0]))
        choice = chance.random()
        if same is None and choice < 0.4:
            if fold(row[2]) not in taken:
                table[fold(row[0])] = row
                yield Op.INSERT, None, row
        elif table and choice < 0.8:
            old = table[chance.choice(sorted(table))]
            if same is not None and same is not old:
                row = (old[0], *row[1:])
            if fold(row[2]) in taken - {fold(old[2])}:
                row = (*row[:2], None if chance.random() < 0.5 else old[2])
            del table[fold(old[0])]
            table[fold(row[0])] = row
            yield Op.UPDATE, old, row
        elif table:
            old = table.pop(chance.choice(sorted(table)))
            yield Op.DELETE, old, None


def replay(cursor, op, before, after):
    if op is Op.INSERT:
        cursor.execute("INSERT INTO replayed VALUES (%s, %s, %s)", after)
    elif op is Op.DELETE:
        cursor.execute("DELETE FROM replayed WHERE code = %s", before[:1])
    else:
        changed = cursor.execute(
            "UPDATE replayed SET code = %s, n = %s, email = %s WHERE code = %s",
            (*after, before[0]),
        )
        assert changed == 1


def load(cursor, group):
    cursor.execute("BEGIN")
    for key in group.deletes:
        cursor.execute("DELETE FROM compacted WHERE code = %s", key)
    for row in group.upserts:
        cursor.execute("REPLACE INTO compacted VALUES (%s, %s, %s)", row)
    cursor.execute("COMMIT")


def rows(cursor, table):
    cursor.execute(f"SELECT code, n, email FROM {table} ORDER BY code")
    return cursor.fetchall()


@pytest.mark.parametrize("seed", range(25))
def test_loads_leave_what_a_replay_leaves(people, seed):
    chance, model = random.Random(seed), {}
    compactor, loads, moved = Compactor(), 0, 0
    for version, (op, before, after) in enumerate(histories(chance, model, 200)):
        replay(people, op, before, after)
        moved += op is Op.UPDATE and before[0] != after[0]
        compactor.add_many(DecodedRows(TABLE, op, [(before, after)]), version)
        if chance.random() < 0.1:
            for group in compactor.survivors():
                load(people, group)
            assert rows(people, "compacted") == rows(people, "replayed"), f"load {loads}"
            compactor, loads = Compactor(), loads + 1
    for group in compactor.survivors():
        load(people, group)
    expected = tuple(model[key] for key in sorted(model))
    assert rows(people, "replayed") == expected
    assert rows(people, "compacted") == expected
    assert loads > 3
    assert moved > 10


def test_keys_and_unique_values_that_change_positions(people):
    a, b = ("a", 1, "x"), ("b", 2, "y")
    changes = [
        # The keys, over a third one.
        (Op.UPDATE, a, ("c", 1, "x")),
        (Op.UPDATE, b, ("a", 2, "y")),
        (Op.UPDATE, ("c", 1, "x"), ("b", 1, "x")),
        # The unique values, over null; the row that takes a value first is changed last.
        (Op.UPDATE, ("a", 2, "y"), ("a", 2, None)),
        (Op.UPDATE, ("b", 1, "x"), ("b", 1, "y")),
        (Op.UPDATE, ("a", 2, None), ("a", 2, "x")),
        (Op.UPDATE, ("b", 1, "y"), ("b", 3, "y")),
    ]
    for table in ("replayed", "compacted"):
        people.execute(f"INSERT INTO {table} VALUES ('a', 1, 'x'), ('b', 2, 'y')")
    compactor = Compactor()
    for version, (op, before, after) in enumerate(changes):
        replay(people, op, before, after)
        compactor.add_many(DecodedRows(TABLE, op, [(before, after)]), version)
    [group] = compactor.survivors()
    load(people, group)
    assert rows(people, "compacted") == rows(people, "replayed")
    assert rows(people, "replayed") == (("a", 2, "x"), ("b", 3, "y"))


def test_the_server_takes_two_spellings_of_a_key_for_one(people):
    # Why deletes come before upserts, and why such a table is not shared out among tasks.
    people.execute("INSERT INTO compacted VALUES ('a', 1, NULL)")
    compactor = Compactor()
    compactor.add(TABLE, RowChange(Op.UPDATE, ("a", 1, None), ("A", 2, None), 1))
    [group] = compactor.survivors()
    assert (group.deletes, group.upserts) == ([("a",)], [("A", 2, None)])
    load(people, group)
    assert rows(people, "compacted") == (("A", 2, None),)
    people.execute("DELETE FROM compacted WHERE code = %s", group.deletes[0])
    assert rows(people, "compacted") == ()
