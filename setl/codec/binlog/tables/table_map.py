"""The TABLE_MAP event: which table, and how each column lies in the rows that follow.

Layout: https://dev.mysql.com/doc/dev/mysql-server/latest/classbinary__log_1_1Table__map__event.html;
MariaDB's is the same, with two column types of its own.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from typing import Final, NamedTuple

from setl.codec.binlog.event import HEADER_BYTES, packed_integer


class ColumnType(IntEnum):
    """How a column lies in a row; several SQL types share one."""

    DECIMAL = 0
    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    NULL = 6
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    NEWDATE = 14
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    MARIADB_BLOB_COMPRESSED = 140
    MARIADB_VARCHAR_COMPRESSED = 141
    VECTOR = 242
    JSON = 245
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    TINY_BLOB = 249
    MEDIUM_BLOB = 250
    LONG_BLOB = 251
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


_MOST_COLUMNS: Final = 4096  # of both servers
_IN_STRING: Final = frozenset({ColumnType.STRING, ColumnType.ENUM, ColumnType.SET})


class WireColumn(NamedTuple):
    """How one column lies in a row.

    Attributes:
        type: its type; ENUM and SET are told from STRING already.
        length: depends on the type. Text and BINARY: the most bytes. ENUM and SET: the bytes
            of a value. BLOBs and the like: the bytes of the length in front of a value. BIT:
            its bits. DECIMAL: its digits. Times: the digits of the fraction.
        scale: digits after the point of a DECIMAL.
    """

    type: int
    length: int = 0
    scale: int = 0


class TableMap(NamedTuple):
    """A TABLE_MAP event without what changes from one event to the next.

    Attributes:
        schema: the database.
        table: the table.
        columns: layout of each column.
        optional: the optional metadata, which `setl.codec.binlog.tables.row_schema` reads.
        nullable: a bit for each column that may be NULL, the first column's lowest.
    """

    schema: str
    table: str
    columns: tuple[WireColumn, ...]
    optional: bytes
    nullable: int = -1


def parse_table_map(body: bytes) -> TableMap:
    """Parse the event's body, see `setl.codec.binlog.event.body_of`.

    Raises:
        LookupError, ValueError: the bytes are no TABLE_MAP event, or a column has a layout that
            its type cannot have.
    """
    schema, table, at = _names(body)
    count, at = packed_integer(body, at)
    if not 0 < count <= _MOST_COLUMNS:
        raise ValueError(f"a table has {count} columns")
    types = body[at : at + count]
    size, at = packed_integer(body, at + count)
    bits_at = at + size
    end = bits_at + (count + 7) // 8
    if end > len(body):
        raise ValueError("the event ends too early")
    columns = _columns(types, body[at:bits_at])
    nullable = int.from_bytes(body[bits_at:end], "little")
    return TableMap(schema, table, columns, body[end:], nullable)


def names_of(event: bytes) -> tuple[str, str]:
    """Schema and table of a whole event. Raises what `parse_table_map` raises."""
    return _names(event[HEADER_BYTES:])[:2]


def _names(body: bytes) -> tuple[str, str, int]:
    """Schema, table, and where they end."""
    schema, at = _name(body, 8)  # behind table id and flags
    table, at = _name(body, at)
    return schema, table, at


def _name(body: bytes, at: int) -> tuple[str, int]:
    length, at = packed_integer(body, at)
    end = at + length
    if body[end]:
        raise ValueError("a name does not end with a zero byte")
    return body[at:end].decode("utf-8", "surrogateescape"), end + 1


def _columns(types: bytes, metadata: bytes) -> tuple[WireColumn, ...]:
    """The layout of each column, checked here once so that no row has to be read with care.

    How many bytes of metadata a type has that is not known is unknown, so nothing is read of
    that column and those behind it. Who needs the table is refused, see `describe_table`.
    """
    columns: list[WireColumn] = []
    at = 0
    for column_type in types:
        size = _METADATA_BYTES.get(column_type)
        if size is None:
            return (*columns, *map(WireColumn, types[len(columns) :]))
        piece = metadata[at : at + size]
        at += size
        if len(piece) != size:
            break
        column = _column(column_type, piece)
        if column is None or not _is_possible(column):
            number = len(columns) + 1
            raise ValueError(
                f"column {number}, of type {column_type}, has {piece.hex()} as metadata"
            )
        columns.append(column)
    if at != len(metadata):
        raise ValueError(f"{len(metadata)} bytes of metadata do not fit the types of its columns")
    return tuple(columns)


def _is_possible(column: WireColumn) -> bool:
    lengths = _LENGTHS.get(column.type)
    fits = lengths is None or column.length in lengths
    return fits and column.scale <= min(column.length, _MOST_SCALE)


def _column(column_type: int, metadata: bytes) -> WireColumn | None:
    """One column; None if a STRING is said to be something that is no STRING."""
    if len(metadata) == 2:
        return _with_two_bytes(column_type, metadata[0], metadata[1])
    return WireColumn(column_type, *metadata)


def _with_two_bytes(column_type: int, first: int, second: int) -> WireColumn | None:
    if column_type == ColumnType.NEWDECIMAL:
        return WireColumn(column_type, first, second)
    if column_type == ColumnType.BIT:
        return WireColumn(column_type, second * 8 + first)
    if column_type in (ColumnType.STRING, ColumnType.ENUM, ColumnType.SET):
        # Lengths above 255 keep their two highest bits in two bits of the type, inverted.
        column_type, length = first | 0x30, second | ((first & 0x30) ^ 0x30) << 4
        return WireColumn(column_type, length) if column_type in _IN_STRING else None
    return WireColumn(column_type, first | second << 8)


_FIXED_BYTES: Final = {
    ColumnType.TINY: 1,
    ColumnType.SHORT: 2,
    ColumnType.LONG: 4,
    ColumnType.FLOAT: 4,
    ColumnType.DOUBLE: 8,
    ColumnType.NULL: 0,
    ColumnType.TIMESTAMP: 4,
    ColumnType.LONGLONG: 8,
    ColumnType.INT24: 3,
    ColumnType.DATE: 3,
    ColumnType.TIME: 3,
    ColumnType.DATETIME: 8,
    ColumnType.YEAR: 1,
    ColumnType.NEWDATE: 3,
}
_METADATA_BYTES: Final[dict[int, int]] = {
    **dict.fromkeys(_FIXED_BYTES, 0),
    ColumnType.DECIMAL: 0,  # of MySQL 4.1, without a layout
    ColumnType.FLOAT: 1,
    ColumnType.DOUBLE: 1,
    ColumnType.TIMESTAMP2: 1,
    ColumnType.DATETIME2: 1,
    ColumnType.TIME2: 1,
    ColumnType.MARIADB_BLOB_COMPRESSED: 1,
    ColumnType.VECTOR: 1,
    ColumnType.JSON: 1,
    ColumnType.TINY_BLOB: 1,
    ColumnType.MEDIUM_BLOB: 1,
    ColumnType.LONG_BLOB: 1,
    ColumnType.BLOB: 1,
    ColumnType.GEOMETRY: 1,
    ColumnType.VARCHAR: 2,
    ColumnType.BIT: 2,
    ColumnType.MARIADB_VARCHAR_COMPRESSED: 2,
    ColumnType.NEWDECIMAL: 2,
    ColumnType.ENUM: 2,
    ColumnType.SET: 2,
    ColumnType.VAR_STRING: 2,
    ColumnType.STRING: 2,
}
"""Bytes of metadata by type. Types that are not here have no layout that is known."""

_FRACTION: Final = range(7)  # digits of a second
_PREFIX: Final = range(1, 5)  # bytes of a length
_LENGTHS: Final[dict[int, Collection[int]]] = {
    ColumnType.FLOAT: (4,),
    ColumnType.DOUBLE: (8,),
    ColumnType.TIMESTAMP2: _FRACTION,
    ColumnType.DATETIME2: _FRACTION,
    ColumnType.TIME2: _FRACTION,
    ColumnType.MARIADB_BLOB_COMPRESSED: _PREFIX,
    ColumnType.VECTOR: _PREFIX,
    ColumnType.JSON: _PREFIX,
    ColumnType.TINY_BLOB: _PREFIX,
    ColumnType.MEDIUM_BLOB: _PREFIX,
    ColumnType.LONG_BLOB: _PREFIX,
    ColumnType.BLOB: _PREFIX,
    ColumnType.GEOMETRY: _PREFIX,
    ColumnType.BIT: range(1, 65),
    ColumnType.NEWDECIMAL: range(1, 66),
    ColumnType.ENUM: (1, 2),
    ColumnType.SET: (1, 2, 3, 4, 8),
    ColumnType.STRING: range(255 * 4 + 1),
}
"""The values that `WireColumn.length` can have, of types where not all fit."""

_MOST_SCALE: Final = 38  # MariaDB's; MySQL's is 30

_TIME_BYTES: Final = {ColumnType.TIMESTAMP2: 4, ColumnType.DATETIME2: 5, ColumnType.TIME2: 3}
_DIGIT_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_PREFIXED: Final = frozenset(
    {
        ColumnType.STRING,
        ColumnType.VARCHAR,
        ColumnType.VAR_STRING,
        ColumnType.MARIADB_VARCHAR_COMPRESSED,
    }
)


def digit_bytes(digits: int) -> int:
    """Bytes that this many decimal digits take: four for each nine, fewer for what is left."""
    return digits // 9 * 4 + _DIGIT_BYTES[digits % 9]


def value_bytes(column: WireColumn) -> int:
    """Bytes of one value; -n if its length stands in n bytes before it."""
    column_type, length, scale = column
    if column_type in _FIXED_BYTES:
        size = _FIXED_BYTES[ColumnType(column_type)]
    elif column_type in _TIME_BYTES:
        size = _TIME_BYTES[ColumnType(column_type)] + (length + 1) // 2
    elif column_type == ColumnType.NEWDECIMAL:
        size = digit_bytes(length - scale) + digit_bytes(scale)
    elif column_type == ColumnType.BIT:
        size = (length + 7) // 8
    elif column_type in (ColumnType.ENUM, ColumnType.SET):
        size = length
    elif column_type in _PREFIXED:
        size = -1 if length < 256 else -2
    else:
        size = -length
    return size
