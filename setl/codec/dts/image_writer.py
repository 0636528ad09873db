"""Writes values in their normal form as values of DTS images: the inverse of `image`.

Each column gets one function, chosen once, that gives the bytes of a value with its branch of
the union in front. The order of the branches in ``schemas/Record.avsc`` is the wire format.

Text is always written as ``utf8mb4``, whatever its column's character set. A row holds it as
Unicode, and UTF-8 has all of it; its way back into, say, ``swe7`` or ``big5`` is not always
the way it came, and clients know not all of MySQL's names (the usual ones take ``koi8u`` for
KOI8-R and know no ``utf8mb3``). The name stands at every value, so nothing has to guess.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, NamedTuple, cast

from setl.codec.binlog.tables.table_map import ColumnType, WireColumn
from setl.codec.charset import BINARY, in_characters
from setl.codec.dts.avro_bytes import NULL, data_bytes, double_bytes, long_bytes, text_bytes
from setl.codec.dts.moment_writer import (
    write_date,
    write_datetime,
    write_time,
    write_timestamp,
    write_year,
)
from setl.model.change import Value
from setl.model.labels import is_marked, unmarked
from setl.model.schema import Column, Kind
from setl.printable import BYTES_OF_TEXT, bytes_of_text

ValueWriter = Callable[[Value], bytes]

_INTEGER: Final = long_bytes(1)
_CHARACTER: Final = long_bytes(2)
_DECIMAL: Final = long_bytes(3)
_FLOAT: Final = long_bytes(4)
_BINARY_GEOMETRY: Final = long_bytes(8)
_BINARY_OBJECT: Final = long_bytes(10)
_TEXT_OBJECT: Final = long_bytes(11)
_EMPTY_OBJECT: Final = long_bytes(12)

# What a value of another kind than its column's raises when it is written.
MISFITS: Final = (ValueError, TypeError, AttributeError, LookupError, struct.error)

BYTES_OF: Final = "BYTES OF "
"""Stands before the name of a character set where the text has no UTF-8 form."""

NUMBERED: Final = {"ENUM": "ENUM_NUMBER", "SET": "SET_NUMBER"}
"""The type of a label → that of a number that prints like another one: ``3=text``. DTS has none."""

NULL_VALUE: Final = NULL
"""SQL NULL."""

ABSENT_VALUE: Final = _EMPTY_OBJECT + long_bytes(1)
"""A column that an image does not hold: EmptyObject's NONE."""

# What the binlog calls otherwise than a client of the server does. Source of both:
# ``enum_field_types``; those with a 2 exist in files only.
_NUMBERS: Final[dict[int, int]] = {
    ColumnType.TIMESTAMP2: ColumnType.TIMESTAMP,
    ColumnType.DATETIME2: ColumnType.DATETIME,
    ColumnType.TIME2: ColumnType.TIME,
    ColumnType.NEWDATE: ColumnType.DATE,
    ColumnType.VARCHAR: ColumnType.VAR_STRING,
    ColumnType.MARIADB_VARCHAR_COMPRESSED: ColumnType.VAR_STRING,
    ColumnType.MARIADB_BLOB_COMPRESSED: ColumnType.BLOB,
}
_INTEGER_BYTES: Final[dict[int, int]] = {
    ColumnType.TINY: 1,
    ColumnType.SHORT: 2,
    ColumnType.INT24: 3,
    ColumnType.LONG: 4,
    ColumnType.LONGLONG: 8,
}
_STRINGS: Final = frozenset({ColumnType.STRING, ColumnType.VAR_STRING})
_digits: Final = int.__repr__  # unlike str and %d, it takes integers only
_MAX_DIGITS: Final = 96  # no DECIMAL has more characters
_MAX_LENGTHS: Final = 256


class ColumnWriter(NamedTuple):
    """How one column is written.

    Attributes:
        number: its type's number among the fields of a record.
        write: gives the bytes of a value that is neither NULL nor absent. It raises one of
            `MISFITS` for a value that is not in the normal form of the column's kind.
    """

    number: int
    write: ValueWriter


def column_writer(wire: WireColumn, column: Column) -> ColumnWriter:
    """The writer of one column, which is `column` and lies in the binlog as `wire`."""
    number = int(_NUMBERS.get(wire.type, wire.type))
    match column.kind:
        case Kind.INTEGER:
            write = _integer(_INTEGER_BYTES[number])
        case Kind.BIT:
            write = _integer((wire.length + 7) // 8)
        case Kind.DECIMAL:
            write = _decimal(column.precision, column.scale)
        case Kind.FLOAT:
            write = _FLOATS[number]
        case Kind.BINARY if number in _STRINGS:
            write = _BINARY_STRING
        case kind:
            write = _WRITERS[kind]
    return ColumnWriter(number, write)


def _lengths(front: bytes, count: int) -> tuple[bytes, ...]:
    """What stands before a text of 0, 1, ... bytes: the members before it, and its length."""
    return tuple([front + long_bytes(length) for length in range(count)])


def _integer(width: int) -> ValueWriter:
    """An integer of a type with so many bytes, which DTS gives as its precision."""
    fronts = _lengths(_INTEGER + long_bytes(width), _MAX_DIGITS)

    def write(value: Value) -> bytes:
        digits = _digits(cast("int", value)).encode()
        return fronts[len(digits)] + digits

    return write


def _decimal(precision: int, scale: int) -> ValueWriter:
    fronts = _lengths(_DECIMAL, _MAX_DIGITS)
    behind = long_bytes(precision) + long_bytes(scale)

    def write(value: Value) -> bytes:
        digits = cast("str", value).encode()
        return fronts[len(digits)] + digits + behind

    return write


def _float(width: int) -> ValueWriter:
    """A number that the servers print this wide, which DTS gives as its precision."""
    behind = long_bytes(width) + long_bytes(0)

    def write(value: Value) -> bytes:
        return _FLOAT + double_bytes(cast("float", value)) + behind

    return write


def _data(branch: bytes, name: str) -> ValueWriter:
    """Bytes after the name of their charset or type."""
    front = branch + text_bytes(name)
    fronts = _lengths(front, _MAX_LENGTHS)

    def write(value: Value) -> bytes:
        data = cast("bytes", value)
        size = len(data)
        if size < _MAX_LENGTHS:
            return fronts[size] + data
        return front + long_bytes(size) + data

    return write


def _text(branch: bytes, name: str) -> ValueWriter:
    """Text after the name of its charset or type."""
    write_data = _data(branch, name)

    def write(value: Value) -> bytes:
        return write_data(cast("str", value).encode())

    return write


def _characters() -> ValueWriter:
    """Text in UTF-8; what has no such form in its own character set, see `BYTES_OF`."""
    write_text = _text(_CHARACTER, "utf8mb4")

    def write(value: Value) -> bytes:
        try:
            return write_text(value)
        except UnicodeEncodeError:
            found = _bytes_alone(value)
            if not found:
                raise
            return found

    return write


def _bytes_alone(value: Value) -> bytes:
    """Text without a UTF-8 form, see `BYTES_OF`; nothing for what is none."""
    if not isinstance(value, str) or not value.startswith(BYTES_OF_TEXT):
        return b""
    charset, digits = bytes_of_text(value)
    # What is a second encoding of a character is text in its own character set to any reader.
    name = charset if in_characters(value) != value else f"{BYTES_OF}{charset}"
    return _CHARACTER + text_bytes(name) + data_bytes(bytes.fromhex(digits))


def _labels(name: str) -> ValueWriter:
    """Labels; one of several numbers that print alike has a type of its own, see `NUMBERED`."""
    write_label, write_number = _text(_TEXT_OBJECT, name), _text(_TEXT_OBJECT, NUMBERED[name])

    def write(value: Value) -> bytes:
        try:
            return write_label(value)
        except UnicodeEncodeError:
            if found := _bytes_alone(value):
                return found
            if not is_marked(value):
                raise
            return write_number(unmarked(str(value)))

    return write


_FLOATS: Final[dict[int, ValueWriter]] = {
    ColumnType.FLOAT: _float(12),
    ColumnType.DOUBLE: _float(22),
}
_BINARY_STRING: Final = _data(_CHARACTER, BINARY)
_WRITERS: Final[dict[Kind, ValueWriter]] = {
    Kind.TEXT: _characters(),
    Kind.ENUM: _labels("ENUM"),
    Kind.SET: _labels("SET"),
    Kind.JSON: _text(_TEXT_OBJECT, "JSON"),
    Kind.BINARY: _data(_BINARY_OBJECT, "BLOB"),
    Kind.GEOMETRY: _data(_BINARY_GEOMETRY, "GEOMETRY"),
    Kind.DATE: write_date,
    Kind.DATETIME: write_datetime,
    Kind.TIME: write_time,
    Kind.YEAR: write_year,
    Kind.TIMESTAMP: write_timestamp,
}
