"""Where a place left earlier is in the topic that answers now.

Offsets mean something in one topic of one cluster only. Another cluster behind the same
addresses, or a topic that was made anew, counts from 0 again, and the old offset may well exist
there: reading on at it would skip whatever lies before. So before reading on, the place is
compared with what is known of it; if it is another one, it is looked up by time, some way back,
since what is delivered again changes nothing. If the topic does not reach back that far, the
place is lost (I8).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from zlib import crc32

from kafka.structs import OffsetAndTimestamp, TopicPartition

from setl.clock import Clock
from setl.codec.dts.header import read_header
from setl.errors import DataError, PositionLostError, TransientError
from setl.model.entry import EntryKind
from setl.model.position import KafkaOrigin, KafkaPosition
from setl.select.kafka_client import origin_of

# Seconds to go back from the time of the last applied record. Clocks differ and a source may
# deliver transactions a little out of order; and reading must begin between two transactions,
# of which a long one may have none for a while.
_MARGINS = (60, 600, 3600, 6 * 3600, 24 * 3600)
_LIMIT = 60.0  # seconds that a search may take
_SLICE = 0.5  # seconds that a poll may take
_BETWEEN = frozenset((EntryKind.COMMIT, EntryKind.DDL))


class _Seen(NamedTuple):
    """What is known of one record without decoding its row."""

    offset: int
    kind: EntryKind
    seconds: int
    crc: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a topic holds.

    Attributes:
        first: the first offset that is kept.
        end: the offset of the next record to come.
    """

    first: int
    end: int


class TopicSearch:
    """Looks places up in one partition, with a consumer that is used for nothing else."""

    def __init__(
        self, consumer: Any, partition: TopicPartition, *, timeout: float, clock: Clock
    ) -> None:
        """Nothing is asked yet.

        Args:
            consumer: connected, without an assignment.
            partition: the partition, which exists.
            timeout: seconds to wait for any one answer.
            clock: for the limit of a search.
        """
        self._consumer = consumer
        self._partition = partition
        self._timeout = timeout
        self._clock = clock

    def bounds(self) -> Bounds:
        """What the topic holds now."""
        wanted, limit = [self._partition], self._timeout * 1000
        return Bounds(
            self._consumer.beginning_offsets(wanted, timeout_ms=limit)[self._partition],
            self._consumer.end_offsets(wanted, timeout_ms=limit)[self._partition],
        )

    def at(self, offset: int, seconds: int = 0) -> KafkaPosition:
        """The position at an offset, with what is to be known of it.

        Args:
            offset: where reading is to go on.
            seconds: the position's time if no record stands before it.
        """
        before = self._record(offset - 1) if offset > self.bounds().first else None
        topic, partition = self._partition.topic, self._partition.partition
        origin = origin_of(self._consumer, topic)
        if before is None or before.offset != offset - 1:
            return KafkaPosition(topic, partition, offset, seconds, 0, origin)
        return KafkaPosition(
            topic, partition, offset, before.seconds or seconds, before.crc, origin
        )

    def first_since(self, seconds: int) -> OffsetAndTimestamp | None:
        """The first record whose Kafka timestamp is not before a time, if there is one."""
        return self._consumer.offsets_for_times(
            {self._partition: seconds * 1000}, timeout_ms=self._timeout * 1000
        )[self._partition]

    def resume(self, position: KafkaPosition) -> KafkaPosition:
        """The place to go on from: `position` itself, or the same place in another topic.

        Raises:
            PositionLostError: it has expired, or the topic does not reach back to it.
            TransientError: the search takes too long.
        """
        bounds, origin = self.bounds(), origin_of(self._consumer, position.topic)
        objection = moved_reason(position.origin, origin)
        if position.offset < bounds.first and not objection:
            raise expired(position.offset, bounds)
        objection = objection or self._objection(position, bounds)
        if not objection:
            return position
        return self._by_time(position, objection, bounds)

    def _objection(self, position: KafkaPosition, bounds: Bounds) -> str:
        """Why the topic cannot be the one that was read, as far as its records show."""
        offset = position.offset
        if offset > bounds.end:
            return f"the topic ends at {bounds.end}, so it was made anew"
        if not position.record or offset == bounds.first:
            return ""
        before = self._record(offset - 1)
        if before is not None and (before.offset, before.crc) == (offset - 1, position.record):
            return ""
        return f"another record than the one that was read stands before {offset}"

    def _by_time(self, position: KafkaPosition, objection: str, bounds: Bounds) -> KafkaPosition:
        applied = position.timestamp
        if not applied:
            raise _lost(position, objection, "the position has no time to look for", bounds)
        newest = self._record(bounds.end - 1) if bounds.end > bounds.first else None
        if newest is None:
            raise _lost(position, objection, "the topic is empty", bounds)
        # A topic that has not come as far as the position yet has nothing of its time.
        wanted = min(applied, newest.seconds or applied)
        deadline = self._clock.monotonic() + _LIMIT
        tried: set[int] = set()
        for margin in (*_MARGINS, None):
            start = bounds.first
            if margin is not None:
                since = self.first_since(wanted - margin)
                start = bounds.first if since is None else since.offset
            if start in tried:
                continue
            tried.add(start)
            found = self._boundary(start, applied, deadline)
            if found is not None:
                return found
        raise _lost(position, objection, f"nothing in it is older than {_utc(applied)}", bounds)

    def _boundary(self, start: int, before: int, deadline: float) -> KafkaPosition | None:
        """The first place between two transactions, from `start` on and of before a time."""
        topic, partition = self._partition.topic, self._partition.partition
        origin = origin_of(self._consumer, topic)
        for seen in self._records(start, deadline):
            if seen.seconds >= before:
                break
            if seen.kind is EntryKind.BEGIN and seen.seconds:
                return KafkaPosition(topic, partition, seen.offset, seen.seconds, 0, origin)
            if seen.kind in _BETWEEN and seen.seconds:
                place = seen.offset + 1
                return KafkaPosition(topic, partition, place, seen.seconds, seen.crc, origin)
        return None

    def _record(self, offset: int) -> _Seen | None:
        """The first record from an offset on, None if none comes in time."""
        return next(self._records(offset, self._clock.monotonic() + self._timeout), None)

    def _records(self, start: int, deadline: float) -> Generator[_Seen]:
        """Records from an offset to the end of the topic as of now."""
        end, offset = self.bounds().end, start
        self._consumer.assign([self._partition])
        self._consumer.seek(self._partition, start)
        while offset < end:
            if self._clock.monotonic() > deadline:
                raise TransientError(f"the records from offset {offset} on do not come in time")
            for record in self._poll():
                yield _seen(record)
                offset = record.offset + 1

    def _poll(self) -> list[Any]:
        found = self._consumer.poll(timeout_ms=int(_SLICE * 1000))
        return found.get(self._partition, [])


def moved_reason(known: KafkaOrigin | None, found: KafkaOrigin) -> str:
    """Why a topic is another one than that of a position, by their ids; "" if none tells."""
    if known is None:
        return ""
    if known.cluster and found.cluster and known.cluster != found.cluster:
        return f"the brokers were of cluster {known.cluster}, and {found.cluster} answers now"
    if known.topic and found.topic and known.topic != found.topic:
        return f"the topic had the id {known.topic}, and {found.topic} now: it was made anew"
    return ""


def expired(offset: int, bounds: Bounds) -> PositionLostError:
    """The final error that an offset is not in a topic (I8)."""
    why = "has expired" if offset < bounds.first else "does not exist, so the topic was made anew"
    return PositionLostError(
        f"offset {offset} {why}; the topic holds {bounds.first} to {bounds.end}",
        hint=ways_out(bounds),
    )


def ways_out(bounds: Bounds) -> str:
    """What an operator can do about a lost place."""
    return (
        "Load the tables again and move on with `setl position reset PIPELINE --to latest` "
        f"({bounds.end}), or take what is left with `--to earliest` ({bounds.first}) and compare "
        "with `setl verify`; let the topic keep records longer"
    )


def _lost(
    position: KafkaPosition, objection: str, reason: str, bounds: Bounds
) -> PositionLostError:
    return PositionLostError(
        f"{position} is not the place it was: {objection}. It cannot be found by time: {reason}; "
        f"the topic holds {bounds.first} to {bounds.end}",
        hint=ways_out(bounds),
    )


def _seen(record: Any) -> _Seen:
    value: bytes = record.value or b""
    try:
        entry = read_header(value, KafkaPosition("", 0, record.offset + 1))
    except DataError:
        # Whoever reads on from here will say so; for the search it is a record like others.
        return _Seen(record.offset, EntryKind.HEARTBEAT, 0, crc32(value))
    return _Seen(record.offset, entry.kind, int(entry.timestamp), crc32(value))


def _utc(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
