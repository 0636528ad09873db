"""The TABLE_MAP event: which table, and how each column lies in the rows that follow.

Layout: https://dev.mysql.com/doc/dev/mysql-server/latest/classbinary__log_1_1Table__map__event.html;
MariaDB's is the same, with two column types of its own.
"""

from __future__ import annotations

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
    TYPED_ARRAY = 244
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


_TWO_BYTES: Final = frozenset(
    {
        ColumnType.VARCHAR,
        ColumnType.BIT,
        ColumnType.MARIADB_VARCHAR_COMPRESSED,
        ColumnType.NEWDECIMAL,
        ColumnType.ENUM,
        ColumnType.SET,
        ColumnType.VAR_STRING,
        ColumnType.STRING,
    }
)
_ONE_BYTE: Final = frozenset(
    {
        ColumnType.FLOAT,
        ColumnType.DOUBLE,
        ColumnType.TIMESTAMP2,
        ColumnType.DATETIME2,
        ColumnType.TIME2,
        ColumnType.MARIADB_BLOB_COMPRESSED,
        ColumnType.VECTOR,
        ColumnType.JSON,
        ColumnType.TINY_BLOB,
        ColumnType.MEDIUM_BLOB,
        ColumnType.LONG_BLOB,
        ColumnType.BLOB,
        ColumnType.GEOMETRY,
    }
)


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
    """Parse the event's body: what lies between event header and checksum.

    Raises:
        IndexError, KeyError, ValueError: the bytes are no TABLE_MAP event.
    """
    at = 8  # table id, flags
    schema, at = _name(body, at)
    table, at = _name(body, at)
    count, at = packed_integer(body, at)
    types = body[at : at + count]
    size, at = packed_integer(body, at + count)
    columns = _columns(types, body[at : at + size])
    bits = body[at + size : at + size + (count + 7) // 8]
    at += size + (count + 7) // 8
    if len(types) != count or at > len(body):
        raise ValueError("the event ends too early")
    return TableMap(schema, table, columns, body[at:], int.from_bytes(bits, "little"))


def table_map_body(event: bytes, *, checksum: bool) -> bytes:
    """The body of a whole event."""
    return event[HEADER_BYTES:-4] if checksum else event[HEADER_BYTES:]


def _name(body: bytes, at: int) -> tuple[str, int]:
    length, at = packed_integer(body, at)
    # A zero byte follows each name.
    return body[at : at + length].decode("utf-8", "surrogateescape"), at + length + 1


def _columns(types: bytes, metadata: bytes) -> tuple[WireColumn, ...]:
    columns: list[WireColumn] = []
    at = 0
    for column_type in types:
        if column_type in _TWO_BYTES:
            columns.append(_with_two_bytes(column_type, metadata[at], metadata[at + 1]))
            at += 2
        elif column_type in _ONE_BYTE:
            columns.append(WireColumn(column_type, metadata[at]))
            at += 1
        elif column_type == ColumnType.TYPED_ARRAY:
            raise ValueError("a typed array is no column of a table")
        else:
            columns.append(WireColumn(column_type))
    return tuple(columns)


def _with_two_bytes(column_type: int, first: int, second: int) -> WireColumn:
    if column_type == ColumnType.NEWDECIMAL:
        return WireColumn(column_type, first, second)
    if column_type == ColumnType.BIT:
        return WireColumn(column_type, second * 8 + first)
    if column_type in (ColumnType.STRING, ColumnType.ENUM, ColumnType.SET):
        # Lengths above 255 keep their two highest bits in two bits of the type, inverted.
        if first & 0x30 != 0x30:
            return WireColumn(first | 0x30, second | ((first & 0x30) ^ 0x30) << 4)
        return WireColumn(first, second)
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
