"""Finds where each row image of a payload begins, without reading values.

Rows are of different lengths, so where a row begins is known when the one before it was gone over.
But each event says where its first row begins: so all events go from row to row in lockstep, one
vector operation for each column that may be NULL or has a length. Its cost is that of so many calls
for each row of the longest event; where few events are left, these are gone over in a loop.

Whatever the bytes are, it ends: each row takes at least the byte of its bitmap, and no position
beyond the payload is read. Bytes that do not add up are an error, never rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setl.codec.binlog.columns.form import BinlogForm
from setl.codec.binlog.columns.layout import RowLayout
from setl.codec.binlog.columns.values import BinlogColumns
from setl.codec.binlog.event import (
    CHECKSUM_BYTES,
    COMPRESSED_ROWS,
    DELETES,
    HEADER_BYTES,
    INSERTS,
    UPDATES,
    EventType,
)
from setl.codec.binlog.inflation import inflated_rows
from setl.codec.binlog.rows.row_chunks import END_AT, LOW_32_BITS
from setl.codec.columns.images import FoundRows, UnfitRowsError
from setl.codec.columns.window import Positions, Window, either

_KIND_AND_SIZE: Final = Struct("<4xB4xI")
_BODY: Final = HEADER_BYTES + 8  # behind header, table id and flags
_SECOND: Final = int(EventType.WRITE_ROWS)  # from here on events have extra data
_LEAST_EVENTS: Final = 24  # below that, a loop over their rows takes less time than lockstep


def _kinds(*kinds: frozenset[EventType]) -> NDArray[np.bool_]:
    table = np.zeros(256, np.bool_)
    for some in kinds:
        table[[int(kind) for kind in some]] = True
    return table


_UPDATED: Final = _kinds(UPDATES - {EventType.PARTIAL_UPDATE_ROWS})
_DELETED: Final = _kinds(DELETES)
_READ: Final = _UPDATED | _DELETED | _kinds(INSERTS)


@dataclass(frozen=True, slots=True)
class EventRows(FoundRows):
    """Images of row events."""

    values: BinlogColumns


def find_rows(form: BinlogForm, payloads: Sequence[tuple[int, bytes]]) -> EventRows:
    """Find the images of row events of one table, see `RowCodec.find_rows`.

    Labels are not looked at, see `setl.codec.binlog.columns.labels.lacks_labels`.

    Raises:
        UnfitRowsError: the events are damaged, of other kinds, or images lack columns.
    """
    layout = form.layout
    found = _events(layout, b"".join([payload for _, payload in payloads]))
    window, at, stop = Window(found.data), found.begins, found.stops
    try:
        kinds = window.bytes[at + 4]
        ends: NDArray[np.uint32] = window.view("<u4")[at + END_AT]
        first = _first_rows(layout, window, at, stop, kinds)
        starts, counts = _starts(layout, window, found.data, first, stop)
    except IndexError as error:
        # A length that leads beyond the payload.
        raise UnfitRowsError("an event ends inside a row", 0) from error
    odd = _UPDATED[kinds] & (counts & 1 == 1)
    _require(~odd, at, "an update lacks an image")
    _refuse_impossible_nulls(layout, window, starts)
    events = np.repeat(np.arange(len(at), dtype=np.int64), counts)
    versions = _versions(found.given, ends, payloads)
    updated, deleted = _UPDATED[kinds], _DELETED[kinds]
    values = BinlogColumns(layout, window, starts)
    return EventRows(form, window, starts, values, events, updated, deleted, versions)


def _versions(
    begins: Positions, ends: NDArray[np.uint32], payloads: Sequence[tuple[int, bytes]]
) -> NDArray[np.int64]:
    """The version of each event; that of a payload is of its last event.

    Args:
        begins: where each event begins in all payloads together.
        ends: of each event where in its file it ends, the lower 32 bits.
        payloads: each with its version.

    Raises:
        UnfitRowsError: a payload does not end where an event does.
    """
    stops = np.cumsum([len(payload) for _, payload in payloads], dtype=np.int64)
    bounds = np.append(begins, stops[-1])
    following = np.searchsorted(bounds, stops)
    if (bounds[following] != stops).any():
        raise UnfitRowsError("an event ends too early", int(stops[0]))
    counts = np.diff(following, prepend=0)
    given = np.array([version for version, _ in payloads], np.int64)
    last = ends[following - 1].astype(np.int64)
    behind = np.repeat(last, counts) - ends.astype(np.int64)
    return np.repeat(given, counts) - (behind & LOW_32_BITS)


class _Events(NamedTuple):
    """The events of a payload, without compression.

    Attributes:
        given: where each begins in the payload.
        data: the events one behind the other; the payload itself if none was compressed.
        begins: where each begins in `data`.
        stops: where its rows end there.
    """

    given: Positions
    data: bytes
    begins: Positions
    stops: Positions


def _events(layout: RowLayout, payload: bytes) -> _Events:
    front, total = _KIND_AND_SIZE.unpack_from, len(payload)
    trailer = CHECKSUM_BYTES if layout.checksum else 0
    least = _BODY + len(layout.count) + trailer
    begins: list[int] = []
    at, compressed = 0, False
    while at < total:
        if total - at < least:
            raise UnfitRowsError("an event ends too early", at)
        kind, size = front(payload, at)
        if not least <= size <= total - at:
            raise UnfitRowsError(f"an event says that it has {size} bytes", at)
        compressed = compressed or kind in COMPRESSED_ROWS
        begins.append(at)
        at += size
    if not begins:
        raise UnfitRowsError("there is no event", 0)
    given = np.array(begins, np.int64)
    if not compressed:
        return _Events(given, payload, given, np.append(given[1:], total) - trailer)
    parts = [
        _plain(payload[begin:end], begin, checksum=layout.checksum)
        for begin, end in zip(begins, [*begins[1:], total], strict=True)
    ]
    stops = np.cumsum([len(part) for part in parts], dtype=np.int64)
    return _Events(given, b"".join(parts), np.append(0, stops[:-1]), stops)


def _plain(event: bytes, position: int, *, checksum: bool) -> bytes:
    """An event without compression and without a checksum."""
    if event[4] not in COMPRESSED_ROWS:
        return event[:-CHECKSUM_BYTES] if checksum else event
    try:
        return inflated_rows(event, checksum=checksum)
    except (ValueError, LookupError) as error:
        raise UnfitRowsError(f"an event is not compressed as it says: {error}", position) from error


def _first_rows(
    layout: RowLayout, window: Window, begin: Positions, stop: Positions, kinds: NDArray[np.uint8]
) -> Positions:
    """Where the rows of each event begin, all of whose images have to have all columns."""
    _require(_READ[kinds], begin, "an event holds no rows that are read by column")
    second = kinds >= _SECOND
    at = begin + _BODY
    if second.any():
        extra = either(second, window.view("<u2")[at].astype(np.int64), 0)
        _require(~second | (extra >= 2), begin, "an event's extra data is damaged")
        at = at + extra
    updated = _UPDATED[kinds]
    count, width = layout.count, layout.width
    first = at + len(count) + either(updated, 2 * width, width)
    _require(first < stop, begin, "an event has no rows")
    for i, byte in enumerate(count):
        _require(window.bytes[at + i] == byte, begin, "an event has another number of columns")
    bitmap = at + len(count)
    _require(_has_all(layout, window, bitmap), begin, "images lack columns")
    if updated.any():
        after = either(updated, bitmap + width, bitmap)
        _require(_has_all(layout, window, after), begin, "images lack columns")
    return first


def _has_all(layout: RowLayout, window: Window, bitmap: Positions) -> NDArray[np.bool_]:
    """Whether bitmaps at these positions have the bit of each column."""
    found = np.ones(len(bitmap), np.bool_)
    for i in range(layout.width):
        # Bits behind the last column's mean nothing: MariaDB clears them, MySQL 9.7 sets them.
        mask = (1 << min(8, len(layout.columns) - 8 * i)) - 1
        found &= window.bytes[bitmap + i] & mask == mask
    return found


def _require(holds: NDArray[np.bool_], positions: Positions, message: str) -> None:
    """Raise UnfitRowsError for the first position for which it does not hold."""
    if not holds.all():
        raise UnfitRowsError(message, int(positions[int(np.argmin(holds))]))


def _starts(
    layout: RowLayout, window: Window, data: bytes, first: Positions, stop: Positions
) -> tuple[Positions, NDArray[np.int64]]:
    """Where each row begins, in order, and how many there are in each event.

    Raises:
        IndexError: a row leads beyond the payload.
    """
    found: list[Positions] = []
    counts = np.zeros(len(first), np.int64)
    at, end, event = first, stop, np.arange(len(first), dtype=np.int64)
    while len(at) >= _LEAST_EVENTS:
        found.append(at)
        counts[event] += 1
        behind = _behind(layout, window, at)
        inside = behind < end
        if not inside.all():
            _require(inside | (behind == end), at, "an event ends inside a row")
            behind, end, event = behind[inside], end[inside], event[inside]
        at = behind
    # The rest of each event in turn.
    for start, last, number in zip(at.tolist(), end.tolist(), event.tolist(), strict=True):
        rows = _walked(layout, data, start, last)
        counts[number] += len(rows)
        found.append(np.array(rows, np.int64))
    starts = np.concatenate(found)
    if len(found) > 1:
        starts.sort()  # events follow each other, and so do the rows of each
    return starts, counts


def _behind(layout: RowLayout, window: Window, start: Positions) -> Positions:
    """Where the rows end that begin at these positions."""
    nulls: dict[int, NDArray[np.uint8] | None] = {}
    at = start
    for skip, column, size, nullable in layout.steps:
        at = at + skip
        byte = None
        if nullable:
            index = column >> 3
            if index not in nulls:
                bits = window.bytes[start + index]
                nulls[index] = bits if bits.any() else None
            byte = nulls[index]
        taken = window.lengths(at, -size) - size if size < 0 else size
        if byte is not None:
            taken = taken * (byte >> np.uint8(column & 7) & np.uint8(1) == 0)
        at = at + taken
    return at + layout.tail


def _walked(layout: RowLayout, data: bytes, at: int, stop: int) -> list[int]:
    """Where the rows between two positions begin.

    Raises:
        IndexError: a row leads beyond the payload.
    """
    found: list[int] = []
    width = layout.width
    nullable = sum(1 << i for i, column in enumerate(layout.columns) if column.nullable)
    number = int.from_bytes
    while at < stop:
        found.append(at)
        nulls = number(data[at : at + width], "little") & nullable
        if not nulls:
            for skip, prefix in layout.whole_steps:
                at += skip
                if prefix == 1:
                    at += 1 + data[at]
                else:
                    at += prefix + number(data[at : at + prefix], "little")
            at += layout.whole_tail
            continue
        for skip, column, size, may_be_null in layout.steps:
            at += skip
            if may_be_null and nulls >> column & 1:
                continue
            if size >= 0:
                at += size
            else:
                at += number(data[at : at - size], "little") - size
        at += layout.tail
    if at != stop:
        raise UnfitRowsError("an event ends inside a row", found[-1])
    return found


def _refuse_impossible_nulls(layout: RowLayout, window: Window, starts: Positions) -> None:
    """Refuse a NULL in a column that takes none: the way over the row was another one then."""
    for i in range(layout.width):
        columns = enumerate(layout.columns[8 * i : 8 * i + 8])
        never = sum(1 << j for j, column in columns if not column.nullable)
        if never:
            null = window.bytes[starts + i] & np.uint8(never)
            _require(null == 0, starts, "a column is NULL that cannot be")
