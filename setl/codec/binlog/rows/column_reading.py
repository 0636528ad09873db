"""Chooses the function that reads the values of a column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from setl.codec.binlog.tables.row_schema import ColumnDetail, TableDetail
from setl.codec.binlog.tables.table_map import ColumnType, WireColumn
from setl.codec.binlog.values.value_number import (
    Reader,
    bit_reader,
    decimal_reader,
    float_reader,
    integer_reader,
    year,
)
from setl.codec.binlog.values.value_text import (
    PREFIXED,
    decompressed,
    json_value,
    label_reader,
    padded,
    piece_reader,
)
from setl.codec.binlog.values.value_time import MOMENTS, time_reader
from setl.codec.charset import exact_decoder, value_decoder
from setl.errors import DataError
from setl.model.change import Value
from setl.model.labels import LABELLED
from setl.model.schema import Kind

"""What reading damaged bytes raises."""


class ColumnReader(NamedTuple):
    """What reading one column takes.

    Attributes:
        read: the function that reads its values.
        convert: of values with their length in front of them: what their bytes go through; of
            others None.
    """

    read: Reader
    convert: Callable[[bytes], Value] | None = None


def column_readers(table: TableDetail, *, lenient: bool = True) -> list[ColumnReader]:
    """What reading each column of a table takes.

    Args:
        table: the table.
        lenient: whether text that its server cannot say in UTF-8 is read, see
            `setl.codec.charset.value_decoder`.

    Raises:
        DataError: a column's character set is not known.
    """
    readers: list[ColumnReader] = []
    for wire, detail in zip(table.columns, table.details, strict=True):
        if detail.column.kind in PREFIXED:
            convert = _conversion(wire, detail, lenient=lenient)
            readers.append(ColumnReader(piece_reader(wire, convert), convert))
        else:
            readers.append(ColumnReader(_reader(wire, detail)))
    return readers


_NUMBERS: Final[dict[Kind, Callable[[WireColumn], Reader]]] = {
    Kind.DECIMAL: decimal_reader,
    Kind.FLOAT: lambda column: float_reader(column.type),
    Kind.YEAR: lambda _: year,
    Kind.BIT: bit_reader,
}


def _reader(column: WireColumn, detail: ColumnDetail) -> Reader:
    """The function that reads values without a length in front of them."""
    kind = detail.column.kind
    if kind in MOMENTS:
        return time_reader(column)
    if kind is Kind.INTEGER:
        return integer_reader(column.type, unsigned=detail.column.unsigned)
    if kind in LABELLED:
        return label_reader(column, kind, detail.labels)
    return _NUMBERS[kind](column)


def _conversion(
    column: WireColumn, detail: ColumnDetail, *, lenient: bool
) -> Callable[[bytes], Value]:
    kind = detail.column.kind
    convert: Callable[[bytes], Value]
    if kind is Kind.JSON:
        convert = json_value
    elif kind is Kind.TEXT:
        try:
            convert = (value_decoder if lenient else exact_decoder)(detail.charset)
        except ValueError as error:
            raise DataError(
                f"column {detail.column.name} has a collation that is not known",
                hint="Leave the column's table out, or change its collation",
                column=detail.column.name,
            ) from error
    elif kind is Kind.BINARY and column.type == ColumnType.STRING:
        convert = padded(column.length)
    else:
        convert = bytes
    if column.type in (
        ColumnType.MARIADB_BLOB_COMPRESSED,
        ColumnType.MARIADB_VARCHAR_COMPRESSED,
    ):
        return decompressed(convert)
    return convert
