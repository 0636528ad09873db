"""Values of Python written into rows, and read back as what they were."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.errors import DataError
from setl.model.change import ABSENT, Op
from setl.model.conversion import UnfitError
from setl.model.rewriting import column_for, column_value
from setl.model.schema import COLUMN_KINDS, Column, Kind, RowSchema
from setl.model.typed import TypedChange, TypedRow

NAIVE = datetime.fromisoformat("2026-01-02")
SCHEMA = RowSchema(
    "shop",
    "orders",
    (
        Column("id", Kind.INTEGER),
        Column("name", Kind.TEXT),
        Column("price", Kind.DECIMAL, precision=10, scale=2),
    ),
    key=(0,),
)


@pytest.mark.parametrize(
    ("kind", "value", "written"),
    [
        (Kind.INTEGER, True, 1),
        (Kind.INTEGER, Decimal("7.0"), 7),
        (Kind.BIT, 2**64 - 1, 2**64 - 1),
        (Kind.FLOAT, 3, 3.0),
        (Kind.DECIMAL, 0.1, "0.1"),
        (Kind.DECIMAL, Decimal("1E+3"), "1000"),
        (Kind.DECIMAL, Decimal("-0.00"), "0.00"),
        (Kind.TEXT, "ö", "ö"),
        (Kind.SET, ["a", "b"], "a,b"),
        (Kind.JSON, {"a": [1, None]}, '{"a": [1, null]}'),
        (Kind.JSON, '{"a":1.00}', '{"a":1.00}'),
        (Kind.DATE, date(2026, 2, 3), "2026-02-03"),
        (Kind.DATE, "0000-00-00", "0000-00-00"),
        (Kind.TIME, timedelta(hours=-30, microseconds=-1), "-30:00:00.000001"),
        (Kind.TIME, time(1, 2, 3), "01:02:03.000000"),
        (Kind.TIME, "838:59:59", "838:59:59.000000"),
        (Kind.DATETIME, datetime.fromisoformat("2026-01-02T03:00"), "2026-01-02 03:00:00.000000"),
        (Kind.DATETIME, "2026-00-00 00:00:00.000000", "2026-00-00 00:00:00.000000"),
        (
            Kind.TIMESTAMP,
            datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=2))),
            "2026-01-02 01:00:00.000000",
        ),
        (Kind.BINARY, bytearray(b"\0x"), b"\0x"),
        *((kind, None, None) for kind in COLUMN_KINDS),
    ],
)
def test_values_take_the_form_of_their_kind(kind, value, written):
    assert column_value(Column("c", kind), value) == written


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Kind.INTEGER, 1.5),
        (Kind.INTEGER, "x"),
        (Kind.INTEGER, b"1"),
        (Kind.DECIMAL, Decimal("NaN")),
        (Kind.FLOAT, Decimal("0.1000000000000000000001")),
        (Kind.TEXT, 1),
        (Kind.SET, ["a,b"]),
        (Kind.JSON, {"a": object()}),
        (Kind.JSON, float("nan")),
        (Kind.DATE, NAIVE),
        (Kind.DATE, "2026-02-30"),
        (Kind.TIME, "25 o'clock"),
        (Kind.TIME, time(1, tzinfo=UTC)),
        (Kind.DATETIME, datetime(2026, 1, 2, tzinfo=UTC)),
        (Kind.TIMESTAMP, NAIVE),
        (Kind.TIMESTAMP, "2026-01-02"),
        (Kind.BINARY, "text"),
    ],
)
def test_what_a_kind_cannot_hold_is_refused(kind, value):
    with pytest.raises(UnfitError):
        column_value(Column("c", kind), value)


class Status(str, Enum):  # noqa: UP042 - it is its `str` that differs from its text
    ACTIVE = "active"


class Level(IntEnum):
    HIGH = 3


class Number(float):
    """As NumPy's."""

    def __repr__(self):
        return f"np.float64({float.__repr__(self)})"


class Moment(datetime):
    """As pandas' Timestamp."""

    nanosecond = 0


class FinerMoment(Moment):
    nanosecond = 1


class NoMoment(datetime):
    """As pandas' NaT, which is a datetime."""

    def isoformat(self, *_, **__):
        return "NaT"


class FinerLength(timedelta):
    """As pandas' Timedelta."""

    nanoseconds = 1


@pytest.mark.parametrize(
    ("kind", "value", "written"),
    [
        (Kind.TEXT, Status.ACTIVE, "active"),
        (Kind.SET, {"b", Status.ACTIVE, "c"}, "active,b,c"),
        (Kind.JSON, Status.ACTIVE, "active"),
        (Kind.INTEGER, Level.HIGH, 3),
        (Kind.FLOAT, Number(0.1), 0.1),
        (Kind.DECIMAL, Number(0.1), "0.1"),
        (Kind.DATETIME, Moment(2026, 1, 2), "2026-01-02 00:00:00.000000"),
    ],
)
def test_of_a_subclass_its_value_counts_and_not_how_it_writes_itself(kind, value, written):
    found = column_value(Column("c", kind), value)
    assert (found, type(found)) == (written, type(written))
    assert f"{found}" == f"{written}"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Kind.DATETIME, NoMoment(1, 1, 1)),
        (Kind.DATETIME, FinerMoment(2026, 1, 2)),
        (Kind.TIMESTAMP, FinerMoment(2026, 1, 2, tzinfo=UTC)),
        (Kind.TIME, FinerLength(1)),
    ],
)
def test_what_pandas_has_and_no_column_is_refused(kind, value):
    with pytest.raises(UnfitError):
        column_value(Column("c", kind), value)


def test_decimals_get_the_digits_of_their_column_and_lose_none():
    price = SCHEMA.columns[2]
    assert column_value(price, 3) == "3.00"
    assert column_value(price, Decimal("3.1000")) == "3.10"
    with pytest.raises(UnfitError, match="more than 2 digits"):
        column_value(price, Decimal("3.001"))


@given(
    st.one_of(
        st.integers(-(2**63), 2**64),
        st.decimals(allow_nan=False, allow_infinity=False, places=4),
        st.datetimes(),
        st.datetimes(timezones=st.just(UTC)),
        st.timedeltas(timedelta(hours=-838), timedelta(hours=838)),
        st.dates(),
        st.binary(),
        st.text(),
    )
)
def test_an_added_column_reads_back_as_what_was_put_in(value):
    column = column_for("c", value)
    row = TypedRow(RowSchema("s", "t", (column,)), (column_value(column, value),))
    reads = {
        int: row.as_integer,
        Decimal: row.as_decimal,
        datetime: row.as_datetime,
        timedelta: row.as_duration,
        date: row.as_date,
        bytes: row.as_bytes,
        str: row.as_text,
    }
    assert reads[type(value)](0) == value


def change(op=Op.UPDATE):
    before = None if op is Op.INSERT else (1, "old", "1.00")
    return TypedChange(SCHEMA, op, before, None if op is Op.DELETE else (1, "new", "2.00"))


def test_new_values_stand_in_the_row_after():
    changed = change().with_values({"NAME": "x", "total": 5})
    assert changed.schema.names == ("id", "name", "price", "total")
    assert changed.images == ((1, "old", "1.00", ABSENT), (1, "x", "2.00", 5))
    assert changed.changed_columns == ("name", "price", "total")


def test_a_delete_has_no_row_to_put_values_in():
    assert change(Op.DELETE).with_values({"name": "x"}).images == ((1, "old", "1.00"), None)


def test_a_key_is_not_changed_on_one_side_only():
    with pytest.raises(DataError, match="without the row before it"):
        change().with_values({"ID": 7})


def test_a_value_that_does_not_fit_is_named_with_its_column():
    with pytest.raises(DataError, match="not a number") as refused:
        change().with_values({"price": b"x"})
    assert refused.value.where == {"table": "shop.orders", "column": "price"}


@pytest.mark.parametrize("op", Op)
def test_both_rows_are_mapped_alike(op):
    def shifted(row):
        return {"id": row.as_integer("id") + 100, "seen": row.as_text("name")}

    mapped = change(op).mapped(shifted)
    before, after = mapped.images
    if before is not None:
        assert before[:3] == (101, "old", "1.00")
        assert set(before[3:]) <= {ABSENT}
    if after is not None:
        assert after == (101, "new", "2.00", "new")
        assert mapped.schema.names == ("id", "name", "price", "seen")
    for image in mapped.images:
        assert image is None or len(image) == len(mapped.schema.columns)


@pytest.mark.parametrize(
    ("op", "name"), [(Op.INSERT, "new"), (Op.UPDATE, "old"), (Op.DELETE, "old")]
)
def test_a_change_as_a_delete_names_the_row_that_the_target_has(op, name):
    gone = change(op).as_delete()
    assert gone.op is Op.DELETE
    assert gone.row.as_text("name") == name
    assert gone.after is None
