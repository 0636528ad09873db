import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.errors import DataError
from setl.model.schema import Capacity, Column, Kind
from setl.systems.mysql.values import row_values as values
from setl.systems.mysql.values.conditions import keyed_conditions, literal
from setl.systems.mysql.values.row_values import decoders, select_list


def decoded(kind, raw):
    (decode,) = decoders([Column("c", kind)])
    return raw if decode is None else decode(raw)


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        (Kind.INTEGER, "-5", -5),
        (Kind.INTEGER, "18446744073709551615", 2**64 - 1),
        (Kind.INTEGER, "00042", 42),
        (Kind.DECIMAL, "12.50", "12.50"),
        (Kind.DECIMAL, "-0.05", "-0.05"),
        (Kind.DECIMAL, "0.00", "0.00"),
        (Kind.DECIMAL, "0", "0"),
        (Kind.DECIMAL, "0000012.50", "12.50"),
        (Kind.DECIMAL, "0000000.50", "0.50"),
        (Kind.DECIMAL, "00000", "0"),
        (Kind.FLOAT, "1.1 1.100000023841858", 1.1),
        (Kind.FLOAT, "1.100 1.100000023841858", 1.1),
        (Kind.FLOAT, "1.23457 1.2345677614212036", 1.2345678),
        (Kind.FLOAT, "16777200 16777216", 16777216.0),
        (Kind.FLOAT, "3e38 3.0000000054977558e38", 3e38),
        (Kind.FLOAT, "1.100000023841858 1.100000023841858", 1.100000023841858),
        (Kind.FLOAT, "1234567890.12 1234567890.12", 1234567890.12),
        (Kind.FLOAT, "1000000000.00 1000000000", 1e9),
        (Kind.FLOAT, "1e300 1e300", 1e300),
        (Kind.FLOAT, "-0 -0", -0.0),
        (Kind.DATETIME, "2026-01-02 03:04:05", "2026-01-02 03:04:05.000000"),
        (Kind.DATETIME, "2026-01-02 03:04:05.12", "2026-01-02 03:04:05.120000"),
        (Kind.TIMESTAMP, "0000-00-00 00:00:00", "0000-00-00 00:00:00.000000"),
        (Kind.TIME, "-100:11:12.34", "-100:11:12.340000"),
        (Kind.TIME, "838:59:59", "838:59:59.000000"),
        (Kind.DATE, "0000-00-00", "0000-00-00"),
        (Kind.YEAR, "0000", 0),
        (Kind.BIT, b"\x01\x00", 256),
        (Kind.BINARY, b"a\x00", b"a\x00"),
        (Kind.TEXT, "é ", "é "),
        (Kind.ENUM, "", ""),
    ],
)
def test_values_in_the_form_of_rows(kind, raw, value):
    found = decoded(kind, raw)
    assert repr(found) == repr(value)


@given(st.integers(0, 6), st.datetimes())
def test_every_number_of_fractional_digits(digits, moment):
    text = moment.isoformat(sep=" ", timespec="microseconds")
    cut = text[: 20 + digits] if digits else text[:19]
    assert decoded(Kind.DATETIME, cut) == cut.ljust(20, ".").ljust(26, "0")


def test_floats_are_selected_in_full():
    columns = [Column("f`%", Kind.FLOAT), Column("i", Kind.INTEGER)]
    assert select_list(columns) == "CONCAT(`f``%%`, ' ', JSON_ARRAY(`f``%%` * 1e0)), `i`"


def test_a_key_that_is_no_text_is_looked_for_by_nobody():
    column = Column("k", Kind.TEXT, capacity=Capacity("varchar", charset="gbk"))
    (decode,) = decoders([column])
    assert decode is not None
    for plain in ("?\ufffe", "\ufffe:", "\ufffe:a0", "\ufffeA0"):
        assert literal(column, decode(plain)) == plain
    long = "A15A...".ljust(71, "0")
    for odd in ("A0", long):
        with pytest.raises(DataError, match="k holds text that has no character"):
            literal(column, decode(f"\ufffe:{odd}"))
    (found,) = keyed_conditions([column], [(decode("\ufffe:A0"),)])
    assert found == ("(`k` = _gbk x'A0' AND CAST(`k` AS BINARY) = %s)", (b"\xa0",))


def test_keys_with_null_are_looked_for_too():
    columns = [Column("a", Kind.INTEGER), Column("b", Kind.TEXT)]
    odd, plain = keyed_conditions(columns, [(1, None), (2, "x"), (None, None)])
    assert odd.sql == "(`a` = %s AND `b` IS NULL) OR (`a` IS NULL AND `b` IS NULL)"
    assert (odd.values, plain.values) == ((1,), (2, "x"))


@pytest.mark.parametrize(
    ("kind", "raw"),
    [(Kind.INTEGER, "ä"), (Kind.INTEGER, b"\xdb\xff"), (Kind.BIT, "7"), (Kind.FLOAT, "x")],
)
def test_a_column_that_has_got_another_type_since_is_no_defect(kind, raw):
    columns = [Column("id", Kind.INTEGER), Column("c", kind)]
    with pytest.raises(values.AlteredTableError, match="another type"):
        values.decoded(decoders(columns), ("1", raw))
