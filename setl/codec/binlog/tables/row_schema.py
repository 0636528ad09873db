"""Reads a table's columns from the optional metadata of a TABLE_MAP event.

Servers write it in full only with ``binlog_row_metadata=FULL``. Fields: the enumeration
``Optional_metadata_field_type`` in ``rows_event.h`` of MySQL; MariaDB writes the same, but counts
spatial and compressed columns among those with a charset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from setl.codec.binlog.event import body_of, has_checksums, is_mariadb, packed_integer
from setl.codec.binlog.tables.collation import charset_of, common_number, compares_bytes
from setl.codec.binlog.tables.table_map import (
    ColumnType,
    TableMap,
    WireColumn,
    parse_table_map,
)
from setl.codec.charset import BINARY, label_decoder
from setl.errors import ConfigurationError, DataError
from setl.model.schema import Column, Kind, RowSchema

CHECK_BINLOG: Final = "Check the binlog with mysqlbinlog --verify-binlog-checksum on the source"
"""Hint of errors about bytes that make no sense."""

_SIGNEDNESS: Final = 1
_DEFAULT_CHARSET: Final = 2
_COLUMN_CHARSET: Final = 3
_COLUMN_NAME: Final = 4
_SET_STR_VALUE: Final = 5
_ENUM_STR_VALUE: Final = 6
_SIMPLE_PRIMARY_KEY: Final = 8
_PRIMARY_KEY_WITH_PREFIX: Final = 9
_ENUM_AND_SET_DEFAULT_CHARSET: Final = 10
_ENUM_AND_SET_COLUMN_CHARSET: Final = 11

# Columns that have a bit for their sign; the servers count YEAR among them.
_SIGNABLE: Final = frozenset(
    {
        ColumnType.DECIMAL,
        ColumnType.TINY,
        ColumnType.SHORT,
        ColumnType.INT24,
        ColumnType.LONG,
        ColumnType.LONGLONG,
        ColumnType.NEWDECIMAL,
        ColumnType.FLOAT,
        ColumnType.DOUBLE,
        ColumnType.YEAR,
    }
)
_INTEGER: Final = _SIGNABLE - {
    ColumnType.DECIMAL,
    ColumnType.NEWDECIMAL,
    ColumnType.FLOAT,
    ColumnType.DOUBLE,
    ColumnType.YEAR,
}
_BLOBS: Final = frozenset(
    {
        ColumnType.TINY_BLOB,
        ColumnType.MEDIUM_BLOB,
        ColumnType.LONG_BLOB,
        ColumnType.BLOB,
        ColumnType.MARIADB_BLOB_COMPRESSED,
    }
)
_STRINGS: Final = frozenset(
    {
        ColumnType.STRING,
        ColumnType.VAR_STRING,
        ColumnType.VARCHAR,
        ColumnType.MARIADB_VARCHAR_COMPRESSED,
    }
)
_CHARACTER: Final = _BLOBS | _STRINGS
_LABELLED: Final = frozenset({ColumnType.ENUM, ColumnType.SET})

_KINDS: Final[dict[int, Kind]] = {
    **dict.fromkeys(_INTEGER, Kind.INTEGER),
    ColumnType.NEWDECIMAL: Kind.DECIMAL,
    ColumnType.FLOAT: Kind.FLOAT,
    ColumnType.DOUBLE: Kind.FLOAT,
    ColumnType.YEAR: Kind.YEAR,
    ColumnType.BIT: Kind.BIT,
    ColumnType.DATE: Kind.DATE,
    ColumnType.NEWDATE: Kind.DATE,
    ColumnType.TIME: Kind.TIME,
    ColumnType.TIME2: Kind.TIME,
    ColumnType.DATETIME: Kind.DATETIME,
    ColumnType.DATETIME2: Kind.DATETIME,
    ColumnType.TIMESTAMP: Kind.TIMESTAMP,
    ColumnType.TIMESTAMP2: Kind.TIMESTAMP,
    ColumnType.ENUM: Kind.ENUM,
    ColumnType.SET: Kind.SET,
    ColumnType.JSON: Kind.JSON,
    ColumnType.GEOMETRY: Kind.GEOMETRY,
    ColumnType.VECTOR: Kind.BINARY,
}
_KNOWN: Final = _KINDS.keys() | _CHARACTER
_WIDTHS: Final[dict[int, int]] = {ColumnType.FLOAT: 4, ColumnType.DOUBLE: 8}
_TEXTUAL: Final = frozenset({Kind.TEXT, Kind.JSON})


class ColumnDetail(NamedTuple):
    """What reading a column's values takes beyond its layout.

    Attributes:
        column: as rows have it.
        charset: of text; "" if its collation is not known.
        labels: of ENUM and SET, in the order of the definition.
    """

    column: Column
    charset: str = ""
    labels: tuple[str, ...] = ()


class TableDetail(NamedTuple):
    """A table's schema, how its columns lie in a row, and what else reading each of them takes."""

    schema: RowSchema
    columns: tuple[WireColumn, ...]
    details: tuple[ColumnDetail, ...]
    nullable: int = -1  # a bit for each column that may be NULL


def described_table(context: tuple[bytes, ...]) -> TableDetail:
    """What the context of a rows entry says by its FORMAT_DESCRIPTION and its TABLE_MAP event.

    Raises:
        DataError: it cannot be understood, or lacks something that decoding needs.
    """
    try:
        format_description, table_map = context[:2]
        body = body_of(table_map, checksum=has_checksums(format_description))
        return describe_table(parse_table_map(body), mariadb=is_mariadb(format_description))
    except (LookupError, ValueError) as error:
        raise damaged_description(error) from error


def damaged_description(error: Exception) -> DataError:
    """The error to raise where a TABLE_MAP event makes no sense."""
    return DataError(
        f"the binlog's description of a table cannot be read: {error}", hint=CHECK_BINLOG
    )


def describe_table(table: TableMap, *, mariadb: bool) -> TableDetail:
    """Put a TABLE_MAP event's layout and metadata together.

    Raises:
        ConfigurationError: there are no column names.
        DataError: a column has a type that is not known.
        ValueError, LookupError: the metadata is damaged.
    """
    fields = _fields(table.optional)
    columns = table.columns
    names = _strings(fields.get(_COLUMN_NAME, b""))
    if names and len(names) != len(columns):
        raise ValueError(f"{len(names)} names for {len(columns)} columns")
    if len(set(names)) != len(names):
        raise ValueError("two of its columns have one name")
    if not names:
        # A setting and no faulty record: every row would be.
        raise ConfigurationError(
            "the binlog does not name the columns",
            hint="SET GLOBAL binlog_row_metadata=FULL on the source, then start after that",
            schema=table.schema,
            table=table.table,
        )
    for column, name in zip(columns, names, strict=True):
        if column.type not in _KNOWN:
            raise DataError(
                f"column {name} has a type that is not known ({column.type})",
                hint="Leave the table out, or change the column's type",
                schema=table.schema,
                table=table.table,
                column=name,
            )
    # Each family lists the collations of one more type, though its columns are binary.
    has_charset = _CHARACTER | {ColumnType.GEOMETRY if mariadb else ColumnType.VECTOR}
    collations = _collations(
        columns, has_charset, fields.get(_DEFAULT_CHARSET), fields.get(_COLUMN_CHARSET)
    )
    collations |= _collations(
        columns,
        _LABELLED,
        fields.get(_ENUM_AND_SET_DEFAULT_CHARSET),
        fields.get(_ENUM_AND_SET_COLUMN_CHARSET),
    )
    key, prefixed = _primary_key(fields)
    if len(set(key)) != len(key) or any(i >= len(columns) for i in key):
        raise ValueError(f"its key has the columns {list(key)} of {len(columns)}")
    unsigned = _unsigned(columns, fields.get(_SIGNEDNESS, b""))
    labels = _labels(columns, fields)
    details = tuple(
        _detail(
            column,
            name,
            collation=collations.get(i, 0),
            unsigned=i in unsigned,
            prefixed=i in prefixed,
            labels=labels.get(i, ()),
            mariadb=mariadb,
        )
        for i, (column, name) in enumerate(zip(columns, names, strict=True))
    )
    schema = RowSchema(table.schema, table.table, tuple(d.column for d in details), key)
    return TableDetail(schema, columns, details, table.nullable)


def column_names(table: TableMap) -> tuple[tuple[str, ...], bool]:
    """The names of a table's columns, none if they are not told; and whether it has a key.

    Raises:
        ValueError, LookupError: the metadata is damaged.
    """
    fields = _fields(table.optional)
    keyed = _SIMPLE_PRIMARY_KEY in fields or _PRIMARY_KEY_WITH_PREFIX in fields
    return tuple(_strings(fields.get(_COLUMN_NAME, b""))), keyed


def _detail(
    column: WireColumn,
    name: str,
    *,
    collation: int,
    unsigned: bool,
    prefixed: bool,
    labels: Sequence[bytes],
    mariadb: bool,
) -> ColumnDetail:
    charset = charset_of(collation)
    if column.type in _CHARACTER:
        kind = Kind.BINARY if charset == BINARY else Kind.TEXT
    else:
        kind = _KINDS[column.type]
    bytewise = not prefixed and (
        kind not in _TEXTUAL or compares_bytes(collation, padded=column.type != ColumnType.STRING)
    )
    decimal = kind is Kind.DECIMAL
    return ColumnDetail(
        Column(
            name,
            kind,
            precision=column.length if decimal else 0,
            scale=column.scale if decimal else 0,
            unsigned=unsigned and kind is Kind.INTEGER,
            binary_order=bytewise,
            collation=common_number(collation, mariadb=mariadb) if kind is Kind.TEXT else 0,
            width=_width(column, kind),
        ),
        charset,
        tuple(map(label_decoder(charset), labels)) if labels else (),
    )


def _width(column: WireColumn, kind: Kind) -> int:
    """See `Column.width`."""
    if kind is Kind.BINARY and column.type in _CHARACTER:
        return column.length if column.type == ColumnType.STRING else -1
    return _WIDTHS.get(column.type, 0)


def _fields(optional: bytes) -> dict[int, bytes]:
    fields: dict[int, bytes] = {}
    at = 0
    while at < len(optional):
        kind = optional[at]
        fields[kind], at = _string(optional, at + 1)
    return fields


def _integers(data: bytes) -> list[int]:
    numbers: list[int] = []
    at = 0
    while at < len(data):
        number, at = packed_integer(data, at)
        numbers.append(number)
    return numbers


def _pairs(data: bytes) -> Iterable[tuple[int, int]]:
    numbers = iter(_integers(data))
    return zip(numbers, numbers, strict=True)


def _string(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = packed_integer(data, at)
    end = at + length
    if end > len(data):
        raise ValueError("its metadata ends too early")
    return data[at:end], end


def _strings(data: bytes) -> list[str]:
    names: list[str] = []
    at = 0
    while at < len(data):
        name, at = _string(data, at)
        names.append(name.decode("utf-8"))
    return names


def _unsigned(columns: Sequence[WireColumn], bits: bytes) -> set[int]:
    """Indexes of columns without a sign. One bit for each signable column, highest first."""
    signable = [i for i, column in enumerate(columns) if column.type in _SIGNABLE]
    if len(bits) != (len(signable) + 7) // 8:
        raise ValueError(f"{len(bits)} bytes say which of {len(signable)} numbers have a sign")
    return {i for n, i in enumerate(signable) if bits[n // 8] << n % 8 & 128}


def _collations(
    columns: Sequence[WireColumn],
    types: frozenset[ColumnType],
    default: bytes | None,
    each: bytes | None,
) -> dict[int, int]:
    """Collation of each column of some types: either all of them, or one and the exceptions."""
    indexes = [i for i, column in enumerate(columns) if column.type in types]
    if each is not None:
        return dict(zip(indexes, _integers(each), strict=True))
    if default is None:
        return {}
    common, at = packed_integer(default, 0)
    exceptions = dict(_pairs(default[at:]))
    if any(n >= len(indexes) for n in exceptions):
        raise ValueError("a column that is not there has a collation")
    return {i: exceptions.get(n, common) for n, i in enumerate(indexes)}


def _labels(columns: Sequence[WireColumn], fields: dict[int, bytes]) -> dict[int, Sequence[bytes]]:
    found: dict[int, Sequence[bytes]] = {}
    kinds = ((ColumnType.SET, _SET_STR_VALUE), (ColumnType.ENUM, _ENUM_STR_VALUE))
    for column_type, field in kinds:
        data = fields.get(field, b"")
        at = 0
        for i, column in enumerate(columns):
            if column.type == column_type:
                count, at = packed_integer(data, at)
                # A SET of MariaDB may name labels again beyond its 64: no row has these.
                bits = 16 if column_type == ColumnType.SET else column.length * 8
                if count > (1 << bits) - 1:
                    raise ValueError(f"column {i + 1} has {count} labels in {column.length} bytes")
                found[i], at = _take(_string, data, at, count)
        if at != len(data):
            raise ValueError("labels are left over")
    return found


def _take(
    read: Callable[[bytes, int], tuple[bytes, int]], data: bytes, at: int, count: int
) -> tuple[list[bytes], int]:
    taken: list[bytes] = []
    for _ in range(count):
        piece, at = read(data, at)
        taken.append(piece)
    return taken, at


def _primary_key(fields: dict[int, bytes]) -> tuple[tuple[int, ...], set[int]]:
    """Indexes of the key's columns, and those of which only the front is in the key."""
    if _SIMPLE_PRIMARY_KEY in fields:
        return tuple(_integers(fields[_SIMPLE_PRIMARY_KEY])), set()
    pairs = list(_pairs(fields.get(_PRIMARY_KEY_WITH_PREFIX, b"")))
    return tuple(i for i, _ in pairs), {i for i, prefix in pairs if prefix}
