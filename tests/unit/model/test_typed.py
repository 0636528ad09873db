import json
import math
import pickle
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.errors import DataError
from setl.model.change import ABSENT, DecodedRows, Op
from setl.model.conversion import CONVERSIONS
from setl.model.schema import COLUMN_KINDS, Column, Kind, RowSchema
from setl.model.typed import TypedChange, TypedRow, typed_changes

FORMS = {
    "text": TypedRow.as_text,
    "integer": TypedRow.as_integer,
    "decimal": TypedRow.as_decimal,
    "float": TypedRow.as_float,
    "bytes": TypedRow.as_bytes,
    "date": TypedRow.as_date,
    "time": TypedRow.as_time,
    "duration": TypedRow.as_duration,
    "datetime": TypedRow.as_datetime,
    "json": TypedRow.as_json,
}
SAMPLES = {
    Kind.INTEGER: 7,
    Kind.DECIMAL: "7.00",
    Kind.FLOAT: 7.0,
    Kind.TEXT: "7",
    Kind.ENUM: "new",
    Kind.SET: "a,b",
    Kind.JSON: "[7]",
    Kind.DATE: "2026-11-21",
    Kind.TIME: "10:11:12.500000",
    Kind.DATETIME: "2026-11-21 10:11:12.500000",
    Kind.TIMESTAMP: "2026-11-21 10:11:12.500000",
    Kind.YEAR: 2026,
    Kind.BIT: 5,
    Kind.BINARY: b"\x00\xff",
    Kind.GEOMETRY: b"\0\0\0\0\x01",
}


def schema_of(*columns, key=()):
    return RowSchema("shop", "t", tuple(Column(n, k) for n, k in columns), key)


def one(kind, value):
    return TypedRow(schema_of(("c", kind)), (value,))


# ---- conversions


@pytest.mark.parametrize("kind", COLUMN_KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_each_kind_is_read_as_the_table_says_and_as_nothing_else(kind, form):
    row = one(kind, SAMPLES[kind])
    if kind in CONVERSIONS[form]:
        assert FORMS[form](row, "c") is not None
        return
    with pytest.raises(DataError, match=f"cannot be read as {form}") as caught:
        FORMS[form](row, "c")
    assert (caught.value.where["column"], caught.value.where["kind"]) == ("c", kind.value)
    assert "can be read as" in caught.value.hint


@pytest.mark.parametrize(
    ("form", "kind", "value", "expected"),
    [
        ("text", Kind.FLOAT, 0.1, "0.1"),
        ("text", Kind.INTEGER, 2**64 - 1, "18446744073709551615"),
        ("text", Kind.DECIMAL, "-0.50", "-0.50"),
        ("integer", Kind.DECIMAL, "12.00", 12),
        ("integer", Kind.FLOAT, 1e15, 10**15),
        ("integer", Kind.TEXT, "-007", -7),
        ("integer", Kind.TEXT, "1e3", 1000),
        ("decimal", Kind.DECIMAL, "9" * 65, Decimal("9" * 65)),
        ("decimal", Kind.FLOAT, 0.1, Decimal("0.1")),
        ("decimal", Kind.TEXT, "1.10", Decimal("1.10")),
        ("float", Kind.INTEGER, 2**60, float(2**60)),
        ("float", Kind.DECIMAL, "5924.38", 5924.38),
        ("float", Kind.TEXT, "-.5", -0.5),
        ("date", Kind.DATE, "2026-11-21", date(2026, 11, 21)),
        ("time", Kind.TIME, "23:59:59.999999", time(23, 59, 59, 999999)),
        ("time", Kind.TIME, "00:00:00.000000", time(0, 0)),
        ("duration", Kind.TIME, "-838:59:59.000000", -timedelta(hours=838, minutes=59, seconds=59)),
        ("duration", Kind.TIME, "-00:00:00.500000", -timedelta(milliseconds=500)),
        ("datetime", Kind.DATETIME, "2026-11-21 10:11:12.000001",
         datetime.fromisoformat("2026-11-21T10:11:12.000001")),
        ("datetime", Kind.TIMESTAMP, "2026-11-21 10:11:12.000000",
         datetime(2026, 11, 21, 10, 11, 12, tzinfo=UTC)),
        ("bytes", Kind.BINARY, b"", b""),
        ("json", Kind.TEXT, '{"a": [1, null, true, "x"]}', {"a": [1, None, True, "x"]}),
        ("json", Kind.JSON, "1.5", 1.5),
        ("json", Kind.JSON, "1.12345678901234567890", Decimal("1.12345678901234567890")),
        ("json", Kind.JSON, "1e400", Decimal("1e400")),
    ],
)  # fmt: skip
def test_conversions(form, kind, value, expected):
    found = FORMS[form](one(kind, value), "c")
    assert found == expected
    assert type(found) is type(expected)
    if isinstance(expected, datetime):
        assert found.tzinfo == expected.tzinfo


@pytest.mark.parametrize(
    ("form", "kind", "value", "reason"),
    [
        ("integer", Kind.DECIMAL, "12.50", "not a whole number"),
        ("integer", Kind.FLOAT, 0.5, "not a whole number"),
        ("integer", Kind.FLOAT, math.nan, "not a whole number"),
        ("integer", Kind.TEXT, " 7", "not a number"),
        ("integer", Kind.TEXT, "\u0667", "not a number"),
        ("integer", Kind.TEXT, "1e9999", "digits"),
        ("decimal", Kind.FLOAT, math.inf, "not a finite number"),
        ("decimal", Kind.TEXT, "", "not a number"),
        ("decimal", Kind.TEXT, "NaN", "not a number"),
        ("float", Kind.INTEGER, 2**53 + 1, "nearest float"),
        ("float", Kind.DECIMAL, "0.12345678901234567890", "nearest float"),
        ("float", Kind.TEXT, "1e999", "nearest float"),
        ("date", Kind.DATE, "0000-00-00", "zero date"),
        ("date", Kind.DATE, "2026-00-15", "part that is zero"),
        ("date", Kind.DATE, "2026-02-31", "no date in the calendar"),
        ("datetime", Kind.DATETIME, "0000-00-00 00:00:00.000000", "zero date"),
        ("time", Kind.TIME, "24:00:00.000000", "read it as a duration"),
        ("time", Kind.TIME, "-00:00:01.000000", "read it as a duration"),
        ("json", Kind.JSON, "{", "is not JSON"),
        ("json", Kind.TEXT, '{"a": 1, "a": 2}', "two members of one name"),
        ("json", Kind.TEXT, "NaN", "holds NaN"),
        ("json", Kind.TEXT, "1e99999999999999999999", "is not JSON"),
        ("json", Kind.TEXT, "[" * 100_000, "nested too deeply"),
    ],
)
def test_what_would_lose_something_is_refused(form, kind, value, reason):
    with pytest.raises(DataError, match=reason) as caught:
        FORMS[form](one(kind, value), "c")
    assert caught.value.where == {"table": "shop.t", "column": "c", "kind": kind.value}
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("form", ["date", "datetime"])
def test_a_zero_date_may_count_as_null_and_an_impossible_one_never(form):
    kind = Kind.DATE if form == "date" else Kind.DATETIME
    rest = "" if form == "date" else " 00:00:00.000000"
    for zero in ("0000-00-00", "2026-00-00", "0000-01-01"):
        assert FORMS[form](one(kind, zero + rest), "c", zero_is_null=True) is None
    with pytest.raises(DataError, match="no date in the calendar"):
        FORMS[form](one(kind, "2026-04-31" + rest), "c", zero_is_null=True)


@given(st.integers(-(2**63), 2**64 - 1))
def test_an_integer_is_the_same_in_every_form_that_takes_it(number):
    row = one(Kind.INTEGER, number)
    text = row.as_text(0)
    assert text is not None
    assert row.as_integer(0) == int(text) == row.as_decimal(0) == number
    try:
        assert int(row.as_float(0) or 0) == number
    except DataError:
        assert int(float(number)) != number


@given(st.decimals(allow_nan=False, allow_infinity=False, places=10, min_value=-(10**20)))
def test_a_decimal_never_changes_its_value(number):
    written = f"{number:f}"
    row = one(Kind.DECIMAL, written)
    assert row.as_decimal(0) == number
    for convert in (row.as_integer, row.as_float):
        try:
            found = convert(0)
        except DataError:
            continue
        assert Decimal(str(found)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_comes_back_from_text_and_decimal(number):
    row = one(Kind.FLOAT, number)
    assert float(row.as_text(0) or "") == number
    assert float(row.as_decimal(0) or 0) == number
    assert one(Kind.TEXT, row.as_text(0)).as_float(0) == number


@given(st.timedeltas(min_value=-timedelta(hours=9999), max_value=timedelta(hours=9999)))
def test_every_time_is_a_duration(length):
    seconds, micros = divmod(abs(length) // timedelta(microseconds=1), 10**6)
    sign = "-" if length < timedelta() else ""
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{micros:06d}"
    row = one(Kind.TIME, sign + clock)
    assert row.as_duration(0) == length
    if timedelta() <= length < timedelta(days=1):
        assert (datetime(2000, 1, 1, tzinfo=UTC) + length).time() == row.as_time(0)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(_json)
def test_json_is_what_was_written(value):
    assert one(Kind.JSON, json.dumps(value)).as_json(0) == value


# ---- rows


def test_null_and_absent_are_reported_apart():
    row = TypedRow(schema_of(("a", Kind.TEXT), ("b", Kind.DATE)), (None, ABSENT))
    assert (row.is_null("a"), row.is_absent("a"), row.value("a")) == (True, False, None)
    assert (row.is_null("b"), row.is_absent("b"), row.value("b")) == (False, True, ABSENT)
    assert [convert(row, "a") for convert in FORMS.values()] == [None] * len(FORMS)
    for convert in FORMS.values():
        with pytest.raises(DataError, match="absent from the record"):
            convert(row, "b")
    with pytest.raises(DataError, match="absent from the record"):
        row.as_date("b", zero_is_null=True)


def test_columns_go_by_name_in_any_case_and_by_position():
    row = TypedRow(schema_of(("Id", Kind.INTEGER), ("ÄGE", Kind.INTEGER)), (1, 2))
    assert row.as_integer("id") == row.as_integer("ID") == row.as_integer(0) == 1
    assert row.as_integer("äge") == row.as_integer(1) == 2
    for wrong in ("x", 2, -1):
        with pytest.raises(DataError, match="no column") as caught:
            row.value(wrong)
        assert "The record has Id, ÄGE" in caught.value.hint


def test_columns_that_differ_by_case_only_need_the_exact_name():
    row = TypedRow(
        schema_of(("a", Kind.INTEGER), ("A", Kind.INTEGER), ("bc", Kind.INTEGER)), (1, 2, 3)
    )
    assert (row.as_integer("a"), row.as_integer("A"), row.as_integer("BC")) == (1, 2, 3)
    row = TypedRow(schema_of(("ab", Kind.INTEGER), ("AB", Kind.INTEGER)), (1, 2))
    with pytest.raises(DataError, match="more than one column 'Ab'"):
        row.value("Ab")


def test_a_value_is_parsed_once_and_callers_partition_nothing(monkeypatch):
    row = TypedRow(schema_of(("d", Kind.DECIMAL), ("j", Kind.JSON)), ("1.5", '{"a": [1]}'))
    assert row.as_decimal("d") is row.as_decimal("D")
    first: Any = row.as_json("j")
    first["a"].append(2)
    first["b"] = 1
    monkeypatch.setitem(CONVERSIONS["json"], Kind.JSON, None)
    assert row.as_json("j") == {"a": [1]}


def test_a_refused_value_is_refused_again():
    row = one(Kind.DECIMAL, "1.5")
    for _ in range(2):
        with pytest.raises(DataError):
            row.as_integer("c")
    assert row.as_decimal("c") == Decimal("1.5")


def test_a_large_value_is_not_repeated_in_the_error():
    with pytest.raises(DataError) as caught:
        one(Kind.TEXT, "x" * 10_000).as_integer("c")
    assert len(str(caught.value)) < 300
    with pytest.raises(DataError, match="3 bytes cannot be read as text"):
        one(Kind.BINARY, b"abc").as_text("c")


# ---- changes

AB = schema_of(("a", Kind.INTEGER), ("b", Kind.TEXT), ("c", Kind.TEXT), key=(0,))


def test_an_update_says_what_it_changed():
    (change,) = typed_changes(DecodedRows(AB, Op.UPDATE, [((1, "x", None), (1, "y", None))]))
    assert (change.op, change.changed_columns, change.any_changed) == (Op.UPDATE, ("b",), True)
    assert (change.changed("B"), change.changed(0), change.changed("c")) == (True, False, False)
    assert change.before is not None
    assert (change.before.as_text("b"), change.row.as_text("b")) == ("x", "y")
    assert change.row is change.after
    with pytest.raises(DataError):
        change.changed("d")


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ((1, "x", None), (1, "x", None), ()),
        ((1, None, ""), (1, "", None), ("b", "c")),
        ((1, ABSENT, "x"), (ABSENT, "y", "x"), ("b",)),
        ((1, ABSENT, ABSENT), (1, None, ABSENT), ("b",)),
    ],
)
def test_null_and_absent_in_updates(before, after, changed):
    change = TypedChange(AB, Op.UPDATE, before, after)
    assert change.changed_columns == changed
    assert change.any_changed is bool(changed)


def test_an_insert_or_a_delete_changes_all_that_is_there():
    insert = TypedChange(AB, Op.INSERT, None, (1, None, ABSENT))
    assert (insert.before, insert.changed_columns) == (None, ("a", "b"))
    delete = TypedChange(AB, Op.DELETE, (1, "x", "y"), None)
    assert (delete.after, delete.changed_columns) == (None, ("a", "b", "c"))
    assert delete.row.as_integer("a") == 1


def test_changes_travel_between_processes():
    change = TypedChange(AB, Op.UPDATE, (1, "x", ABSENT), (1, "y", ABSENT))
    assert change.row.as_text("b") == "y"
    copy = pickle.loads(pickle.dumps(change))
    assert copy.changed_columns == ("b",)
    assert copy.row.is_absent("c")


@given(
    st.lists(
        st.tuples(*[st.sampled_from([None, ABSENT, "x", "y"])] * 3).map(lambda t: (1, *t[1:])),
        min_size=2,
        max_size=2,
    )
)
def test_columns_that_did_not_change_may_be_taken_from_either_row(images):
    before, after = images
    change = TypedChange(AB, Op.UPDATE, before, after)
    stored = set(AB.names) - set(change.changed_columns)
    for position, name in enumerate(AB.names):
        if name in stored:
            assert after[position] in (ABSENT, before[position])
