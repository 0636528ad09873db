"""Targets whose unique keys and collations are not the source's (I21).

Two rows of the source are never merged, and no row goes that the stream did not remove: the
target is right, or there is an error.
"""

from dataclasses import replace

import pytest

from setl.errors import DataError, SharedTableError, TransientError
from setl.model.change import TargetChanges
from setl.model.schema import Column, Kind
from setl.systems.mysql.catalog import read_table
from setl.systems.mysql.sink.single_writer import single_writer
from setl.transform.placement import split
from tests.loading import (
    create_system_tables,
    execute,
    fence_for,
    rows_of,
    sink_on,
    ticket_for,
    unique,
)

ID = Column("id", Kind.INTEGER, binary_order=True)
NAME = Column("name", Kind.TEXT)
KEY = Column("k", Kind.TEXT, binary_order=True)
CI = "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
BIN = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"


IN_THE_WAY = "another row of the target conflicts with it: .*Duplicate entry .* for key"


class StartPoint:
    """A schema of its own, and a sink that writes there."""

    def __init__(self, server):
        self.server = server
        self.schema = unique("collide")
        self.ticket = ticket_for(self.schema)
        self.sink = sink_on(server, lock_wait=2)
        create_system_tables(server)
        execute(server, f"CREATE DATABASE {self.schema} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
        fence_for(server, self.ticket).raise_to(1, "n1")

    def table(self, definition, *rows):
        execute(self.server, f"CREATE TABLE {self.schema}.t ({definition})")
        self.run(*(f"INSERT INTO {{t}} VALUES {row}" for row in rows))

    def run(self, *statements):
        execute(self.server, *(s.format(t=f"{self.schema}.t") for s in statements))

    def changes(self, columns, upserts=(), deletes=(), key=(0,)):
        return TargetChanges((self.schema, "t"), columns, key, list(upserts), list(deletes))

    def write(self, columns, upserts=(), deletes=(), key=(0,)):
        return self.sink.apply(self.ticket, [self.changes(columns, upserts, deletes, key)])

    def apply(self, columns, upserts=(), deletes=(), through=100):
        """As `write`, of changes that have a position in the stream."""
        change = self.changes(columns, upserts, deletes)
        change.upsert_versions.extend([through] * len(change.upserts))
        change.delete_versions.extend([through] * len(change.deletes))
        self.sink.apply(replace(self.ticket, through=through), [change])

    def rows(self, what="*"):
        return rows_of(self.server, f"SELECT {what} FROM {self.schema}.t ORDER BY 1")


@pytest.fixture
def position(site_a):
    made = StartPoint(site_a)
    yield made
    made.sink.close()
    execute(site_a, f"DROP DATABASE {made.schema}")


@pytest.mark.parametrize(
    ("table", "columns", "rows"),
    [
        ("id INT PRIMARY KEY, name VARCHAR(40), UNIQUE (name)", (ID, NAME), [(1, "s"), (2, "s")]),
        ("id INT PRIMARY KEY, name VARCHAR(40), UNIQUE (name(3))", (ID, NAME),
         [(1, "abcX"), (2, "abcY")]),
        (f"k VARCHAR(40) {CI} PRIMARY KEY, name VARCHAR(40)", (KEY, NAME),
         [("a", "l"), ("A", "u")]),
        (f"k VARCHAR(40) {BIN} PRIMARY KEY, name VARCHAR(40)", (KEY, NAME),
         [("b", "0"), ("b ", "1")]),
        (f"k VARCHAR(40) {CI}, name VARCHAR(40), PRIMARY KEY (k(3))", (KEY, NAME),
         [("abcX", "0"), ("abcY", "1")]),
        ("id INT PRIMARY KEY, name VARCHAR(40), tenant INT DEFAULT 1, UNIQUE (name, tenant)",
         (ID, NAME), [(1, "s"), (2, "s")]),
        ("id INT PRIMARY KEY, name VARCHAR(40), n INT AS (LENGTH(name)) STORED UNIQUE",
         (ID, NAME), [(1, "s"), (2, "t")]),
        ("id INT PRIMARY KEY, name VARCHAR(40), only INT NOT NULL DEFAULT 5 UNIQUE",
         (ID, NAME), [(1, "s"), (2, "t")]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("together", [True, False])
def test_two_rows_of_the_source_that_are_one_to_the_target(
    position, table, columns, rows, together
):
    position.table(table)
    if not together:
        position.apply(columns, rows[:1])
    with pytest.raises(DataError, match=IN_THE_WAY):
        position.apply(columns, rows if together else rows[1:], through=101)
    there = ", ".join(c.name for c in columns)
    assert position.rows(there) == ([] if together else [rows[0]])


@pytest.mark.parametrize(
    ("keys", "more"),
    [
        ("PRIMARY KEY (id)", ""),
        ("PRIMARY KEY (id), UNIQUE (name)", ""),
        ("PRIMARY KEY (id), UNIQUE (name)", ", note INT"),
        ("KEY (id)", ""),
        ("KEY (id), UNIQUE (name)", ""),
    ],
)
def test_a_row_that_is_put_aside_stays_as_it_was(position, keys, more):
    position.table(f"id INT, name VARCHAR(5), {keys}{more}")
    position.apply((ID, NAME), [(1, "one"), (2, "two"), (3, "three")])
    position.sink.close()
    position.sink = sink_on(position.server, dead_letter_limit=10)
    position.apply((ID, NAME), [(1, "too long"), (2, "2"), (3, "two")], through=101)
    assert position.rows("id, name") == [(1, "one"), (2, "2"), (3, "two")]
    if "UNIQUE" in keys:
        # What stays for one that is put aside conflicts with another one, which stays, too.
        position.apply((ID, NAME), [(1, "2 long"), (2, "one"), (3, "3")], through=102)
        assert position.rows("id, name") == [(1, "one"), (2, "2"), (3, "3")]


def test_many_rows_in_a_line_behind_one_that_is_put_aside_are_an_error(position):
    position.table("id INT PRIMARY KEY, name VARCHAR(5) UNIQUE")
    before = [(i, str(i)) for i in range(100)]
    position.apply((ID, NAME), before)
    position.sink.close()
    position.sink = sink_on(position.server, dead_letter_limit=1000)
    with pytest.raises(DataError, match=r"too long .*not put aside") as raised:
        position.apply((ID, NAME), [(0, "too long"), *((i, str(i - 1)) for i in range(1, 100))],
                    through=101)  # fmt: skip
    assert raised.value.where["key"] == "0"
    assert position.rows() == before
    position.apply((ID, NAME), [(0, "x"), *((i, str(i - 1)) for i in range(1, 100))], through=101)
    assert position.rows("name")[:2] == [("0",), ("1",)]


@pytest.mark.parametrize("more", ["", ", UNIQUE (name)"])
def test_half_a_row_that_no_key_finds_is_refused(position, more):
    position.table(f"id INT, name VARCHAR(5), note INT{more}", "(1, 'one', 5)")
    half = replace(position.changes((ID, NAME), [(1, "uno")]), partial=True)
    with pytest.raises(DataError, match="does not say all columns"):
        position.sink.apply(position.ticket, [half])
    assert position.rows() == [(1, "one", 5)]


@pytest.mark.parametrize("unique_key", ["UNIQUE (name)", "UNIQUE (name(3))"])
def test_values_that_move_keep_what_only_the_target_has(position, unique_key):
    position.table(
        f"id INT PRIMARY KEY, name VARCHAR(40), note VARCHAR(9) DEFAULT 'n', at DATETIME(3),"
        f" raw VARBINARY(9), {unique_key}",
        "(1, 'abcK', 'one', '2020-01-02 03:04:05.678', x'00ff'), (3, 'c', 'three', NULL, NULL)",
    )
    position.apply((ID, NAME), [(2, "abcX"), (1, "zzz")])
    assert position.rows("id, name, note, CAST(at AS CHAR), HEX(raw)") == [
        (1, "zzz", "one", "2020-01-02 03:04:05.678", "00FF"),
        (2, "abcX", "n", None, None),
        (3, "c", "three", None, None),
    ]


def test_children_stay_when_a_row_is_made_again(position):
    position.table("id INT PRIMARY KEY, name VARCHAR(40) UNIQUE", "(1, 'a'), (2, 'b')")
    execute(
        position.server,
        f"CREATE TABLE {position.schema}.child (id INT PRIMARY KEY, parent INT,"
        f" FOREIGN KEY (parent) REFERENCES {position.schema}.t (id) ON DELETE CASCADE)",
        f"INSERT INTO {position.schema}.child VALUES (1, 1), (2, 2)",
    )
    position.apply((ID, NAME), [(1, "b"), (2, "a")])
    assert rows_of(position.server, f"SELECT * FROM {position.schema}.child") == [(1, 1), (2, 2)]


def test_a_divided_load_is_one_that_may_be_tried_again():
    assert issubclass(SharedTableError, TransientError)


@pytest.mark.parametrize("collation", ["utf8mb4_general_ci", "utf8mb4_unicode_ci"])
def test_keys_that_only_the_target_takes_for_one(position, collation):
    position.table(f"k VARCHAR(40) COLLATE {collation} PRIMARY KEY, name VARCHAR(20)")
    for one, other in [("a", "A"), ("b", "b "), ("e", "é"), ("c ", "c")]:
        with pytest.raises(DataError, match=IN_THE_WAY):
            position.write((KEY, NAME), [(one, "1"), (other, "2")])
        position.write((KEY, NAME), [(one, "1")])
        with pytest.raises(DataError, match=IN_THE_WAY):
            position.write((KEY, NAME), [(other, "2")])
        # A delete removes what it names and nothing else.
        position.write((KEY, NAME), [], [(other,)])
        assert position.rows("HEX(k)") == [(one.encode().hex().upper(),)]
        # A row that is renamed is there once.
        position.write((KEY, NAME), [(other, "2")], [(one,)])
        assert position.rows("HEX(k), name") == [(other.encode().hex().upper(), "2")]
        position.write((KEY, NAME), [], [(other,)])
    assert position.rows() == []


def test_a_rename_whose_delete_and_insert_would_be_dealt_to_two_tasks(position):
    position.table("k CHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, name VARCHAR(20)")
    position.write((KEY, NAME), [("a", "one row")])
    change = replace(
        position.changes((KEY, NAME), [("A", "one row")], [("a",)]),
        upsert_versions=[2],
        delete_versions=[2],
    )
    parts = split(change, None, 4)
    assert len(parts) == 2  # as the source's collation has it
    for part in parts.values():
        with pytest.raises(SharedTableError) as caught:
            position.sink.apply(position.ticket, [part])
        assert caught.value.where["table"] == f"{position.schema}.t"
    assert position.rows() == [("a", "one row")]
    with position.server.connect() as connection:
        described = read_table(connection, position.schema, "t")
    assert described is not None
    assert single_writer(described)
    [part] = split(change, None, 4, single_writer=True).values()
    position.sink.apply(position.ticket, [part])
    assert position.rows() == [("A", "one row")]


def test_a_unique_key_half_of_which_only_the_target_has(position):
    position.table(
        "id INT PRIMARY KEY, name VARCHAR(20), tenant VARCHAR(9) DEFAULT 'x', UNIQUE (name, tenant)"
    )
    position.run("INSERT INTO {t} VALUES (1, 'a', 'kept'), (2, 'b', 'x')")
    position.write((ID, NAME), [(1, "b")])
    assert position.rows() == [(1, "b", "kept"), (2, "b", "x")]
    with pytest.raises(DataError, match=IN_THE_WAY):
        position.write((ID, NAME), [(3, "b")])
    assert position.rows() == [(1, "b", "kept"), (2, "b", "x")]


def test_only_rows_that_go_in_a_circle_lose_what_the_target_alone_has(position):
    position.table("id INT PRIMARY KEY, name VARCHAR(9) UNIQUE, note INT DEFAULT 5")
    position.write((ID, NAME), [(i, str(i)) for i in range(6)])
    position.run("UPDATE {t} SET note = id")
    # 0 → 1 → 2 → gone is a chain, 3 and 4 swap, 5 stays.
    position.write((ID, NAME), [(0, "1"), (1, "2"), (2, None), (3, "4"), (4, "3"), (5, "5")])
    assert position.rows() == [
        (0, "1", 0), (1, "2", 1), (2, None, 2), (3, "4", 5), (4, "3", 5), (5, "5", 5),
    ]  # fmt: skip


def test_a_part_of_the_key(position):
    position.table("id INT PRIMARY KEY, name VARCHAR(9)")
    with pytest.raises(DataError, match=IN_THE_WAY):
        position.write((ID, NAME), [(1, "x"), (1, "y")], key=(0, 1))
    position.write((ID, NAME), [(1, "x")], key=(0, 1))
    position.write((ID, NAME), [(1, "y")], [(1, "x")], key=(0, 1))
    assert position.rows() == [(1, "y")]


@pytest.mark.family("mariadb", why="MySQL has no unique keys over whole BLOBs")
def test_a_unique_blob(position):
    position.table("id INT PRIMARY KEY, b BLOB, UNIQUE (b)")
    columns = (ID, Column("b", Kind.BINARY))
    position.write(columns, [(1, b"a"), (2, b"b")])
    position.write(columns, [(1, b"b"), (2, b"a")])
    assert position.rows() == [(1, b"b"), (2, b"a")]
    with pytest.raises(DataError, match=IN_THE_WAY):
        position.write(columns, [(3, b"a")])
    assert position.rows() == [(1, b"b"), (2, b"a")]


@pytest.mark.family("mysql", why="MariaDB has no indexes over expressions")
def test_a_unique_expression(position):
    position.table(
        "id INT PRIMARY KEY, name VARCHAR(9), UNIQUE ((lower(name))), UNIQUE ((id % 100))"
    )
    position.write((ID, NAME), [(1, "a"), (2, "b")])
    position.write((ID, NAME), [(1, "B"), (2, "A")])
    assert position.rows() == [(1, "B"), (2, "A")]
    for row in [(3, "a"), (101, "c")]:
        with pytest.raises(DataError, match=IN_THE_WAY):
            position.write((ID, NAME), [row])
    assert position.rows() == [(1, "B"), (2, "A")]


def test_a_unique_key_that_the_table_has_got_a_moment_ago(position):
    position.table("id INT PRIMARY KEY, name VARCHAR(9)")
    position.write((ID, NAME), [(1, "a"), (2, "b")])
    position.run("ALTER TABLE {t} ADD UNIQUE (name)")
    shared = replace(position.changes((ID, NAME), [(2, "a"), (3, "c")]), shared=True)
    with pytest.raises(SharedTableError):
        position.sink.apply(position.ticket, [shared])
    assert position.rows() == [(1, "a"), (2, "b")]
    with pytest.raises(DataError, match=IN_THE_WAY):
        position.write((ID, NAME), [(2, "a"), (3, "c")])
    position.write((ID, NAME), [(2, "a"), (1, "b")])
    assert position.rows() == [(1, "b"), (2, "a")]
    # And one that it has lost is no harm.
    position.run("ALTER TABLE {t} DROP KEY name")
    position.write((ID, NAME), [(3, "a")])
    assert len(position.rows()) == 3


def test_rows_of_somebody_else_stay(position):
    position.table("id INT PRIMARY KEY, name VARCHAR(9) UNIQUE")
    position.run("INSERT INTO {t} VALUES (100, 'local')")
    with pytest.raises(DataError, match=IN_THE_WAY) as caught:
        position.write((ID, NAME), [(1, "local")])
    assert "has gone back" in caught.value.hint
    assert position.rows() == [(100, "local")]


def test_a_load_that_begins_before_what_is_there(position):
    position.table("id INT PRIMARY KEY, name VARCHAR(9) UNIQUE")

    def load(through, upserts=(), deletes=(), generation=0):
        above = generation << 52
        change = replace(
            position.changes((ID, NAME), [row for row, _ in upserts], [key for key, _ in deletes]),
            upsert_versions=[above + version for _, version in upserts],
            delete_versions=[above + version for _, version in deletes],
        )
        position.sink.apply(replace(position.ticket, through=above + through), [change])

    load(5, [((1, "a"), 1), ((2, "b"), 5)])
    load(9, [((2, "a"), 9)], [((1,), 8)])
    assert position.rows() == [(2, "a")]
    # Cut in another way: 1 had 'a' at 7, and 2 has it from 9 on.
    load(7, [((1, "a"), 1), ((2, "b"), 5), ((3, "c"), 7)])
    assert position.rows() == [(2, "a")]
    load(12, [((2, "a"), 9), ((4, "d"), 12)], [((1,), 8), ((3,), 9)])
    assert position.rows() == [(2, "a"), (4, "d")]
    # Another life of the stream is not compared with this one; what conflicts with it is an error.
    with pytest.raises(DataError, match=IN_THE_WAY):
        load(5, [((1, "a"), 1)], generation=1)
    load(5, [((1, "a"), 1), ((2, "b"), 5)], generation=1)
    assert position.rows() == [(1, "a"), (2, "b"), (4, "d")]
