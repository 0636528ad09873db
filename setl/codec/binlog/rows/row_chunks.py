"""Runs: row events of one transaction under one table, joined to one payload.

An event of one row costs the driver, and everybody behind it, as much as one of a hundred rows.
So events that follow each other in a transaction are handed on together where they have the same
TABLE_MAP event and were written in the same second: their bytes back to back, each with its header
and, where the file has checksums, with its own. A small transaction that changes tables in turn
has one run for each of them, see `OpenRowChunks`. The header says what an event is, how long, and
where in the file it ends; from that follows how much older it is than the last one. MariaDB from
11.7 on leaves out where; it is added, see `BinlogHeaderReader` for what that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter, itemgetter
from struct import Struct
from typing import Final, NamedTuple

from setl.codec.binlog.event import (
    ARTIFICIAL_FLAG,
    DELETES,
    EVENT_HEADER,
    HEADER_BYTES,
    INSERTS,
    UPDATES,
    EventType,
)
from setl.codec.binlog.rows.row_estimate import RowEstimate

MOST_EVENTS: Final = 1000
MOST_BYTES: Final = 256 * 1024

FIRST_BYTES: Final = 8 * 1024
"""Bytes that a run may have at first. Later it may have a quarter of all that was read by then.

A run goes into one batch whole, and the first batches of a take-over are small, for they are to be
loaded soon (I4). A narrow row has 30 bytes.
"""

JOINED: Final = INSERTS | DELETES | (UPDATES - {EventType.PARTIAL_UPDATE_ROWS})
"""Kinds of events that are joined. The others are long, rare, or decoded in a way of their own."""

END: Final = Struct("<I")
END_AT: Final = 13
"""Where an event's header says where in the file the event ends."""

_SIZE_AND_END: Final = Struct("<II")
_SIZE_AT: Final = 9
_SECONDS: Final = Struct("<I")
_MOST_AHEAD: Final = 1 << 31  # bytes; an event has 1 GiB at most

LOW_32_BITS: Final = 0xFFFF_FFFF
"""Places in a file have 32 bits in an event, and may wrap."""


def records_of(payload: bytes) -> Sequence[tuple[int, bytes]]:
    """The events of a payload, see `setl.codec.row_codec.RowCodec.records`.

    Bytes that are no whole event are given as one, which nobody can decode.
    """
    total = len(payload)
    if total < HEADER_BYTES:
        return ((0, payload),)
    size, end = _SIZE_AND_END.unpack_from(payload, _SIZE_AT)
    if size >= total or size < HEADER_BYTES:
        return ((0, payload),)
    found: list[tuple[int, bytes]] = []
    at = 0
    while total - at >= HEADER_BYTES:
        size, end = _SIZE_AND_END.unpack_from(payload, at + _SIZE_AT)
        if not HEADER_BYTES <= size <= total - at:
            break
        found.append((end, payload[at : at + size]))
        at += size
    if at < total:
        found.append((found[-1][0], payload[at:]))
    last = found[-1][0]
    return [(last - end & LOW_32_BITS, event) for end, event in found]


def likely_inserts(payload: bytes) -> bool:
    """See `setl.codec.row_codec.RowCodec.likely_inserts`; each event says its kind."""
    at, total = 0, len(payload)
    while at < total:
        if total - at < HEADER_BYTES:
            return False
        _, kind, _, size, _, _ = EVENT_HEADER.unpack_from(payload, at)
        if kind not in INSERTS or size < HEADER_BYTES:
            return False
        at += size
    return total > 0


def has_own_position(payload: bytes, offset: int) -> bool:
    """Whether the records of a payload, which ends at `offset`, say themselves where they end.

    Those of runs do, or they would not have been joined.
    """
    if len(payload) < HEADER_BYTES:
        return False
    _, kind, _, size, end, flags = EVENT_HEADER.unpack_from(payload)
    if size != len(payload):
        return HEADER_BYTES <= size < len(payload)
    return end == offset & LOW_32_BITS and _may_join(kind, end, flags)


@dataclass(frozen=True, eq=False, slots=True)
class KnownTable:
    """What is kept of a TABLE_MAP event. Equal to itself alone.

    Attributes:
        schema: the table's schema.
        table: its name.
        context: see `Entry.context`.
        estimate: how many rows its events hold.
        checksum: whether its events end with a checksum.
        mixes: whether its events may be joined over those of other tables, see `OpenRowChunks`.
    """

    schema: str
    table: str
    context: tuple[bytes, ...]
    estimate: RowEstimate
    checksum: bool
    mixes: bool = False


class RowChunk(NamedTuple):
    """Row events that are one entry.

    Attributes:
        table: the table that they are of.
        events: the raw events.
        end: offset in the file behind the last one.
    """

    table: KnownTable
    events: list[bytes]
    end: int


class OpenRowChunks:
    """The runs that are being joined, one for each table; none between two groups of them.

    Tables whose events may not be joined over those of others have a group for each run.

    Where several runs are open, their events lie between each other, but entries are in order and
    a batch may end behind any of them. Behind one of these, the checkpoint would call events done
    that the next run holds, if other runs are made when they are read again. So such runs are
    handed on if they are all of a transaction that is never cut: see `is_small`. If not, their
    events are put in order again.

    Attributes:
        parts: the raw events of each run, by table, in the order in which the runs begin.
        count: all of these events.
        size: their bytes.
        table: the table that the last one is of; None if there are none.
        seconds: when they were written.
        end: offset in the file behind the last one.
        mixes: whether there may be several runs now.
        most_events: events that they may have.
        most_bytes: bytes that several events may have now, see `FIRST_BYTES`.
    """

    __slots__ = (
        "_all_bytes",
        "_most_bytes",
        "_rows",
        "count",
        "end",
        "mixes",
        "most_bytes",
        "most_events",
        "parts",
        "seconds",
        "size",
        "table",
    )

    def __init__(self, most_events: int, most_bytes: int) -> None:
        self.most_events = most_events
        self._most_bytes = most_bytes
        self._all_bytes = self.size = 0
        self.clear()
        self.begin()

    def begin(self) -> None:
        """A transaction begins."""
        self._rows = 0
        self.mixes = True

    def clear(self) -> None:
        """Begin other runs."""
        self._all_bytes += self.size
        self.most_bytes = min(self._most_bytes, max(FIRST_BYTES, self._all_bytes // 4))
        self.parts: dict[KnownTable, list[bytes]] = {}
        self.count = self.size = self.seconds = self.end = 0
        self.table: KnownTable | None = None

    def takes(self, event: bytes, table: KnownTable) -> bool:
        """Whether an event may be joined to those that are there."""
        last = self.table
        if last is None:
            return True
        seconds, _, _, size, _, _ = EVENT_HEADER.unpack_from(event)
        if seconds != self.seconds or self.size + size > self.most_bytes:
            return False
        return table is last or (self.mixes and table.mixes and last.mixes)

    def add(self, event: bytes, table: KnownTable, end: int) -> bool:
        """Join an event that `takes` allows; returns whether there is no more room.

        Args:
            event: the raw event.
            table: the table that it is of.
            end: offset in the file behind it.
        """
        if not self.count:
            (self.seconds,) = _SECONDS.unpack_from(event)
        self.table = table
        self.parts.setdefault(table, []).append(event)
        self.count += 1
        self.size += len(event)
        self.end = end
        return self.count >= self.most_events or self.size >= self.most_bytes

    def by_table(self) -> list[RowChunk]:
        """The runs, in the order in which they end."""
        if len(self.parts) == 1:
            return [RowChunk(table, events, self.end) for table, events in self.parts.items()]
        found = [RowChunk(table, each, self._end(each[-1])) for table, each in self.parts.items()]
        found.sort(key=_end_of_run)
        return found

    def in_order(self) -> list[RowChunk]:
        """The same events as runs that follow each other; no others of the transaction mix."""
        self.mixes = False
        with_position = [
            (self._end(event), table, event)
            for table, events in self.parts.items()
            for event in events
        ]
        with_position.sort(key=itemgetter(0))
        found: list[RowChunk] = []
        for table, of_table in groupby(with_position, key=itemgetter(1)):
            parts = list(of_table)
            found.append(RowChunk(table, [event for _, _, event in parts], parts[-1][0]))
        return found

    def is_small(self, rows: int) -> bool:
        """Whether no batch is cut in a transaction that has so many rows more, and ends then.

        A batch takes as many rows as a run may have events, however small it is to be.
        """
        self._rows += rows
        return self._rows <= self.most_events

    def _end(self, event: bytes) -> int:
        (end,) = END.unpack_from(event, END_AT)
        return self.end - (self.end - end & LOW_32_BITS)


_end_of_run = attrgetter("end")


def with_position(event: bytes, offset: int) -> bytes:
    """A row event whose header says where it ends, also where its server left that out.

    Then its checksum is that of the event as it came. Nobody looks at it any more.

    Args:
        event: the raw event.
        offset: offset in the file behind it.
    """
    _, _, _, _, end, flags = EVENT_HEADER.unpack_from(event)
    if end or flags & ARTIFICIAL_FLAG:
        return event
    return b"".join((event[:END_AT], END.pack(offset & LOW_32_BITS), event[END_AT + END.size :]))


def may_join(event: bytes) -> bool:
    """Whether a row event may be joined to others at all: its position must be its own."""
    _, kind, _, _, end, flags = EVENT_HEADER.unpack_from(event)
    return _may_join(kind, end, flags)


def _may_join(kind: int, end: int, flags: int) -> bool:
    return kind in JOINED and end != 0 and not flags & ARTIFICIAL_FLAG


def offset_behind(offset: int, end: int) -> int:
    """The first position from `offset` on that an event's header names `end`, with 32 bits.

    Events that a server leaves out make holes, so the sizes of those that come do not add up. A
    place further off than any event is long lies before `offset`: files that were restarted.
    """
    ahead = end - offset & LOW_32_BITS
    return offset + ahead if ahead < _MOST_AHEAD else end
