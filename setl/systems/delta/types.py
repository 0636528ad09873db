"""Columns of MySQL as columns of a Delta table, and which of its types hold which values exactly.

=================  ==================  =======================================================
column             made as             also taken
=================  ==================  =======================================================
integer, YEAR      long                any integer type, a decimal without a part behind the
                                       point
BIGINT UNSIGNED    decimal(20,0)       the same
BIT                long; decimal(20,0) the same
                   for BIT(64)
DECIMAL            decimal             string
DECIMAL, wider     string
than 38 digits
FLOAT              float               double
DOUBLE             double
text, ENUM, SET,   string
JSON
TIME               string              as rows have it: ``[-]hh:mm:ss.ffffff``
DATE               date                string
DATETIME           timestamp_ntz       string
TIMESTAMP          timestamp           string
binary, spatial    binary              spatial values with the SRID in four bytes in front
UUID, INET         binary              bytes, since a binlog does not tell them from others
=================  ==================  =======================================================
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from setl.model.logged_bytes import column_as_logged
from setl.model.schema import Column, Kind

MOST_DIGITS: Final = 38
_MICROSECONDS: Final = pa.timestamp("us")
_MICROSECONDS_UTC: Final = pa.timestamp("us", "UTC")
_UNSIGNED_64: Final = pa.decimal128(20, 0)

_NARROW: Final = frozenset({"tinyint", "smallint", "mediumint", "int"})
_MADE: Final = {
    Kind.YEAR: pa.int64(),
    Kind.TEXT: pa.string(),
    Kind.ENUM: pa.string(),
    Kind.SET: pa.string(),
    Kind.JSON: pa.string(),
    Kind.TIME: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.DATETIME: _MICROSECONDS,
    Kind.TIMESTAMP: _MICROSECONDS_UTC,
    Kind.BINARY: pa.binary(),
    Kind.GEOMETRY: pa.binary(),
}
_TEXTS: Final = frozenset({Kind.TEXT, Kind.ENUM, Kind.SET, Kind.JSON, Kind.TIME})
_NUMBERS: Final = frozenset({Kind.INTEGER, Kind.YEAR, Kind.BIT})
_DATES: Final = {
    Kind.DATE: pa.date32(), Kind.DATETIME: _MICROSECONDS, Kind.TIMESTAMP: _MICROSECONDS_UTC,
}  # fmt: skip


def made_type(column: Column) -> pa.DataType:
    """The type of the column that is made for a source's column."""
    column = column_as_logged(column)
    capacity = column.capacity
    name = "" if capacity is None else capacity.type
    if column.kind is Kind.INTEGER:
        return _UNSIGNED_64 if column.unsigned and name not in _NARROW else pa.int64()
    if column.kind is Kind.BIT:
        short = capacity is not None and 0 < capacity.length < 64
        return pa.int64() if short else _UNSIGNED_64
    if column.kind is Kind.DECIMAL:
        if not 0 < column.precision <= MOST_DIGITS:
            return pa.string()
        return pa.decimal128(column.precision, column.scale)
    if column.kind is Kind.FLOAT:
        return pa.float32() if column.width == 4 else pa.float64()
    return _MADE.get(column.kind, pa.string())


def takes(kind: pa.DataType, column: Column) -> bool:
    """Whether a column of a table can hold values of a source's column; each is looked at too."""
    column = column_as_logged(column)
    if column.kind in _TEXTS:
        return pa.types.is_string(kind)
    if column.kind in _NUMBERS:
        return pa.types.is_signed_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0)
    if column.kind is Kind.DECIMAL:
        return pa.types.is_string(kind) or pa.types.is_decimal(kind)
    if column.kind is Kind.FLOAT:
        return pa.types.is_float64(kind) or (pa.types.is_float32(kind) and column.width in {0, 4})
    if column.kind in _DATES:
        return pa.types.is_string(kind) or kind == _DATES[column.kind]
    return pa.types.is_binary(kind) and column.kind is not Kind.ROWS


def delta_name(kind: pa.DataType) -> str:
    """A type as Delta calls it."""
    known = {
        pa.int64(): "long", pa.int32(): "integer", pa.int16(): "short", pa.int8(): "byte",
        pa.float32(): "float", pa.float64(): "double", pa.string(): "string",
        pa.binary(): "binary", pa.date32(): "date", _MICROSECONDS: "timestamp_ntz",
        _MICROSECONDS_UTC: "timestamp",
    }  # fmt: skip
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return known.get(kind, str(kind))
