import itertools
import sqlite3
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setl.bulk.chunks import (
    WHOLE_TABLE,
    Chunk,
    chunk_columns,
    chunks_between,
    integer_chunks,
    is_sparse,
    joined_chunks,
)
from setl.model.schema import Column, Kind, RowSchema
from setl.systems.mysql.values.conditions import chunk_condition

A = Column("a", Kind.INTEGER)
B = Column("b", Kind.TEXT)
PERCENT = Column("50%", Kind.INTEGER)


def matching(columns, chunk, rows):
    """The rows that a chunk's condition selects, judged by a database."""
    connection = sqlite3.connect(":memory:")
    names = ", ".join(f"`{c.name}`" for c in columns)
    connection.execute(f"CREATE TABLE t ({names})")
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})", rows)
    sql, values = chunk_condition(columns, chunk)
    text = sql.replace("%s", "?").replace("%%", "%")
    return connection.execute(f"SELECT * FROM t WHERE {text}", values).fetchall()


keys_of_two = st.tuples(st.integers(-5, 5), st.text("abc", max_size=2))


@settings(deadline=None)
@given(rows=st.sets(keys_of_two, max_size=30), limits=st.sets(keys_of_two, max_size=5))
def test_every_row_is_in_one_chunk(rows, limits):
    found = []
    for chunk in chunks_between(sorted(limits)):
        found += matching((A, B), chunk, rows)
    assert sorted(found) == sorted(rows)


@given(lowest=st.integers(-(10**6), 10**6), width=st.integers(0, 10**6), parts=st.integers(-1, 20))
def test_integer_chunks_meet_and_are_open_at_both_ends(lowest, width, parts):
    chunks = integer_chunks(lowest, lowest + width, parts)
    assert 1 <= len(chunks) <= max(1, parts)
    assert chunks[0].low is None
    assert chunks[-1].high is None
    for one, two in itertools.pairwise(chunks):
        assert one.high == two.low
    limits: Any = [chunk.high and chunk.high[0] for chunk in chunks[:-1]]
    assert limits == sorted(set(limits))
    assert all(lowest <= limit < lowest + width for limit in limits)
    sizes = [b - a for a, b in zip([lowest - 1, *limits], [*limits, lowest + width], strict=True)]
    assert max(sizes) - min(sizes) <= 1


def test_a_chunk_of_one_column():
    rows = [(n,) for n in range(10)]
    assert matching((A,), Chunk((3,), (6,)), rows) == [(4,), (5,), (6,)]
    assert matching((A,), WHOLE_TABLE, rows) == rows


def test_no_limits_are_one_chunk():
    assert chunks_between([]) == [WHOLE_TABLE]


def test_percent_signs_in_names_are_doubled_for_placeholders():
    sql, _ = chunk_condition((PERCENT,), Chunk((3,), None))
    assert sql % 3 == "(`50%` > 3)"


@pytest.mark.parametrize(
    ("kinds", "usable"),
    [
        ([Kind.INTEGER, Kind.TEXT], 2),
        ([Kind.INTEGER, Kind.ENUM, Kind.INTEGER], 1),
        ([Kind.ENUM], 0),
        ([Kind.SET], 0),
        ([Kind.FLOAT], 0),
        ([Kind.DECIMAL, Kind.DATETIME], 2),
    ],
)
def test_a_table_is_cut_by_columns_that_sort_as_they_compare(kinds, usable):
    columns = tuple(Column(f"c{i}", kind) for i, kind in enumerate(kinds))
    schema = RowSchema("s", "t", columns, key=tuple(range(len(columns))))
    assert chunk_columns(schema) == columns[:usable]


@pytest.mark.parametrize(
    ("column", "usable"),
    [
        (Column("t", Kind.TEXT, collation=255), False),
        (Column("t", Kind.TEXT, collation=45), True),  # utf8mb4_general_ci
        (Column("t", Kind.TEXT, collation=46, binary_order=True), True),
        (Column("t", Kind.BINARY), True),
    ],
)
def test_a_key_with_the_beginning_of_a_column(column, usable):
    whole = RowSchema("s", "t", (column, A), key=(1, 0))
    assert chunk_columns(whole) == (A, column)
    begun = RowSchema("s", "t", (column, A), key=(1, 0), begun=frozenset({0}))
    assert chunk_columns(begun) == ((A, column) if usable else (A,))


def test_a_table_without_a_key_is_not_cut():
    assert chunk_columns(RowSchema("s", "t", (A, B))) == ()


def test_sparse():
    assert not is_sparse(1, 100, 100)
    assert not is_sparse(1, 400, 100)
    assert is_sparse(1, 401, 100)
    assert is_sparse(1, 2**62, 10**9)


@pytest.mark.parametrize(
    ("limits", "most", "joined"),
    [
        ([(None, 1), (1, 2), (2, 3), (5, 6), (6, None)], 9, [(None, 3), (5, None)]),
        ([(None, 1), (1, 2), (2, 3), (3, 4), (4, 5)], 2, [(None, 2), (2, 4), (4, 5)]),
        ([(1, 2)], 1, [(1, 2)]),
        ([(None, None)], 5, [(None, None)]),
        ([], 5, []),
    ],
)
def test_neighbours_are_joined(limits, most, joined):
    def chunk(low, high):
        return Chunk(None if low is None else (low,), None if high is None else (high,))

    found = joined_chunks([chunk(*pair) for pair in limits], most)
    assert found == [chunk(*pair) for pair in joined]
