"""Where a position left earlier is in the topic that answers now.

Offsets mean something in one topic of one cluster only. Another cluster behind the same
addresses, or a topic that was made again, counts from 0 again. The old offset may well exist
there, and reading on at it would skip whatever lies before. So the position is first compared with
what is known of it. If it is another one, it is looked up by time. Reading begins some way before
it, since what is delivered again changes nothing. If the topic does not reach back that far, the
place is lost (I8).
"""

from __future__ import annotations

from typing import Final

from setl.clock import Clock
from setl.errors import ConfigurationError, PositionLostError
from setl.model.entry import EntryKind
from setl.model.position import KafkaOrigin, KafkaPosition
from setl.systems.kafka.by_time import (
    ENDS,
    SEARCH_SECONDS,
    crossing,
    first_since,
    newest,
    position_at_time,
    utc,
    with_all_since,
)
from setl.systems.kafka.client import Bounds
from setl.systems.kafka.partition import PartitionView, SeenRecord, expired, hints

# Seconds to go back from the time of the last applied record. Clocks differ and a source may
# deliver transactions a little out of order; and reading must begin between two transactions,
# of which a long one may have none for a while.
_MARGINS = (60, 600, 3600, 6 * 3600, 24 * 3600)
_BETWEEN = frozenset((EntryKind.COMMIT, EntryKind.DDL))

_STEP: Final = 64  # offsets that are looked at first
_FURTHEST: Final = 1 << 20  # offsets that are looked at for the record before the position


class TopicSearch:
    """Looks positions up in one partition."""

    def __init__(self, view: PartitionView, clock: Clock) -> None:
        """Nothing is asked yet.

        Args:
            view: of the partition, with a reader that is used for nothing else.
            clock: for the limit of a search.
        """
        self._view = view
        self._clock = clock

    def bounds(self) -> Bounds:
        """What the topic holds now."""
        return self._view.bounds()

    def at(self, offset: int) -> KafkaPosition:
        """The position at an offset, with what is to be known of it."""
        return self._view.at(offset)

    def check_between(self, offset: int) -> None:
        """Refuse an offset inside a transaction, as far as the records beside it tell."""
        check_between(self._view, self.bounds(), offset, self._deadline())

    def first_since(self, seconds: int) -> SeenRecord | None:
        """The first record committed at or after a time, if there is one."""
        return first_since(self._view, self.bounds(), seconds, self._deadline())

    def at_time(self, seconds: int) -> KafkaPosition:
        """Where to read from to get all that was committed since; see `position_at_time`."""
        return position_at_time(self._view, self.bounds(), seconds, self._deadline())

    def resume(self, position: KafkaPosition) -> KafkaPosition:
        """The position to go on from: `position` itself, or the same position in another topic.

        Raises:
            PositionLostError: it has expired, or the topic does not reach back to it.
            TransientError: the search takes too long.
        """
        bounds = self.bounds()
        objection = moved_reason(position.origin, self._view.origin)
        if position.offset < bounds.first and not objection:
            raise expired(position.offset, bounds)
        objection = objection or self._objection(position, bounds)
        if not objection:
            return position
        return self.by_time(position, objection, bounds)

    def objection(self, position: KafkaPosition) -> str:
        """Why a position is another one than when it was read, in words.

        "" if it may be the same.
        """
        return self._objection(position, self.bounds())

    def _objection(self, position: KafkaPosition, bounds: Bounds) -> str:
        """Why the topic cannot be the one that was read, as far as its records show."""
        offset = position.offset
        if offset > bounds.end:
            return f"the topic ends at {bounds.end}, so it was made again"
        if not position.record or offset == bounds.first:
            return ""
        # A position that knows a record stands right behind it, whatever gaps there are.
        before = self._view.record(offset - 1)
        if before is not None and before.crc == position.record:
            return ""
        return f"another record than the one that was read stands before {offset}"

    def by_time(self, position: KafkaPosition, objection: str, bounds: Bounds) -> KafkaPosition:
        """Where to go on instead of a position to which there is an objection; see `resume`."""
        applied = position.timestamp
        if not applied:
            raise lost(position, objection, "the position has no time to look for", bounds)
        deadline = self._deadline()
        last = newest(self._view, bounds, deadline)
        if last is None:
            raise lost(position, objection, "the topic is empty", bounds)
        # A topic that has not come as far as the position yet has nothing of its time.
        wanted = min(applied, last.seconds)
        tried: set[int] = set()
        for margin in (*_MARGINS, None):
            start = bounds.first
            if margin is not None:
                start = crossing(self._view, bounds, wanted - margin, deadline).offset
            if start in tried:
                continue
            tried.add(start)
            start = with_all_since(self._view, bounds, start, applied, deadline)
            found = self._boundary(start, bounds.end, applied, deadline)
            if found is not None:
                return found
        raise lost(position, objection, f"nothing in it is older than {utc(applied)}", bounds)

    def _boundary(self, start: int, end: int, before: int, deadline: float) -> KafkaPosition | None:
        """The first position between two transactions, from `start` on and of before a time."""
        for seen in self._view.records(start, end, deadline):
            if seen.seconds >= before:
                break
            if seen.seconds and (seen.kind is EntryKind.BEGIN or seen.full_load):
                return self._view.position(seen.offset, seen.seconds)
            if seen.seconds and seen.kind in _BETWEEN:
                return self._view.position(seen.offset + 1, seen.seconds, seen.crc)
        return None

    def _deadline(self) -> float:
        return self._clock.monotonic() + SEARCH_SECONDS


def moved_reason(known: KafkaOrigin | None, found: KafkaOrigin) -> str:
    """Why a topic is another one than that of a position, by their ids; "" if none tells."""
    if known is None:
        return ""
    if known.cluster and found.cluster and known.cluster != found.cluster:
        return f"the brokers were of cluster {known.cluster}, and {found.cluster} answers now"
    if known.topic and found.topic and known.topic != found.topic:
        return f"the topic had the id {known.topic}, and {found.topic} now: it was made again"
    return ""


def lost(position: KafkaPosition, objection: str, reason: str, bounds: Bounds) -> PositionLostError:
    """The final error that a position is another one, and cannot be found (I8)."""
    return PositionLostError(
        f"{position} is not the position it was: {objection}. It cannot be found by time: "
        f"{reason}; "
        f"the topic holds {bounds.first} to {bounds.end}",
        hint=hints(bounds),
    )


def check_between(view: PartitionView, bounds: Bounds, offset: int, deadline: float) -> None:
    """Refuse an offset inside a transaction; one that nothing tells of passes.

    Reading that begins inside of a transaction sees neither its mark nor its first rows: half of it
    would be applied, and what this channel wrote itself would be taken for a client's.

    Raises:
        ConfigurationError: it is; names where the next transaction begins.
        TransientError: the records do not come by `deadline`.
    """
    before = _change_before(view, bounds, offset, deadline)
    if before is None or before.full_load or before.kind in ENDS:
        return
    following = (r for r in view.records(offset, bounds.end, deadline) if _is_change(r))
    first = next(following, None)
    if first is not None and _begins(first):
        return  # sources leave out a COMMIT now and then
    there = first
    while there is not None and not (_begins(there) or there.kind is EntryKind.COMMIT):
        there = next(following, None)
    ends = "has not come to its end yet"
    if there is not None:
        behind = there.offset + (there.kind is EntryKind.COMMIT)
        ends = f"ends before {behind}: give that offset to leave it out"
    raise ConfigurationError(
        f"the position {offset} is inside a transaction",
        hint=f"It {ends}. To take all of it, give that of its BEGIN (`setl peek --all` shows it)",
    )


def _change_before(
    view: PartitionView, bounds: Bounds, offset: int, deadline: float
) -> SeenRecord | None:
    """The last record before an offset that is no heartbeat, None if none is near."""
    until, step = offset, _STEP
    while until > max(bounds.first, offset - _FURTHEST):
        begin = max(bounds.first, until - step)
        last = None
        for record in view.records(begin, until, deadline):
            if _is_change(record):
                last = record
        if last is not None:
            return last
        until, step = begin, step * 4
    return None


def _is_change(record: SeenRecord) -> bool:
    return record.kind is not EntryKind.HEARTBEAT


def _begins(record: SeenRecord) -> bool:
    return record.full_load or record.kind in (EntryKind.BEGIN, EntryKind.DDL)
