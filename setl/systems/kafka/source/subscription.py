"""Change records on one partition of a Kafka topic, as a `Source`.

The partition is assigned, not subscribed to: which node reads is decided by the leader lock. With
`mode: subscribe` a consumer group has a say too, in which a membership of its own takes part (see
`setl.systems.kafka.source.group`). The position is the pipeline's own checkpoint.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from zlib import crc32

from confluent_kafka import Message

from setl.channel.file import KafkaSource, OffsetStart, TimestampStart
from setl.clock import Clock, SystemClock
from setl.errors import DataError, FatalError, PositionLostError, SetlError, TransientError
from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry
from setl.model.position import KafkaOrigin, KafkaPosition, Position
from setl.select.source import Blocked, PassesBy, absorbs_nothing
from setl.systems.kafka.client import Bounds
from setl.systems.kafka.formats import header_reader
from setl.systems.kafka.partition import expired, never_written
from setl.systems.kafka.reader import TopicReader
from setl.systems.kafka.source.access import PartitionAccess
from setl.systems.kafka.source.entries import RecordEntries
from setl.systems.kafka.source.group import GroupMembership
from setl.systems.kafka.source.record_entries import Entries, StandaloneEntries
from setl.systems.kafka.source.row_chunks import Mixing
from setl.systems.kafka.source.search import TopicSearch, moved_reason
from setl.systems.kafka.source.standing import NoProgress

_LOG = logging.getLogger(__name__)
_PAST = (
    "`setl peek` shows it. To leave it out: `setl stop` the channel, `setl position reset PIPELINE"
    " --to {}`, start it, and compare with `setl verify --repair`"
)

# Records that are taken from the client at once: with more, they have left the processor's caches
# when they are looked at.
_AT_ONCE = 1024
_SLICE = 0.2  # seconds after which a waiting read looks whether it was closed
_SILENCE = 3.0  # seconds without records after which the broker is asked for a sign of life
_COUNTED = 30.0  # seconds after which the broker is asked how many partitions the topic has
_QUIET = 1.0  # seconds without records after which the topic may have been made again


class DtsKafkaSource:
    """Reads one partition from an offset on; see `Source`.

    A broker that is gone looks like an idle one to the client, which tries for ever. So after
    3 s without records the broker is asked where the partition ends; no answer within
    `timeout` is a lost connection. And a broker that comes back may be of another cluster, or
    have another topic by the same name, in which the client would read on at the same offset. So
    a lost connection is an error of `read`, and the pipeline locates its checkpoint again; and
    what comes after a time without records is looked at: which cluster and topic it is of. A topic
    that has more partitions than before is an error of `read`, or of `open`: rows may be elsewhere.

    Records that a relay wrote twice are dropped without an entry, so that no checkpoint lies
    behind one: the record before a checkpoint, which is read again, tells the last position.

    `locate`, `open`, `read` and `initial` belong to one thread; `latest`, `behind`, `blocked` and
    `close` to any.
    """

    def __init__(
        self,
        config: KafkaSource,
        *,
        timeout: float = 5.0,
        clock: Clock | None = None,
        mixing: Mixing | None = None,
    ) -> None:
        """Nothing is connected yet.

        Args:
            config: brokers, topic, partition, account and further settings of the client.
            timeout: seconds to wait for any answer of a broker.
            clock: for the signs of life.
            mixing: see `RecordEntries`.
        """
        self._config = config
        self._headers = header_reader(config)
        self._mixing = mixing
        self._timeout = timeout
        self._clock = clock or SystemClock()
        self._access = PartitionAccess(config, timeout, self._clock)
        self._partition = self._access.partition
        self._reader: TopicReader | None = None
        self._origin = KafkaOrigin()
        self._records = self._from(KafkaPosition(config.topic, config.partition, 0))
        self._behind: int | None = None
        self._standing = NoProgress(config, self._clock)
        self._before = 0  # CRC-32 of the record before it that must come first, 0 for none
        self._heard = self._counted = 0.0
        self._held: SetlError | None = None
        self._waiting = False  # opened without a turn
        self._using = threading.Lock()
        self._closing = threading.Event()
        self.group: GroupMembership | None = None
        if config.mode == "subscribe":
            self.group = GroupMembership(config, timeout=timeout, clock=self._clock)

    def initial(self) -> Position:
        """See `Source.initial`. A start by time is the source's commit time, in seconds."""
        start = self._config.start
        with self._access.asking() as reader:
            search = self._access.search(reader)
            if isinstance(start, TimestampStart):
                return search.at_time(start.timestamp)
            bounds = search.bounds()
            if isinstance(start, OffsetStart):
                self._check(start.offset, bounds, never_written)
                return search.at(start.offset)
            return search.at(bounds.first if start == "earliest" else bounds.end)

    def locate(self, checkpoint: Checkpoint) -> Checkpoint:
        """See `Source.locate`."""
        position = self._own(checkpoint.resume)
        with self._access.asking() as reader:
            search = self._access.search(reader)
            other_position = search.resume(position)
            if other_position is position:
                return self._as_it_was(checkpoint, search)
        moved = checkpoint.moved_to(other_position)
        _LOG.warning(
            "%s: the position %s is of another topic than the one that answers now, so reading "
            "goes on at %s, %d s before it, as generation %d; what was applied since is applied "
            "again",
            ",".join(self._config.brokers),
            checkpoint,
            other_position,
            position.timestamp - other_position.timestamp,
            moved.generation,
        )
        return moved

    def _as_it_was(self, checkpoint: Checkpoint, search: TopicSearch) -> Checkpoint:
        """The checkpoint, whose `resume` is there; without `applied` if that is another record now.

        A topic that has lost its end gives the offsets behind it again.
        """
        applied = checkpoint.applied
        objection = "" if applied is None else search.objection(self._own(applied))
        if not objection:
            return checkpoint
        moved = checkpoint.moved_to(checkpoint.resume)
        _LOG.warning(
            "%s: %s, inside the transaction that is applied in part: the topic has lost records,"
            " so reading goes on at %s, as generation %d",
            ",".join(self._config.brokers),
            objection,
            checkpoint.resume,
            moved.generation,
        )
        return moved

    def open(self, position: Position) -> None:
        """See `Source.open`."""
        position = self._own(position)
        self._closing.clear()
        with self._used():
            self._drop()
            self._held = None
            if self.group is not None:
                self.group.join()
                if not self.group.in_noted_turn:
                    # The position may be another member's by now; nothing is read from it.
                    self._waiting = True
                    return
            reader = self._reader = self._access.connect()
            with self._access.placing():
                bounds = reader.bounds(self._config.partition)
                self._origin = reader.origin
                moved = moved_reason(position.origin, self._origin)
                if moved:
                    raise self._replaced(moved)
                self._check(position.offset, bounds)
                # With the record before it, to see that it is still the one that was read, and
                # where a relay stood. There may be none: offsets have gaps.
                again = position.offset > bounds.first
                self._before = position.record if again else 0
                reader.seek({self._config.partition: position.offset - again})
            self._records = self._from(position)
            self._behind = None
            self._held = None
            self._heard = self._counted = self._clock.monotonic()

    def read(
        self,
        limit: int,
        timeout: float,
        absorbs: PassesBy = absorbs_nothing,  # noqa: ARG002 - nothing comes in another thread
    ) -> Sequence[Entry]:
        """See `Source.read`."""
        with self._used():
            if self._reader is None and not self._waiting:
                raise TransientError("the source is not open").at(**self._access.where())
            if self.group is not None and not self.group.my_turn(timeout, self._closing):
                return ()
            if self._held is not None:
                raise self._held
            deadline = self._clock.monotonic() + timeout
            while not self._closing.is_set():
                left = deadline - self._clock.monotonic()
                records = self._poll(limit, max(0.0, min(left, _SLICE)))
                if records and (self.group is None or self.group.in_noted_turn):
                    entries = self._entries(records)
                    if entries:
                        return entries
                if left <= 0:
                    return ()
            raise TransientError("the source was closed").at(**self._access.where())

    def latest(self) -> Position:
        """See `Source.latest`."""
        everything = {**self._config.kafka, "isolation.level": "read_uncommitted"}
        config = self._config.model_copy(update={"kafka": everything})
        with PartitionAccess(config, self._timeout, self._clock).asking() as reader:
            end = reader.bounds(self._config.partition).end
            return KafkaPosition(self._config.topic, self._config.partition, end)

    def sizes(self) -> Sequence[tuple[int, int]]:
        """See `Source.sizes`."""
        return ()

    def behind(self) -> int | None:
        """See `Source.behind`; records of others' open transactions are counted too."""
        return self._behind

    def close(self) -> None:
        """See `Source.close`."""
        self._closing.set()
        # Whoever reads just now sees the flag within a slice, and drops the reader itself:
        # the client is not made for two threads.
        if self._using.acquire(timeout=2 * _SLICE):
            try:
                self._drop()
            finally:
                self._using.release()

    def release(self) -> None:
        """See `Source.release`."""
        self.close()
        if self.group is not None:
            self.group.leave()

    def waiting_for(self) -> str:
        """See `Source.waiting_for`."""
        if self.group is not None and self.group.waiting_for:
            return self.group.waiting_for
        blocked = self.blocked()
        return "" if blocked is None else blocked.what

    def blocked(self) -> Blocked | None:
        """See `Source.blocked`; while another member has the partition, nothing is read."""
        if self.group is not None and not self.group.in_noted_turn:
            return None
        return self._standing.blocked()

    def shared(self) -> bool:
        """See `Source.shared`."""
        return False

    def _from(self, position: KafkaPosition) -> Entries:
        """What is remembered from record to record, from a position on."""
        if self._headers is not None:
            return StandaloneEntries(self._partition, self._origin, position, self._headers)
        logical_names = self._config.logical_names
        return RecordEntries(
            self._partition,
            self._origin,
            position,
            logical_names=logical_names,
            mixing=self._mixing,
        )

    def _poll(self, limit: int, timeout: float) -> list[Message]:
        reader = self._reader
        if reader is None:  # the group gave the turn, and nothing was opened in it
            raise TransientError("the source is not open").at(**self._access.where())
        with self._access.placing():
            try:
                found = reader.take(min(limit, _AT_ONCE), timeout)
                self._check_connection(reader)
            except PositionLostError:
                raise self._out_of_range(reader) from None
            self._measure(reader)
            if self._clock.monotonic() - self._counted > _COUNTED:
                self._access.refuse_added(reader.partitions())
                self._counted = self._clock.monotonic()
            silent = self._clock.monotonic() - self._heard
            if found:
                if silent > _QUIET and self._origin.topic:
                    self._check_origin(reader)
                self._heard = self._clock.monotonic()
                self._standing.moves()
                return self._after_position(found)
            partition = self._config.partition
            self._standing.nothing_came(reader.position(partition), self._behind)
            if silent > _SILENCE:
                self._check_origin(reader)
                if self._standing.is_odd:
                    self._standing.committed_end(reader.bounds(partition).end)
                self._heard = self._clock.monotonic()
            return []

    def _out_of_range(self, reader: TopicReader) -> SetlError:
        """The error that the broker does not have the next offset."""
        self._check_connection(reader)
        self._check_origin(reader)
        bounds = reader.bounds(self._config.partition)
        position = self._records.next
        if position > bounds.end:
            return self._replaced(f"the topic ends at {bounds.end}, so it was made again")
        if position >= bounds.first:
            return self._replaced(f"the record before {position} has expired")
        return expired(position, bounds)

    def _check_connection(self, reader: TopicReader) -> None:
        """See that what came is of the brokers that were asked."""
        if reader.lost_connection:
            raise self._replaced("the connection to the brokers was lost")

    def _check_origin(self, reader: TopicReader) -> None:
        """See that the topic that answers now is the one that was opened."""
        moved = moved_reason(self._origin, reader.ask_origin())
        if moved:
            raise self._replaced(moved)

    def _measure(self, reader: TopicReader) -> None:
        """How far the end is, as the last answer told; without asking again."""
        end = reader.highwater(self._config.partition)
        if end is not None:
            # Not the last record's: behind it may be records that nobody is shown.
            self._behind = max(0, end - reader.position(self._config.partition))

    def _after_position(self, records: list[Message]) -> list[Message]:
        """Records without the one before the position, which must be the one that was read."""
        first, position = records[0], self._records.next
        expected, self._before = self._before, 0
        offset = first.offset()
        if expected and (offset, crc32(first.value() or b"")) != (position - 1, expected):
            raise self._replaced(f"another record stands before {position}")
        if offset >= position:
            return records
        self._records.is_repeat(first)
        return records[1:]

    def _replaced(self, reason: str) -> TransientError:
        return TransientError(f"the position has to be looked up again: {reason}").at(
            **self._access.where()
        )

    def _entries(self, records: list[Message]) -> list[Entry]:
        entries, error = self._records.of(records)
        if error is not None:
            failure = error
            if isinstance(error, DataError):
                offset = error.where.get("position", "").rpartition("@")[2]
                behind = str(int(offset) + 1) if offset.isdigit() else "OFFSET"
                hint = ". ".join(filter(None, (error.hint, _PAST.format(behind))))
                failure = FatalError(error.message, hint=hint, **error.where)
                failure.__cause__ = error
            self._held = failure.at(**self._access.where())
            if not entries:
                raise self._held from error
        return entries

    def _check(
        self,
        offset: int,
        bounds: Bounds,
        error: Callable[[int, Bounds], PositionLostError] = expired,
    ) -> None:
        if not bounds.first <= offset <= bounds.end:
            raise error(offset, bounds).at(**self._access.where())

    def _own(self, position: Position) -> KafkaPosition:
        if isinstance(position, KafkaPosition) and (
            (position.topic, position.partition) == (self._config.topic, self._config.partition)
        ):
            return position
        raise FatalError(
            f"the checkpoint {position} is not one of {self._config.topic}"
            f"[{self._config.partition}]",
            hint="Reset the position: it was kept for another source",
        )

    @contextmanager
    def _used(self) -> Generator[None]:
        """Hold the reader; drop it at the end if it was closed meanwhile."""
        with self._using:
            try:
                yield
            finally:
                if self._closing.is_set():
                    self._drop()

    def _drop(self) -> None:
        reader, self._reader, self._waiting = self._reader, None, False
        self._standing.moves()
        if reader is not None:
            reader.close()
