"""Values that a column would change in silence are found before they are written."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from setl.codec.binlog.values.value_number import shortest_float
from setl.model.schema import Capacity, Column, Kind
from setl.systems.mysql.values.fit import blanks_of, guards_for, is_watched
from setl.systems.mysql.values.literals import render_columns

DAY = "2026-01-02 "
SINGLE = Column("f", Kind.FLOAT, capacity=Capacity("float"))


def column(kind, type_, scale=None, **more):
    return Column("c", kind, capacity=Capacity(type_, scale=scale, **more))


def changed(column, value):
    return any(guard.finds([value]) for guard in guards_for([column]))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_of_four_bytes_comes_back_from_the_fewest_digits(number):
    written = shortest_float(number)
    assert not changed(SINGLE, written)
    ((literal,),) = [
        row.strip("()").split(",") for row in render_columns([SINGLE], [(written,)], for_key=True)
    ]
    assert struct.pack("<f", float(literal)) == struct.pack("<f", number)


def test_a_column_whose_values_all_fit_costs_nothing():
    fitting = [
        column(Kind.DATETIME, "datetime", 6),
        column(Kind.INTEGER, "bigint", 0),
        column(Kind.BINARY, "varbinary", length=9),
        Column("c", Kind.DECIMAL, 9, 2, capacity=Capacity("decimal", scale=2)),
        Column("c", Kind.DATETIME),
    ]
    assert guards_for(fitting) == ()


def test_what_only_the_server_can_tell():
    assert is_watched(column(Kind.TEXT, ""), column(Kind.DECIMAL, ""))
    assert is_watched(column(Kind.INTEGER, ""), column(Kind.TEXT, ""))
    assert not is_watched(column(Kind.ENUM, ""), column(Kind.TEXT, ""))
    assert not is_watched(column(Kind.BIT, ""), column(Kind.INTEGER, ""))


def test_empty_text_is_a_label_or_none():
    columns = [
        column(Kind.ENUM, "enum", labels=("a",)),
        column(Kind.ENUM, "enum", labels=("a", "")),
        column(Kind.ENUM, "varchar"),
    ]
    assert blanks_of(columns) == ((0, ""), (1, "\ud8010="))


TEXTS = st.text(alphabet=" aé\U0001f600", max_size=6)
CLOCKS = st.integers(0, 3).map(lambda n: f"{DAY}00:00:0{n // 2}.{n % 2 * 500:06d}")


@given(
    st.sampled_from([
        (column(Kind.TEXT, "varchar", length=3), TEXTS),
        (column(Kind.TEXT, "tinytext", length=8), TEXTS),
        (column(Kind.TEXT, "char", length=8), TEXTS),
        (column(Kind.DATETIME, "datetime", scale=3), CLOCKS),
        (column(Kind.DATETIME, "date"), CLOCKS),
        (column(Kind.FLOAT, "bigint"), st.floats(0, 2)),
    ]),
    st.data(),
)  # fmt: skip
def test_a_look_at_a_column_finds_what_a_look_at_each_value_finds(of, data):
    into, values = of
    rows = data.draw(st.lists(st.none() | values, max_size=5))
    for guard in guards_for([into]):
        each = any(v is not None and guard.changes(v) for v in rows)
        assert guard.finds(tuple(rows)) is each
