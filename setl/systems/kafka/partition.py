"""Looking around in one partition: what it holds, and single records without decoding rows.

Offsets have gaps. Kafka's own transactions leave control records that no reader sees, records of
transactions that were not committed are skipped, and compaction removes others. So nothing here
takes it for granted that an offset holds a record, least of all the last one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from typing import NamedTuple
from zlib import crc32

from setl.clock import Clock
from setl.codec.dts.header import FULL_LOAD, read_header
from setl.codec.record_header import HeaderReader
from setl.errors import DataError, PositionLostError, TransientError
from setl.model.entry import EntryKind
from setl.model.position import KafkaOrigin, KafkaPosition
from setl.systems.kafka.client import Bounds
from setl.systems.kafka.reader import TopicReader
from setl.systems.kafka.record import Record, TopicPartition

_SLICE = 0.5  # seconds that a poll may take
_AT_ONCE = 500  # records that it gives
_FURTHEST_BACK = 1 << 16  # offsets that are looked through for the record before a position


class SeenRecord(NamedTuple):
    """What is known of one record without decoding its row.

    Attributes:
        offset: its offset.
        kind: what it is.
        seconds: the source's commit time, 0 for a filler.
        crc: CRC-32 of its value.
        full_load: whether it is a row of a full load (INIT), or of another format in which each
            record stands alone: nothing that lies before it says anything of it.
    """

    offset: int
    kind: EntryKind
    seconds: int
    crc: int
    full_load: bool = False


class PartitionView:
    """Reads here and there in one partition, with a reader that is used for nothing else."""

    def __init__(
        self,
        reader: TopicReader,
        partition: TopicPartition,
        *,
        timeout: float,
        clock: Clock,
        headers: HeaderReader | None = None,
    ) -> None:
        """Nothing is asked yet.

        Args:
            reader: a `TopicReader` of the partition's topic.
            partition: the partition, which exists.
            timeout: seconds to wait for any one answer.
            clock: for the limits of waiting.
            headers: of a format in which each record stands alone; None for DTS.
        """
        self._see: Callable[[Record], SeenRecord] = _seen
        if headers is not None:
            self._see = partial(_seen_alone, headers)
        self._reader = reader
        self._partition = partition
        self._timeout = timeout
        self._clock = clock

    @property
    def origin(self) -> KafkaOrigin:
        """The topic and the cluster that answer."""
        return self._reader.origin

    def bounds(self) -> Bounds:
        """What the partition holds now."""
        return self._reader.bounds(self._partition.partition)

    def position(self, offset: int, seconds: int = 0, crc: int = 0) -> KafkaPosition:
        """A position in this partition of the cluster that answers."""
        topic, partition = self._partition.topic, self._partition.partition
        return KafkaPosition(topic, partition, offset, seconds, crc, self.origin)

    def at(self, offset: int, seconds: int = 0) -> KafkaPosition:
        """The position at an offset, with what is to be known of it.

        Args:
            offset: where reading is to go on.
            seconds: the position's time if no record before it tells one.
        """
        before = self.before(offset)
        if before is None:
            return self.position(offset, seconds)
        crc = before.crc if before.offset == offset - 1 else 0
        return self.position(offset, before.seconds or seconds, crc)

    def written_since(self, seconds: float) -> int | None:
        """The first offset that Kafka dates at or after a time, None if there is none."""
        return self._reader.offset_since(self._partition.partition, seconds)

    def record(self, offset: int) -> SeenRecord | None:
        """The record at an offset before the partition's end, None if there is none."""
        deadline = self._clock.monotonic() + self._timeout
        found = next(self.records(offset, offset + 1, deadline), None)
        return found if found is not None and found.offset == offset else None

    def before(self, offset: int) -> SeenRecord | None:
        """The last record before an offset, None if none is near."""
        first, step, until = self.bounds().first, 1, offset
        while until > first and step <= _FURTHEST_BACK:
            start = max(first, offset - step)
            deadline = self._clock.monotonic() + self._timeout
            found = deque(self.records(start, until, deadline), maxlen=1)
            if found:
                return found[0]
            until, step = start, step * 16
        return None

    def records(self, start: int, end: int, deadline: float) -> Generator[SeenRecord]:
        """The records that are there from an offset on and before another.

        Args:
            start: the first offset, not before the partition's first.
            end: the offset to stop at, not beyond the partition's end.
            deadline: monotonic time.

        Raises:
            TransientError: they are not delivered by then.
        """
        number = self._partition.partition
        self._reader.seek({number: start})
        offset = start
        while offset < end:
            if self._clock.monotonic() > deadline:
                raise TransientError(f"the records from offset {offset} on do not come in time")
            for record in self._reader.poll(_AT_ONCE, _SLICE):
                if record.offset >= end:
                    return
                yield self._see(record)
            # Goes beyond what nobody is shown as well.
            offset = self._reader.position(number)


def expired(offset: int, bounds: Bounds) -> PositionLostError:
    """The final error that an offset is not in a topic (I8)."""
    why = "has expired" if offset < bounds.first else "does not exist, so the topic was made again"
    return PositionLostError(
        f"offset {offset} {why}; the topic holds {bounds.first} to {bounds.end}",
        hint=hints(bounds),
    )


def never_written(offset: int, bounds: Bounds) -> PositionLostError:
    """The final error that an offset that was asked for is not in a topic."""
    if offset < bounds.first:
        return expired(offset, bounds)
    return PositionLostError(
        f"offset {offset} does not exist yet; the topic holds {bounds.first} to {bounds.end}",
        hint=f"Set `start` to an offset from {bounds.first} to {bounds.end}, to a time, or to"
        " `earliest` or `latest`",
    )


def hints(bounds: Bounds) -> str:
    """What an operator can do about a lost place."""
    return (
        "Stop the channel, move on with `setl position reset PIPELINE --to latest` "
        f"({bounds.end}), start it, and load the tables again with `setl load PIPELINE --replace`, "
        "which also deletes what only the target has. Or take what is left with `--to earliest` "
        f"({bounds.first}) and compare with `setl verify`. Let the topic keep records longer"
    )


def _seen_alone(headers: HeaderReader, record: Record) -> SeenRecord:
    crc = crc32(record.value or b"")
    try:
        header = headers.read(record.key, record.value)
    except DataError:
        return SeenRecord(record.offset, EntryKind.HEARTBEAT, 0, crc)
    alone = header.kind is EntryKind.ROWS
    return SeenRecord(record.offset, header.kind, header.seconds, crc, alone)


def _seen(record: Record) -> SeenRecord:
    value: bytes = record.value or b""
    try:
        entry = read_header(value, KafkaPosition("", 0, record.offset + 1))
    except DataError:
        # Whoever reads on from here will say so; for the search it is a record like others.
        return SeenRecord(record.offset, EntryKind.HEARTBEAT, 0, crc32(value))
    full_load = entry.kind is EntryKind.ROWS and entry.statement == FULL_LOAD
    return SeenRecord(record.offset, entry.kind, int(entry.timestamp), crc32(value), full_load)
