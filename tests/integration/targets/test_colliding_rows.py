"""Rows that are two at the source and one to the target: right, or an error, never merged (I21)."""

from dataclasses import replace

import pytest

from setl.errors import DataError, SharedTableError, TransientError
from setl.model.change import TargetChanges
from setl.model.schema import Column, Kind
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


class Place:
    def __init__(self, server):
        self.server = server
        self.schema = unique("collide")
        self.ticket = ticket_for(unique("p"), through=100)
        self.sink = sink_on(server)

    def table(self, columns, *rows):
        execute(self.server, f"CREATE TABLE {self.schema}.t ({columns})")
        for row in rows:
            execute(self.server, f"INSERT INTO {self.schema}.t VALUES {row}")

    def change(self, columns, upserts=(), deletes=(), version=100):
        return TargetChanges(
            (self.schema, "t"), columns, (0,), list(upserts), list(deletes),
            [version] * len(upserts), [version] * len(deletes),
        )  # fmt: skip

    def apply(self, columns, upserts=(), deletes=(), through=100, **ticket):
        change = self.change(columns, upserts, deletes, through)
        self.sink.apply(replace(self.ticket, through=through, **ticket), [change])

    def rows(self, what="*"):
        return rows_of(self.server, f"SELECT {what} FROM {self.schema}.t ORDER BY 1")


@pytest.fixture
def place(site_b):
    place = Place(site_b)
    create_system_tables(site_b)
    fence_for(site_b, place.ticket).raise_to(1, "n1")
    execute(site_b, f"CREATE DATABASE {place.schema}")
    yield place
    place.sink.close()
    execute(site_b, f"DROP DATABASE {place.schema}")


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
def test_two_rows_of_the_source_that_are_one_to_the_target(place, table, columns, rows, together):
    place.table(table)
    if not together:
        place.apply(columns, rows[:1])
    with pytest.raises(DataError, match=r"in the way: .*Duplicate entry .* for key"):
        place.apply(columns, rows if together else rows[1:], through=101)
    there = ", ".join(c.name for c in columns)
    assert place.rows(there) == ([] if together else [rows[0]])


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
def test_a_row_that_is_put_aside_stays_as_it_was(place, keys, more):
    place.table(f"id INT, name VARCHAR(5), {keys}{more}")
    place.apply((ID, NAME), [(1, "one"), (2, "two"), (3, "three")])
    place.sink.close()
    place.sink = sink_on(place.server, dead_letter_limit=10)
    place.apply((ID, NAME), [(1, "too long"), (2, "2"), (3, "two")], through=101)
    assert place.rows("id, name") == [(1, "one"), (2, "2"), (3, "two")]
    if "UNIQUE" in keys:
        # What stays for one that is put aside is in the way of another one, which stays, too.
        place.apply((ID, NAME), [(1, "2 long"), (2, "one"), (3, "3")], through=102)
        assert place.rows("id, name") == [(1, "one"), (2, "2"), (3, "3")]


def test_many_rows_in_a_line_behind_one_that_is_put_aside_are_an_error(place):
    place.table("id INT PRIMARY KEY, name VARCHAR(5) UNIQUE")
    before = [(i, str(i)) for i in range(100)]
    place.apply((ID, NAME), before)
    place.sink.close()
    place.sink = sink_on(place.server, dead_letter_limit=1000)
    with pytest.raises(DataError, match=r"too long .*not put aside") as raised:
        place.apply((ID, NAME), [(0, "too long"), *((i, str(i - 1)) for i in range(1, 100))],
                    through=101)  # fmt: skip
    assert raised.value.where["key"] == "0"
    assert place.rows() == before
    place.apply((ID, NAME), [(0, "x"), *((i, str(i - 1)) for i in range(1, 100))], through=101)
    assert place.rows("name")[:2] == [("0",), ("1",)]


@pytest.mark.parametrize("more", ["", ", UNIQUE (name)"])
def test_half_a_row_that_no_key_finds_is_refused(place, more):
    place.table(f"id INT, name VARCHAR(5), note INT{more}", "(1, 'one', 5)")
    half = replace(place.change((ID, NAME), [(1, "uno")]), partial=True)
    with pytest.raises(DataError, match="does not say all columns"):
        place.sink.apply(place.ticket, [half])
    assert place.rows() == [(1, "one", 5)]


@pytest.mark.family("mysql", why="MariaDB has no functional indexes")
def test_a_functional_unique_key(place):
    place.table("id INT PRIMARY KEY, name VARCHAR(40), UNIQUE ((UPPER(name)))")
    with pytest.raises(DataError, match=r"in the way: .*Duplicate entry .* for key"):
        place.apply((ID, NAME), [(1, "s"), (2, "S")])
    place.apply((ID, NAME), [(1, "s"), (2, "t")])
    place.apply((ID, NAME), [(2, "S"), (1, "T")], through=101)
    assert place.rows() == [(1, "T"), (2, "S")]


@pytest.mark.parametrize("unique_key", ["UNIQUE (name)", "UNIQUE (name(3))"])
def test_values_that_move_keep_what_only_the_target_has(place, unique_key):
    place.table(
        f"id INT PRIMARY KEY, name VARCHAR(40), note VARCHAR(9) DEFAULT 'n', at DATETIME(3),"
        f" raw VARBINARY(9), {unique_key}",
        "(1, 'abcK', 'one', '2020-01-02 03:04:05.678', x'00ff'), (3, 'c', 'three', NULL, NULL)",
    )
    place.apply((ID, NAME), [(2, "abcX"), (1, "zzz")])
    assert place.rows("id, name, note, CAST(at AS CHAR), HEX(raw)") == [
        (1, "zzz", "one", "2020-01-02 03:04:05.678", "00FF"),
        (2, "abcX", "n", None, None),
        (3, "c", "three", None, None),
    ]


def test_a_target_column_within_a_unique_key_keeps_its_value(place):
    place.table(
        "id INT PRIMARY KEY, name VARCHAR(20), tenant VARCHAR(20), UNIQUE (name, tenant)",
        "(1, 'a', 'kept')",
    )
    place.apply((ID, NAME), [(1, "b")])
    assert place.rows() == [(1, "b", "kept")]


def test_a_key_that_changes_in_case_only(place):
    place.table(f"k CHAR(20) {CI} PRIMARY KEY, name VARCHAR(20)", "('a', 'one row')")
    shared = replace(place.change((KEY, NAME), [("A", "x")]), shared=True)
    with pytest.raises(SharedTableError):
        place.sink.apply(place.ticket, [shared])
    place.apply((KEY, NAME), [("A", "one row")], [("a",)])
    assert place.rows() == [("A", "one row")]
    # It is not this row that was deleted at the source.
    place.apply((KEY, NAME), deletes=[("a",)], through=101)
    assert place.rows() == [("A", "one row")]
    place.apply((KEY, NAME), deletes=[("A",)], through=102)
    assert place.rows() == []


def test_what_is_delivered_again_changes_nothing(place):
    place.table("id INT PRIMARY KEY, name VARCHAR(40) UNIQUE")
    place.apply((ID, NAME), [(1, "u")], through=101)
    place.apply((ID, NAME), [(1, "v"), (2, "u")], through=102)
    place.apply((ID, NAME), [(1, "u")], through=101)
    assert place.rows() == [(1, "v"), (2, "u")]
    place.apply((ID, NAME), [(3, "w")], through=103)
    assert place.rows() == [(1, "v"), (2, "u"), (3, "w")]


def test_a_unique_key_that_is_added_between_two_loads(place):
    place.table("id INT PRIMARY KEY, name VARCHAR(40)")
    place.apply((ID, NAME), [(1, "a"), (2, "b")])
    execute(place.server, f"ALTER TABLE {place.schema}.t ADD UNIQUE (name)")
    with pytest.raises(DataError, match=r"in the way: .*Duplicate entry .* for key"):
        place.apply((ID, NAME), [(3, "a")], through=101)
    assert place.rows() == [(1, "a"), (2, "b")]
    place.apply((ID, NAME), [(1, "b"), (2, "a")], through=102)
    assert place.rows() == [(1, "b"), (2, "a")]


def test_children_stay_when_a_row_is_made_anew(place):
    place.table("id INT PRIMARY KEY, name VARCHAR(40) UNIQUE", "(1, 'a'), (2, 'b')")
    execute(
        place.server,
        f"CREATE TABLE {place.schema}.child (id INT PRIMARY KEY, parent INT,"
        f" FOREIGN KEY (parent) REFERENCES {place.schema}.t (id) ON DELETE CASCADE)",
        f"INSERT INTO {place.schema}.child VALUES (1, 1), (2, 2)",
    )
    place.apply((ID, NAME), [(1, "b"), (2, "a")])
    assert rows_of(place.server, f"SELECT * FROM {place.schema}.child") == [(1, 1), (2, 2)]


def test_a_divided_load_is_one_that_may_be_tried_again():
    assert issubclass(SharedTableError, TransientError)
