"""A table as a binlog describes it, for formats that name each column's type.

What the binlog does not say of a column (display widths, so BOOLEAN, FLOAT(M,D), defaults), no
format of a relay can say.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from setl.codec.binlog.event import body_of, has_checksums, packed_integer
from setl.codec.binlog.tables.hidden import visible_schema
from setl.codec.binlog.tables.row_schema import damaged_description, described_table
from setl.codec.binlog.tables.table_map import ColumnType, WireColumn, parse_table_map
from setl.codec.charset import in_characters
from setl.errors import DataError
from setl.model.change import ABSENT, Row, Value, filled
from setl.model.labels import begins_with_half, is_marked, unmarked
from setl.model.schema import Column, RowSchema

_GEOMETRY_TYPE: Final = 7  # of the optional metadata

UNCHANGED: Final = "SET GLOBAL binlog_row_image=FULL on the source, then start after that"
"""What makes a source log rows in full, as these formats need them."""


class BinlogColumn(NamedTuple):
    """One column.

    Attributes:
        column: as rows have it.
        wire: how it lies in a row.
        charset: of text, "" if its collation is not known.
        labels: of ENUM and SET.
        nullable: whether it takes NULL.
        geometry: number of the type of a spatial column, as WKB has it; 0 for any.
    """

    column: Column
    wire: WireColumn
    charset: str = ""
    labels: tuple[str, ...] = ()
    nullable: bool = True
    geometry: int = 0


class BinlogTable(NamedTuple):
    """A table and its columns, those that statements can name."""

    schema: RowSchema
    columns: tuple[BinlogColumn, ...]


def binlog_table(context: tuple[bytes, ...]) -> BinlogTable:
    """What an `Entry.context` says of a table.

    Raises:
        DataError: it cannot be understood.
    """
    detail = described_table(context)
    schema = visible_schema(detail, context[0])
    geometries = _geometries(context)
    columns = tuple(
        BinlogColumn(
            column,
            wire,
            described.charset,
            described.labels,
            bool(detail.nullable >> i & 1),
            geometries.get(i, 0),
        )
        for i, (column, wire, described) in enumerate(
            zip(schema.columns, detail.columns, detail.details, strict=False)
        )
    )
    return BinlogTable(schema, columns)


def _geometries(context: tuple[bytes, ...]) -> dict[int, int]:
    """The type of each spatial column, by the column's index, as far as the server says it."""
    format_description, table_map = context[:2]
    try:
        table = parse_table_map(body_of(table_map, checksum=has_checksums(format_description)))
        spatial = [i for i, c in enumerate(table.columns) if c.type == ColumnType.GEOMETRY]
        types: list[int] = []
        at = 0
        while at < len(table.optional):
            field = table.optional[at]
            size, at = packed_integer(table.optional, at + 1)
            data, at = table.optional[at : at + size], at + size
            within = 0
            while field == _GEOMETRY_TYPE and within < len(data):
                number, within = packed_integer(data, within)
                types.append(number)
    except (LookupError, ValueError) as error:
        raise damaged_description(error) from error
    return dict(zip(spatial, types, strict=False))


def whole(row: Row, schema: RowSchema) -> Row:
    """A row image of which nothing is left out.

    Raises:
        DataError: it lacks a column, and the format would have to say something about it.
    """
    if ABSENT in row:
        raise DataError(
            "a row image lacks columns, and the relay's format has rows in full only",
            hint=UNCHANGED,
            schema=schema.schema,
            table=schema.table,
        )
    return row


def completed(before: Row | None, after: Row | None) -> Row | None:
    """The image after a change; what it leaves out since it did not change is taken from `before`.

    Servers with ``binlog_row_image=FULL_NODUP`` leave it out.
    """
    if before is None or after is None or ABSENT not in after:
        return after
    return filled(after, before)


def characters(value: Value) -> str:
    """Text, and a label of an ENUM or SET, as a server prints it.

    Raises:
        ValueError: it is text that has no UTF-8 form.
    """
    if is_marked(value):
        return unmarked(str(value)).partition("=")[2]
    text = in_characters(value)
    if not isinstance(text, str):
        raise TypeError(f"{type(text).__name__} is no text")
    if begins_with_half(text):
        raise ValueError("text in its own character set has no form in UTF-8")
    return text


def check_key_text(value: Value) -> None:
    """Refuse text of a key that has a second encoding of a character: two rows would be one.

    Raises:
        ValueError: it has one, see `setl.codec.charset.DOUBLED`.
    """
    if in_characters(value) != value:
        raise ValueError(
            "the key has a character that its character set encodes twice, in the encoding that"
            " servers do not choose"
        )
