"""Decodes ROWS events, in Spark tasks and, for rows of ``retl``, in the driver."""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from setl.codec.binlog.event import (
    CHECKSUM_BYTES,
    COMPRESSED_ROWS,
    DELETES,
    FIRST_ROWS,
    HEADER_BYTES,
    INSERTS,
    UPDATES,
    EventType,
    has_checksums,
    packed_integer,
)
from setl.codec.binlog.inflation import inflated_rows
from setl.codec.binlog.partial_update import partial_images
from setl.codec.binlog.row_schema import (
    CHECK_BINLOG,
    ColumnDetail,
    damaged_description,
    described_table,
)
from setl.codec.binlog.table_map import ColumnType, WireColumn
from setl.codec.binlog.value_number import (
    Reader,
    bit_reader,
    decimal_reader,
    float_reader,
    integer_reader,
    year,
)
from setl.codec.binlog.value_text import (
    PREFIXED,
    decompressed,
    enum_reader,
    json_value,
    padded,
    piece_reader,
    set_reader,
)
from setl.codec.binlog.value_time import MOMENTS, time_reader
from setl.codec.charset import decoder
from setl.errors import DataError
from setl.model.change import ABSENT, DecodedRows, Op, Row, Value
from setl.model.schema import Kind, RowSchema

_TABLES_KEPT: Final = 1024

# What reading damaged bytes raises.
DAMAGED: Final = (struct.error, LookupError, ValueError, zlib.error)


class _Decoder(NamedTuple):
    """What is kept of a table between calls."""

    schema: RowSchema
    readers: tuple[Reader, ...]
    json: tuple[tuple[int, Reader], ...]  # JSON columns, and readers that leave values as they are


class BinlogRowCodec:
    """A `setl.codec.port.RowCodec` for entries of `BinlogHeaderReader`.

    The context of an entry is its FORMAT_DESCRIPTION and its TABLE_MAP event. Values are
    decoded straight into their normal form, with one function for each column.
    """

    def __init__(self) -> None:
        self._decoders: dict[tuple[bytes, ...], _Decoder] = {}

    def decode(self, payload: bytes, context: tuple[bytes, ...]) -> DecodedRows:
        """See `setl.codec.port.RowCodec.decode`."""
        table = self._decoders.get(context) or self._learn(context)
        checksum = has_checksums(context[0])
        try:
            if payload[4] in COMPRESSED_ROWS:
                payload, checksum = inflated_rows(payload, checksum=checksum), False
            return _decode_event(payload, table, checksum=checksum)
        except DataError as error:
            error.at(schema=table.schema.schema, table=table.schema.table)
            raise
        except DAMAGED as error:
            raise DataError(
                f"a binlog event of {len(payload)} bytes cannot be decoded: {error}",
                hint=CHECK_BINLOG,
                schema=table.schema.schema,
                table=table.schema.table,
                column=_broken_column(payload, table, checksum=checksum),
            ) from error

    def schema(self, payload: bytes, context: tuple[bytes, ...]) -> RowSchema:  # noqa: ARG002
        """See `setl.codec.port.RowCodec.schema`; the TABLE_MAP event says it all."""
        return (self._decoders.get(context) or self._learn(context)).schema

    def _learn(self, context: tuple[bytes, ...]) -> _Decoder:
        table = described_table(context)
        try:
            readers = tuple(
                [
                    value_reader(column, detail)
                    for column, detail in zip(table.columns, table.details, strict=True)
                ]
            )
        except DAMAGED as error:
            raise damaged_description(error) from error
        json = tuple(
            (i, piece_reader(column, bytes))
            for i, column in enumerate(table.columns)
            if column.type == ColumnType.JSON
        )
        known = _Decoder(table.schema, readers, json)
        if len(self._decoders) >= _TABLES_KEPT:
            self._decoders.clear()
        self._decoders[context] = known
        return known


def _decode_event(event: bytes, table: _Decoder, *, checksum: bool) -> DecodedRows:
    kind = event[4]
    end = len(event) - CHECKSUM_BYTES if checksum else len(event)
    at = _rows_start(event)
    count, at = packed_integer(event, at)
    if count != len(table.readers):
        raise ValueError(f"{count} columns where the table has {len(table.readers)}")
    present, at = _bitmap(event, at, count)
    if kind in UPDATES:
        after, at = _bitmap(event, at, count)
        if kind == EventType.PARTIAL_UPDATE_ROWS:
            raw = list(table.readers)
            for column, read in table.json:
                raw[column] = read
            json = [column for column, _ in table.json]
            images = partial_images(event, at, end, raw, json, present=present, after=after)
        else:
            images = _images(event, at, end, (table.readers, present), (table.readers, after))
        pairs: list[tuple[Row | None, Row | None]] = list(
            zip(images[::2], images[1::2], strict=True)
        )
        if after != (1 << count) - 1:
            _refuse_replaced(table.schema, pairs)
        return DecodedRows(table.schema, Op.UPDATE, pairs)
    if kind in INSERTS and present != (1 << count) - 1:
        raise _unsaid("an insert leaves columns out, whose defaults are not known")
    images = _images(event, at, end, (table.readers, present))
    if kind in INSERTS:
        return DecodedRows(table.schema, Op.INSERT, [(None, image) for image in images])
    if kind in DELETES:
        return DecodedRows(table.schema, Op.DELETE, [(image, None) for image in images])
    raise ValueError(f"an event of type {kind} holds no rows")


def _refuse_replaced(schema: RowSchema, pairs: list[tuple[Row | None, Row | None]]) -> None:
    """Refuse updates that may have been a REPLACE, or an INSERT with ON DUPLICATE KEY UPDATE.

    Other updates say of the row behind them only what they set, so the rest is as it was. A
    REPLACE sets the columns that it does not name to their defaults, and does not say so either:
    MariaDB logs it as an update that mentions the key again. With ``NOBLOB`` all updates do.
    """
    key = schema.key
    for before, after in pairs:
        if before is None or after is None or not key:
            continue
        if all(after[i] is not ABSENT and after[i] == before[i] for i in key):
            raise _unsaid("an update leaves columns out, which may have been set to their defaults")


def _unsaid(what: str) -> DataError:
    return DataError(
        what,
        hint="SET GLOBAL binlog_row_image='FULL' on the source, let no session choose otherwise, "
        "then load the table again",
    )


def _rows_start(event: bytes) -> int:
    """Where the number of columns stands: after table id, flags and any extra data."""
    at = HEADER_BYTES + 8
    if event[4] in FIRST_ROWS:
        return at
    return at + int.from_bytes(event[at : at + 2], "little")


def _bitmap(event: bytes, at: int, count: int) -> tuple[int, int]:
    end = at + (count + 7) // 8
    return int.from_bytes(event[at:end], "little"), end


def _images(event: bytes, at: int, end: int, *sides: tuple[Sequence[Reader], int]) -> list[Row]:
    """All images of an event; for an update those before and after take turns."""
    plans = [
        (None, readers) if present == (1 << len(readers)) - 1 else _partial(readers, present)
        for readers, present in sides
    ]
    images: list[Row] = []
    append = images.append
    turn = 0
    while at < end:
        missing, readers = plans[turn]
        turn = (turn + 1) % len(plans)
        width = (len(readers) + 7) // 8
        nulls = int.from_bytes(event[at : at + width], "little")
        at += width
        row: list[Value] = []
        if nulls:
            for read in readers:
                if nulls & 1:
                    row.append(None)
                else:
                    value, at = read(event, at)
                    row.append(value)
                nulls >>= 1
        else:
            for read in readers:
                value, at = read(event, at)
                row.append(value)
        append(tuple(row) if missing is None else _spread(row, missing))
    if at != end or turn:
        raise ValueError("its rows do not end where the event ends")
    return images


def _partial(readers: Sequence[Reader], present: int) -> tuple[list[bool], list[Reader]]:
    """For an image without all columns: which are there, and their readers."""
    there = [bool(present >> i & 1) for i in range(len(readers))]
    return there, [read for read, here in zip(readers, there, strict=True) if here]


def _spread(row: list[Value], there: list[bool]) -> Row:
    values = iter(row)
    return tuple(next(values) if here else ABSENT for here in there)


def _broken_column(event: bytes, table: _Decoder, *, checksum: bool) -> str:
    """Name of the first column that cannot be read; "" if it is not a column's fault."""
    end = len(event) - CHECKSUM_BYTES if checksum else len(event)
    names = table.schema.names
    current = ""

    def watched(name: str, read: Reader) -> Reader:
        def watch(data: bytes, at: int) -> tuple[Value, int]:
            nonlocal current
            current = name
            value, at = read(data, at)
            if at > end:
                raise IndexError
            current = ""
            return value, at

        return watch

    readers = tuple(watched(n, r) for n, r in zip(names, table.readers, strict=True))
    with contextlib.suppress(*DAMAGED):
        _decode_event(event, table._replace(readers=readers), checksum=checksum)
    return current


_NUMBERS: Final[dict[Kind, Callable[[WireColumn], Reader]]] = {
    Kind.DECIMAL: decimal_reader,
    Kind.FLOAT: lambda column: float_reader(column.type),
    Kind.YEAR: lambda _: year,
    Kind.BIT: bit_reader,
}


def value_reader(column: WireColumn, detail: ColumnDetail) -> Reader:
    """The function that reads one column's values.

    Raises:
        DataError: the column's character set is not known.
    """
    kind = detail.column.kind
    if kind in PREFIXED:
        return piece_reader(column, _conversion(column, detail))
    if kind in MOMENTS:
        return time_reader(column)
    if kind is Kind.INTEGER:
        return integer_reader(column.type, unsigned=detail.column.unsigned)
    if kind in (Kind.ENUM, Kind.SET):
        return (enum_reader if kind is Kind.ENUM else set_reader)(column, detail.labels)
    return _NUMBERS[kind](column)


def _conversion(column: WireColumn, detail: ColumnDetail) -> Callable[[bytes], Value]:
    kind = detail.column.kind
    convert: Callable[[bytes], Value]
    if kind is Kind.JSON:
        convert = json_value
    elif kind is Kind.TEXT:
        try:
            convert = decoder(detail.charset)
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
