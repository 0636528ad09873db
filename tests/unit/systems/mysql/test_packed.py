"""Rows as parameters: byte by byte, as MariaDB's protocol has them."""

import math
import struct

import pytest

from setl.model.change import ABSENT
from setl.model.schema import Capacity, Column, Kind
from setl.systems.mysql.load.packed import UnfitError, packed_rows


def packed(kind, *values, **column):
    return packed_rows((Column("c", kind, **column),), [values])


def test_numbers_text_and_bytes():
    columns = (
        Column("id", Kind.INTEGER),
        Column("f", Kind.FLOAT),
        Column("t", Kind.TEXT),
        Column("b", Kind.BINARY),
        Column("y", Kind.YEAR),
    )
    made = packed_rows(columns, [(-2, 7), (0.5, 2.0), ("é", ""), (b"\0\xff", b""), (1999, 0)])
    assert made.types == bytes([8, 0, 5, 0, 253, 0, 252, 0, 8, 0])
    assert made.rows == [
        b"\0" + struct.pack("<q", -2) + b"\0" + struct.pack("<d", 0.5)
        + b"\0\x02\xc3\xa9" + b"\0\x02\0\xff" + b"\0" + struct.pack("<q", 1999),
        b"\0" + struct.pack("<q", 7) + b"\0" + struct.pack("<d", 2.0)
        + b"\0\0" + b"\0\0" + b"\0" + struct.pack("<q", 0),
    ]  # fmt: skip


def test_null_is_reported_by_the_byte_in_front_of_it():
    columns = (Column("a", Kind.INTEGER), Column("b", Kind.TEXT), Column("c", Kind.FLOAT))
    made = packed_rows(columns, [(None, 1), ("x", None), (None, None)])
    assert made.rows == [b"\1" + b"\0\1x" + b"\1", b"\0" + struct.pack("<q", 1) + b"\1\1"]


@pytest.mark.parametrize(
    ("length", "head"),
    [
        (250, b"\xfa"),
        (251, b"\xfc\xfb\0"),
        (65_535, b"\xfc\xff\xff"),
        (65_536, b"\xfd\0\0\1"),
        (1 << 24, b"\xfe\0\0\0\1\0\0\0\0"),
    ],
)
def test_the_length_stands_in_front(length, head):
    text = "x" * length
    for given in ((text,), (text, None)):
        assert packed(Kind.TEXT, *given).rows[0] == b"\0" + head + text.encode()


@pytest.mark.parametrize(
    ("kind", "unsigned", "flag"),
    [(Kind.INTEGER, True, 0x80), (Kind.BIT, False, 0x80), (Kind.INTEGER, False, None)],
)
def test_numbers_beyond_the_signed_ones(kind, unsigned, flag):
    if flag is None:
        with pytest.raises(UnfitError):
            packed(kind, 2**64 - 1)
        return
    made = packed(kind, 2**64 - 1, None, 1, unsigned=unsigned)
    assert made.types == bytes([8, flag])
    assert made.rows == [b"\0" + b"\xff" * 8, b"\1", b"\0" + struct.pack("<Q", 1)]
    assert packed(kind, 5, unsigned=unsigned).types == bytes([8, 0])


@pytest.mark.parametrize(
    ("value", "given"), [(0.1, 0.1), (-3.402823466e38, -(2.0**128 - 2.0**104))]
)
def test_a_number_for_a_float_is_given_as_it_is_unless_it_would_be_out_of_range(value, given):
    made = packed(Kind.FLOAT, value, capacity=Capacity("float"))
    assert struct.unpack("<d", made.rows[0][1:]) == (given,)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Kind.INTEGER, "1"),
        (Kind.INTEGER, 1.0),
        (Kind.INTEGER, 2**64),
        (Kind.FLOAT, math.nan),
        (Kind.FLOAT, math.inf),
        (Kind.FLOAT, "1"),
        (Kind.FLOAT, 2**53 + 1),
        (Kind.FLOAT, 10**400),
        (Kind.TEXT, b"a"),
        (Kind.TEXT, 1),
        (Kind.TEXT, "\udce9"),
        (Kind.DECIMAL, 1.5),
        (Kind.BINARY, "a"),
        (Kind.BINARY, 3),
        (Kind.INTEGER, ABSENT),
        (Kind.TEXT, ABSENT),
        (Kind.BINARY, ABSENT),
    ],
)
@pytest.mark.parametrize("beside", [(), (None,)])
def test_what_is_of_another_form_is_left_to_literals(kind, value, beside):
    with pytest.raises(UnfitError):
        packed(kind, value, *beside)
