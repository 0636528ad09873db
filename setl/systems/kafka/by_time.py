"""Finds the position of a commit time in a partition.

Brokers have an index of the time at which Kafka got a record, in milliseconds, or in seconds with
Alibaba's proxy, and neither is the time at which the source committed. So the position is found by
bisection, reading single records. Commit times grow along a partition, nearly: sources deliver
transactions a little out of order, so what lies shortly before the position is looked through as
well.

A statement that ran for an hour is the exception: MySQL dates its rows by when it began, and its
COMMIT too if it committed by itself. Bisection takes all before it for older. So what stands before
the position is looked through, until there are more transactions of before the time than were open
at once.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, NamedTuple

from setl.errors import PositionLostError
from setl.model.entry import EntryKind
from setl.model.position import KafkaPosition
from setl.systems.kafka.client import Bounds
from setl.systems.kafka.partition import PartitionView, SeenRecord, hints

SEARCH_SECONDS = 60.0
"""How long a search may take."""

_SLACK = 60  # seconds by which records may be out of order
_MOST_SLACK = 200_000  # records of that time that are looked through at most
ENDS: Final = frozenset((EntryKind.COMMIT, EntryKind.DDL))
"""Records behind which no transaction is open."""
# Begins and ends of transactions, all older than a time and one behind the other, before which
# nothing is as new: it would have been committed while all of these were open.
_OPEN_AT_ONCE = 200
_MOST_LOOKED_BACK = 1_000_000  # rows, and fillers, that are looked through for them
_STEP_BACK = 256  # records that are looked through first
_MOST_STEP = 1 << 16


class Crossing(NamedTuple):
    """Where commit times pass a given one, as far as single records tell.

    Attributes:
        offset: the first offset behind it; the partition's end if all is older.
        before: the last record with a time before it, None if there is none.
        after: the first record with a time behind it, None if there is none.
    """

    offset: int
    before: SeenRecord | None
    after: SeenRecord | None


def crossing(view: PartitionView, bounds: Bounds, seconds: float, deadline: float) -> Crossing:
    """Bisect for a time; records without one are skipped forward."""
    low, high = bounds.first, bounds.end
    before = after = None
    while low < high:
        middle = (low + high) // 2
        dated = (r for r in view.records(middle, high, deadline) if r.seconds)
        found = next(dated, None)
        if found is None:
            high = middle
        elif found.seconds < seconds:
            low, before = found.offset + 1, found
        else:
            high, after = middle, found
    return Crossing(low, before, after)


def newest(view: PartitionView, bounds: Bounds, deadline: float) -> SeenRecord | None:
    """The last record that has a time."""
    return crossing(view, bounds, float("inf"), deadline).before


def first_since(
    view: PartitionView, bounds: Bounds, seconds: int, deadline: float
) -> SeenRecord | None:
    """The first record committed at or after a time, None if there is none."""
    start = _start(view, bounds, seconds, deadline)
    return next(
        (r for r in view.records(start, bounds.end, deadline) if r.seconds >= seconds), None
    )


def position_at_time(
    view: PartitionView, bounds: Bounds, seconds: int, deadline: float
) -> KafkaPosition:
    """Where to read from to get all that was committed at or after a time.

    Returns:
        The beginning of the transaction that the first such record is of.

    Raises:
        PositionLostError: there is no such record yet, or older ones have expired; names the
            nearest one that is there.
        TransientError: the records do not come by `deadline`.
    """
    oldest = next((r for r in view.records(bounds.first, bounds.end, deadline) if r.seconds), None)
    if oldest is None:
        raise _lost(seconds, "the topic holds no record that has a time", bounds)
    if seconds < oldest.seconds and bounds.first > 0:
        raise _lost(seconds, f"older records have expired, the oldest is {_named(oldest)}", bounds)
    start = _start(view, bounds, seconds, deadline)
    boundary = None
    for record in view.records(start, bounds.end, deadline):
        if _begins(record):
            boundary = record.offset
        if record.seconds >= seconds:
            if boundary is None:
                boundary = _boundary_before(view, bounds, start, record, deadline)
            return view.at(boundary, seconds)
        if record.kind in ENDS:
            boundary = record.offset + 1
    last = newest(view, bounds, deadline) or oldest
    raise _lost(seconds, f"the newest record is {_named(last)}", bounds)


def with_all_since(
    view: PartitionView, bounds: Bounds, offset: int, seconds: int, deadline: float
) -> int:
    """The offset, or one before it, before which nothing was committed at or after a time.

    Raises:
        PositionLostError: this is unknown, since the transactions before it are too large.
        TransientError: the records do not come by `deadline`.
    """
    until, step = offset, _STEP_BACK
    seen = rows = fillers = 0
    while until > bounds.first and seen < _OPEN_AT_ONCE and fillers < _MOST_LOOKED_BACK:
        if rows > _MOST_LOOKED_BACK:
            why = f"{rows} rows before offset {offset} do not show what is older"
            raise _lost(seconds, f"{why}: name an offset, or an earlier time", bounds)
        begin = max(bounds.first, until - step)
        older = 0
        for record in view.records(begin, until, deadline):
            if record.seconds >= seconds:
                offset, seen = record.offset, 0
                break
            if not record.seconds:
                fillers += 1
            elif record.kind is EntryKind.ROWS and not record.full_load:
                rows += 1
            else:
                older += 1
        seen += older
        until, step = begin, min(step * 4, _MOST_STEP)
    return offset


def utc(seconds: float) -> str:
    """A time as people read it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _start(view: PartitionView, bounds: Bounds, seconds: int, deadline: float) -> int:
    """An offset before which nothing was committed at or after a time."""
    early = crossing(view, bounds, seconds - _SLACK, deadline).offset
    late = crossing(view, bounds, seconds, deadline).offset
    return with_all_since(view, bounds, max(early, late - _MOST_SLACK), seconds, deadline)


def _boundary_before(
    view: PartitionView, bounds: Bounds, start: int, hit: SeenRecord, deadline: float
) -> int:
    """The beginning of the transaction of a record, which is not between `start` and it."""
    step, until = 1000, start
    while until > bounds.first:
        begin = max(bounds.first, until - step)
        boundary = None
        for record in view.records(begin, until, deadline):
            if _begins(record):
                boundary = record.offset
            elif record.kind in ENDS:
                boundary = record.offset + 1
        if boundary is not None:
            return boundary
        step, until = step * 4, begin
    if bounds.first == 0:
        return 0
    # Nothing tells whether a transaction is open at the first record that is kept, unless the
    # next one begins before any row.
    for record in view.records(hit.offset, bounds.end, deadline):
        if _begins(record) or record.kind is EntryKind.DDL:
            break
        if record.kind is not EntryKind.HEARTBEAT:
            why = f"of the transaction at offset {hit.offset} the beginning has expired"
            raise _lost(hit.seconds, why, bounds)
    return hit.offset


def _begins(record: SeenRecord) -> bool:
    """Whether reading may begin at a record: no mark stands before it that is of its rows."""
    return record.kind is EntryKind.BEGIN or record.full_load


def _named(record: SeenRecord) -> str:
    return f"of {utc(record.seconds)} ({record.seconds}), at offset {record.offset}"


def _lost(seconds: int, reason: str, bounds: Bounds) -> PositionLostError:
    return PositionLostError(
        f"nothing can be read from {utc(seconds)} ({seconds}) on: {reason}", hint=hints(bounds)
    )
