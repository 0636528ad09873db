"""Decodes ROWS events, in Spark tasks and, for rows of ``retl``, in the driver."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from setl.codec.binlog.columns.finding import find_rows
from setl.codec.binlog.columns.form import BinlogForm, binlog_form
from setl.codec.binlog.columns.labels import lacks_labels
from setl.codec.binlog.event import (
    CHECKSUM_BYTES,
    COMPRESSED_ROWS,
    DELETES,
    FIRST_ROWS,
    HEADER_BYTES,
    INSERTS,
    UPDATES,
    EventType,
    extra_data_end,
    has_checksums,
    is_mariadb,
    major_version,
    packed_integer,
)
from setl.codec.binlog.inflation import inflated_rows
from setl.codec.binlog.rows.column_reading import column_readers
from setl.codec.binlog.rows.images import read_image
from setl.codec.binlog.rows.operation import operation_of
from setl.codec.binlog.rows.partial_update import partial_images
from setl.codec.binlog.rows.row_chunks import has_own_position, likely_inserts, records_of
from setl.codec.binlog.rows.row_estimate import likely_rows
from setl.codec.binlog.rows.unlogged_columns import (
    LAST_WHOLE,
    logged_columns_only,
    unlogged_columns_mask,
    without_doubles,
    without_unlogged,
)
from setl.codec.binlog.rows.versioned import LiveRows, ends_of_rows, refusing, telling
from setl.codec.binlog.rows.whole_seconds import (
    Images,
    fractions_refused,
    lengths_tried,
    refusing_fractions,
    see_whole_seconds,
)
from setl.codec.binlog.tables.hidden import visible_schema, without_hidden
from setl.codec.binlog.tables.old_times import UNKNOWN, UNSURE, old_times
from setl.codec.binlog.tables.row_schema import (
    CHECK_BINLOG,
    TableDetail,
    damaged_description,
    described_table,
)
from setl.codec.binlog.tables.table_map import ColumnType
from setl.codec.binlog.values.value_number import Reader
from setl.codec.binlog.values.value_text import piece_reader
from setl.codec.columns.images import FoundRows, RowForm, UnfitRowsError
from setl.codec.row_codec import DAMAGED
from setl.errors import DataError
from setl.model.change import ABSENT, DecodedRows, Op, Row, Value, filled
from setl.model.schema import RowSchema

_MAX_TABLES: Final = 1024
_FULL: Final = (
    "SET GLOBAL binlog_row_image='FULL' on the source, and let no session choose otherwise. "
)
_LOAD: Final = (
    "`setl stop` the channel, move past this change with `setl position reset`, start it, and load"
    " the table again with `setl load PIPELINE --replace`"
)


class _Decoder(NamedTuple):
    """What is kept of a table between calls."""

    schema: RowSchema
    visible: RowSchema  # `schema` itself, or without hidden columns
    readers: tuple[Reader, ...]
    json: tuple[tuple[int, Reader], ...]  # JSON columns, and readers that leave values as they are
    mariadb: bool
    leaves_out: bool  # whether inserts may lack what the server computes
    generated: frozenset[str]  # columns that updates may lack for the same reason
    narrow: dict[int, RowSchema]  # `visible` without unlogged columns, by `unlogged_columns_mask`
    wire: TableDetail
    unsure: dict[int, tuple[int, ...]]  # `lengths_tried`, see `see_whole_seconds`
    live: LiveRows | None = None  # of a versioned table

    @property
    def shown(self) -> RowSchema:
        """The columns of rows where nothing is unlogged."""
        return self.visible if self.live is None else self.without(self.live, 0)

    def without(self, live: LiveRows, unlogged: int) -> RowSchema:
        """The columns without those of a versioned table, and without what is unlogged."""
        cached = self.narrow.get(~unlogged)
        if cached is None:
            logged = self.narrow[unlogged] if unlogged else self.visible
            cached = self.narrow[~unlogged] = live.schema(logged)
        return cached


class BinlogRowCodec:
    """A `setl.codec.row_codec.RowCodec` for entries of `BinlogHeaderReader`.

    The context of an entry is its FORMAT_DESCRIPTION and its TABLE_MAP event. Values are
    decoded straight into their normal form, with one function for each column.
    """

    def __init__(self) -> None:
        self._decoders: dict[tuple[bytes, ...], _Decoder] = {}

    def records(self, payload: bytes) -> Sequence[tuple[int, bytes]]:
        """See `setl.codec.row_codec.RowCodec.records`; a run of events holds several."""
        return records_of(payload)

    def joins(self, payload: bytes, offset: int) -> bool:
        """See `setl.codec.row_codec.RowCodec.joins`; each event says where in the file it ends."""
        return has_own_position(payload, offset)

    def join(self, payloads: Sequence[tuple[int, bytes]]) -> bytes:
        """See `setl.codec.row_codec.RowCodec.join`."""
        return b"".join([payload for _, payload in payloads])

    def likely_inserts(self, payload: bytes) -> bool:
        """See `setl.codec.row_codec.RowCodec.likely_inserts`."""
        return likely_inserts(payload)

    def operation(self, payload: bytes) -> tuple[Op, bool] | None:
        """See `setl.codec.row_codec.RowCodec.operation`."""
        return operation_of(payload)

    def decode(
        self, payload: bytes, context: tuple[bytes, ...], *, keys_alone: bool = False
    ) -> DecodedRows:
        """See `setl.codec.row_codec.RowCodec.decode`."""
        table = self._decoders.get(context) or self._learn(context)
        checksum = has_checksums(context[0])
        try:
            if payload[4] in COMPRESSED_ROWS:
                payload, checksum = inflated_rows(payload, checksum=checksum), False
            rows, unlogged = _decode_event(payload, table, checksum=checksum, keys_alone=keys_alone)
        except DataError as error:
            error.at(schema=table.schema.schema, table=table.schema.table)
            raise
        except DAMAGED as error:
            if table.unsure:
                raise fractions_refused(table.wire, min(table.unsure), UNKNOWN) from error
            raise DataError(
                f"a binlog event of {len(payload)} bytes cannot be decoded: {error}",
                hint=CHECK_BINLOG,
                schema=table.schema.schema,
                table=table.schema.table,
                column=_broken_column(payload, table, checksum=checksum),
            ) from error
        if table.visible is not table.schema:
            rows = without_hidden(rows, table.visible)
        if unlogged:
            narrow = table.narrow.get(unlogged)
            if narrow is None:
                narrow = table.narrow[unlogged] = without_unlogged(table.visible, unlogged)
            rows = logged_columns_only(rows, narrow, unlogged)
        if table.live is None:
            return rows
        return table.live.rows(rows, table.without(table.live, unlogged))

    def schema(self, payload: bytes, context: tuple[bytes, ...]) -> RowSchema:  # noqa: ARG002
        """See `setl.codec.row_codec.RowCodec.schema`; the TABLE_MAP event says it all."""
        return (self._decoders.get(context) or self._learn(context)).shown

    def row_form(self, payload: bytes, context: tuple[bytes, ...]) -> BinlogForm | None:  # noqa: ARG002
        """See `setl.codec.row_codec.RowCodec.row_form`."""
        return binlog_form(context)

    def likely_rows(self, payload: bytes, context: tuple[bytes, ...], size: int) -> float:
        """See `setl.codec.row_codec.RowCodec.likely_rows`."""
        return likely_rows(context, payload, size)

    def find_rows(self, form: RowForm, payloads: Sequence[tuple[int, bytes]]) -> FoundRows:
        """See `setl.codec.row_codec.RowCodec.find_rows`."""
        if not isinstance(form, BinlogForm):
            raise TypeError("these rows are no row events")
        found = find_rows(form, payloads)
        if lacks_labels(found.values):
            raise UnfitRowsError("a number has no label in its column", int(found.starts[0]))
        return found

    def _learn(self, context: tuple[bytes, ...]) -> _Decoder:
        table = described_table(context)
        logged = b"".join(context[2:3]).decode()  # the digits of `old_times`
        try:
            # Where times may be longer than they seem, text that is none tells that they are.
            columns = column_readers(table, lenient=not logged)
        except DAMAGED as error:
            raise damaged_description(error) from error
        json = tuple(
            (i, piece_reader(column, bytes))
            for i, column in enumerate(table.columns)
            if column.type == ColumnType.JSON
        )
        readers = [column.read for column in columns]
        mariadb = is_mariadb(context[0])
        leaves_out = mariadb and major_version(context[0]) > LAST_WHOLE
        ends = ends_of_rows(table) if mariadb else {}
        live_rows = _live_rows(context, table, ends)
        for i, live in ends.items():
            read = readers[i]
            readers[i] = telling(live, read) if live_rows else refusing(read, live, table)
        digits = dict(zip(old_times(table.columns), logged, strict=bool(logged)))
        for i, number in digits.items():
            if number not in {"0", *UNSURE}:
                readers[i] = refusing_fractions(table, i, number)
        visible = visible_schema(table, context[0])
        known = _Decoder(
            table.schema,
            visible,
            tuple(readers),
            json,
            mariadb,
            leaves_out,
            frozenset(b"".join(context[4:]).decode().split("\0")),
            {},
            table,
            {
                i: lengths_tried(table.columns[i], number)
                for i, number in digits.items()
                if number in UNSURE
            },
            live_rows,
        )
        if len(self._decoders) >= _MAX_TABLES:
            self._decoders.clear()
        self._decoders[context] = known
        return known


def _live_rows(
    context: tuple[bytes, ...], table: TableDetail, ends: Collection[int]
) -> LiveRows | None:
    """What makes live rows of a table's rows; None if it is not known to be versioned."""
    logged = b"".join(context[3:4]).decode()
    if not logged:
        return None
    live = LiveRows(*logged.split("\0"))
    names = table.schema.names
    known = any(names[i] == live.end for i in ends) and live.start in names
    return live if known else None


def _decode_event(
    event: bytes, table: _Decoder, *, checksum: bool, keys_alone: bool
) -> tuple[DecodedRows, int]:
    """The rows of an event, and its unlogged columns, see `unlogged_columns_mask`."""
    kind = event[4]
    end = len(event) - CHECKSUM_BYTES if checksum else len(event)
    present, after, at = _sides(event, len(table.readers))
    if at == end:
        raise ValueError("it holds no rows")
    if kind in UPDATES:
        if kind == EventType.PARTIAL_UPDATE_ROWS:
            raw = list(table.readers)
            for column, read in table.json:
                raw[column] = read
            json = [column for column, _ in table.json]
            images = partial_images(event, at, end, raw, json, present=present, after=after)
        else:
            images = _images(event, at, end, table, present, after)
        pairs: list[tuple[Row | None, Row | None]] = list(
            zip(images[::2], images[1::2], strict=True)
        )
        lacking, unlogged = (0, 0) if keys_alone else _left_out(table, present, after)
        if lacking:
            if table.mariadb and without_doubles(table.schema, present, after):
                pairs = [
                    (one, two if one is None or two is None else filled(two, one))
                    for one, two in pairs
                ]
            else:
                _refuse_replaced(table.schema, pairs)
        return DecodedRows(table.schema, Op.UPDATE, pairs), unlogged
    if kind in INSERTS:
        lacking, unlogged = (0, 0) if keys_alone else _left_out(table, None, present)
        if lacking:
            raise _not_described("an insert leaves columns out, whose defaults are not known")
        images = _images(event, at, end, table, present)
        return DecodedRows(table.schema, Op.INSERT, [(None, image) for image in images]), unlogged
    if kind in DELETES:
        images = _images(event, at, end, table, present)
        return DecodedRows(table.schema, Op.DELETE, [(image, None) for image in images]), 0
    raise ValueError(f"an event of type {kind} holds no rows")


def _left_out(table: _Decoder, before: int | None, after: int) -> tuple[int, int]:
    """The columns that a row behind a change lacks, a bit for each.

    Args:
        table: their table.
        before: a bit for each column that the image before has; None for an insert.
        after: likewise.

    Returns:
        Those that may have their defaults now, and those of which nothing is said.
    """
    # Younger MariaDBs leave hidden columns out of an update's images.
    lacking = (1 << len(table.visible.columns)) - 1 & ~after
    if not (lacking and (table.leaves_out if before is None else table.mariadb)):
        return lacking, 0
    unlogged = unlogged_columns_mask(table.visible, before, after, table.generated)
    return lacking & ~unlogged, unlogged


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
            raise _not_described(
                "an update leaves columns out, which may have been set to their defaults"
            )


def _not_described(what: str) -> DataError:
    return DataError(
        what,
        hint=f"{_FULL}What the binlog has already arrives with `read: source` for the table",
    )


def _sides(event: bytes, columns: int) -> tuple[int, int, int]:
    """A bit for each column that images before and after have, and where the images begin.

    Raises:
        DataError: they have no column.
        ValueError, IndexError: the event is damaged, or of another table.
    """
    count, at = packed_integer(event, _rows_start(event))
    if count != columns:
        raise ValueError(f"{count} columns where the table has {columns}")
    present, at = _bitmap(event, at, count)
    after, at = _bitmap(event, at, count) if event[4] in UPDATES else (present, at)
    if not present | after:
        # Such an image takes no byte, so not even the number of rows is known.
        raise DataError(
            "a change names no column of its row, not even the key", hint=f"{_FULL}{_LOAD}"
        )
    return present, after, at


def _rows_start(event: bytes) -> int:
    """Where the number of columns stands: after table id, flags and any extra data."""
    at = HEADER_BYTES + 8
    return at if event[4] in FIRST_ROWS else extra_data_end(event, at)


def _bitmap(event: bytes, at: int, count: int) -> tuple[int, int]:
    """A bit for each column, and where they end."""
    end = at + (count + 7) // 8
    if end > len(event):
        raise IndexError("the event ends inside its columns")
    # The bits behind the last column's mean nothing: MariaDB clears them, MySQL may set them.
    return int.from_bytes(event[at:end], "little") & (1 << count) - 1, end


def _images(event: bytes, at: int, end: int, table: _Decoder, *sides: int) -> list[Row]:
    """All images of an event; for an update those before and after take turns.

    Args:
        event: the event.
        at: where they begin.
        end: where they end.
        table: their table.
        sides: for each that takes turns, a bit for each column that is there.
    """
    readers = table.readers
    if table.unsure:
        there = [[i for i in range(len(readers)) if side >> i & 1] for side in sides]
        see_whole_seconds(table.wire, table.unsure, Images(event, at, end, there))
    every = (1 << len(readers)) - 1
    plans = [
        (None, readers) if present == every else _partial(readers, present) for present in sides
    ]
    images: list[Row] = []
    append = images.append
    turn = 0
    while at < end:
        missing, readers = plans[turn]
        turn = (turn + 1) % len(plans)
        row, at = read_image(readers, event, at)
        append(row if missing is None else _spread(row, missing))
    if at != end or turn:
        raise ValueError("its rows do not end where the event ends")
    return images


def _partial(readers: Sequence[Reader], present: int) -> tuple[list[bool], list[Reader]]:
    """For an image without all columns: which are there, and their readers."""
    there = [bool(present >> i & 1) for i in range(len(readers))]
    return there, [read for read, here in zip(readers, there, strict=True) if here]


def _spread(row: Row, there: list[bool]) -> Row:
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
        watching = table._replace(readers=readers)
        _decode_event(event, watching, checksum=checksum, keys_alone=True)
    return current
