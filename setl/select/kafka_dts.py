"""A DTS subscription, one partition of a Kafka topic, as a `Source`.

The partition is assigned, not subscribed to: which node reads is decided by the mainstem, and
nothing is ever committed to Kafka. The place is the pipeline's own checkpoint.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import ceil
from typing import Any
from zlib import crc32

from kafka.errors import KafkaError, OffsetOutOfRangeError
from kafka.structs import TopicPartition

from setl.clock import Clock, SystemClock
from setl.codec.dts.header import DtsHeaderReader
from setl.config.channel import DtsSource, OffsetStart, TimestampStart
from setl.errors import (
    ConfigurationError,
    DataError,
    FatalError,
    PositionLostError,
    SetlError,
    TransientError,
)
from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry
from setl.model.position import KafkaOrigin, KafkaPosition, Position
from setl.select.kafka_client import connect, connection_of, origin_of, translate
from setl.select.kafka_search import Bounds, TopicSearch, expired, moved_reason, ways_out

_LOG = logging.getLogger(__name__)

_SLICE = 0.2  # seconds after which a waiting read looks whether it was closed
_SILENCE = 3.0  # seconds without records after which the broker is asked for a sign of life


class DtsKafkaSource:
    """Reads one partition from an offset on; see `Source`.

    A broker that is gone looks like an idle one to the client, which tries for ever. So after
    3 s without records the broker is asked where the partition ends; no answer within
    `timeout` is a lost connection. And a broker that comes back may be of another cluster, in
    which the client would read on at the same offset; so a connection that was made anew is an
    error of `read`, and the pipeline locates its checkpoint again.

    `locate`, `open`, `read` and `initial` belong to one thread; `latest` and `close` to any.
    """

    def __init__(
        self, config: DtsSource, *, timeout: float = 5.0, clock: Clock | None = None
    ) -> None:
        """Nothing is connected yet.

        Args:
            config: brokers, topic, partition, account and further settings of the client.
            timeout: seconds to wait for any answer of a broker.
            clock: for the signs of life.
        """
        self._config = config
        self._timeout = timeout
        self._clock = clock or SystemClock()
        self._partition = TopicPartition(config.topic, config.partition)
        self._consumer: Any = None
        self._headers = DtsHeaderReader()
        self._next = 0  # offset of the next record
        self._before = 0  # CRC-32 of the record before it that must come first, 0 for none
        self._time = 0  # commit time of the last record that had one
        self._origin = KafkaOrigin()
        self._connection: object | None = None
        self._heard = 0.0
        self._held: SetlError | None = None
        self._using = threading.Lock()
        self._closing = threading.Event()

    def initial(self) -> Position:
        """See `Source.initial`.

        A start by timestamp is looked up by the timestamps of the Kafka records, which a
        normal broker keeps in milliseconds. (The proxy of Alibaba's own service takes
        seconds there; it is not supported, give it an offset.)
        """
        start = self._config.start
        with self._asking() as consumer:
            search = self._search(consumer)
            bounds = search.bounds()
            if isinstance(start, OffsetStart):
                self._check(start.offset, bounds)
                return search.at(start.offset)
            if isinstance(start, TimestampStart):
                return self._at_time(search, start.timestamp, bounds)
            return search.at(bounds.first if start == "earliest" else bounds.end)

    def locate(self, checkpoint: Checkpoint) -> Checkpoint:
        """See `Source.locate`."""
        position = self._own(checkpoint.resume)
        with self._asking() as consumer:
            place = self._search(consumer).resume(position)
        if place is position:
            return checkpoint
        moved = checkpoint.moved_to(place)
        _LOG.warning(
            "%s: the position %s is of another topic than the one that answers now, so reading "
            "goes on at %s, %d s before it, as generation %d; what was applied since is applied "
            "again",
            ",".join(self._config.brokers),
            checkpoint,
            place,
            position.timestamp - place.timestamp,
            moved.generation,
        )
        return moved

    def open(self, position: Position) -> None:
        """See `Source.open`."""
        position = self._own(position)
        self._closing.clear()
        with self._used():
            self._drop()
            consumer = self._connect()
            self._consumer = consumer
            with self._translating():
                bounds = self._search(consumer).bounds()
                self._origin = origin_of(consumer, self._config.topic)
                moved = moved_reason(position.origin, self._origin)
                if moved:
                    raise self._replaced(moved)
                self._check(position.offset, bounds)
                # With the record before it, to see that it is still the one that was read.
                again = position.record != 0 and position.offset > bounds.first
                self._before = position.record if again else 0
                consumer.assign([self._partition])
                consumer.seek(self._partition, position.offset - again)
            self._connection = connection_of(consumer, self._partition)
            self._headers = DtsHeaderReader()
            self._next = position.offset
            self._time = position.timestamp
            self._held = None
            self._heard = self._clock.monotonic()

    def read(self, limit: int, timeout: float) -> Sequence[Entry]:
        """See `Source.read`."""
        with self._used():
            if self._consumer is None:
                raise TransientError("the source is not open").at(**self._where())
            if self._held is not None:
                raise self._held
            deadline = self._clock.monotonic() + timeout
            while not self._closing.is_set():
                left = deadline - self._clock.monotonic()
                records = self._poll(limit, max(0.0, min(left, _SLICE)))
                if records:
                    return self._entries(records)
                if left <= 0:
                    return ()
            raise TransientError("the source was closed").at(**self._where())

    def latest(self) -> Position:
        """See `Source.latest`."""
        with self._asking() as consumer:
            end = self._search(consumer).bounds().end
            return KafkaPosition(self._config.topic, self._config.partition, end)

    def close(self) -> None:
        """See `Source.close`."""
        self._closing.set()
        # Whoever reads just now sees the flag within a slice, and drops the consumer itself:
        # the client is not made for two threads.
        if self._using.acquire(timeout=2 * _SLICE):
            try:
                self._drop()
            finally:
                self._using.release()

    def _poll(self, limit: int, seconds: float) -> list[Any]:
        with self._translating():
            try:
                found = self._consumer.poll(timeout_ms=ceil(seconds * 1000), max_records=limit)
            except OffsetOutOfRangeError as error:
                raise self._out_of_range() from error
            now = self._clock.monotonic()
            if found:
                self._heard = now
                self._check_source()
                return self._behind(found[self._partition])
            if now - self._heard > _SILENCE:
                self._search(self._consumer).bounds()
                self._heard = self._clock.monotonic()
            return []

    def _out_of_range(self) -> SetlError:
        """The error that the broker does not have the next offset."""
        self._check_source()
        bounds = self._search(self._consumer).bounds()
        if self._next > bounds.end:
            return self._replaced(f"the topic ends at {bounds.end}, so it was made anew")
        return expired(self._next, bounds).at(**self._where())

    def _check_source(self) -> None:
        """See that what came is of the topic that was opened."""
        moved = moved_reason(self._origin, origin_of(self._consumer, self._config.topic))
        if moved:
            raise self._replaced(moved)
        if connection_of(self._consumer, self._partition) is not self._connection:
            raise self._replaced("the connection to the brokers was lost")

    def _behind(self, records: list[Any]) -> list[Any]:
        """Records without the one before the place, which must be the one that was read."""
        expected, self._before = self._before, 0
        if not expected:
            return records
        first = records[0]
        if (first.offset, crc32(first.value or b"")) != (self._next - 1, expected):
            raise self._replaced(f"another record stands before {self._next}")
        return records[1:]

    def _replaced(self, reason: str) -> TransientError:
        return TransientError(f"the place has to be looked up again: {reason}").at(**self._where())

    def _entries(self, records: list[Any]) -> list[Entry]:
        topic, partition, origin = self._config.topic, self._config.partition, self._origin
        read, entries = self._headers.read, list[Entry]()
        try:
            for record in records:
                value = record.value or b""
                # Without a timestamp of its own the position gets the record's.
                position = KafkaPosition(
                    topic, partition, record.offset + 1, 0, crc32(value), origin
                )
                entry = read(value, position)
                if entry.timestamp:
                    self._time = int(entry.timestamp)
                else:  # a filler; its place has to be found again as well
                    entry = entry._replace(position=replace(position, timestamp=self._time))
                entries.append(entry)
            self._next = records[-1].offset + 1
        except SetlError as error:
            failure = error
            if isinstance(error, DataError):
                failure = FatalError(error.message, hint=error.hint, **error.where)
                failure.__cause__ = error
            self._held = failure.at(**self._where())
            if not entries:
                raise self._held from error
        return entries

    def _at_time(self, search: TopicSearch, seconds: int, bounds: Bounds) -> KafkaPosition:
        found = search.first_since(seconds)
        if found is None:
            return search.at(bounds.end, seconds)
        if found.offset == bounds.first > 0 and found.timestamp > seconds * 1000:
            raise PositionLostError(
                f"the oldest record that is kept is of {found.timestamp // 1000} and not of "
                f"{seconds}: records in between may have expired",
                hint=ways_out(bounds),
            ).at(**self._where())
        return search.at(found.offset, seconds)

    def _check(self, offset: int, bounds: Bounds) -> None:
        if not bounds.first <= offset <= bounds.end:
            raise expired(offset, bounds).at(**self._where())

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

    def _search(self, consumer: Any) -> TopicSearch:
        return TopicSearch(consumer, self._partition, timeout=self._timeout, clock=self._clock)

    def _connect(self) -> Any:
        consumer = connect(self._config, self._timeout)
        try:
            with self._translating():
                partitions: set[int] = consumer.partitions_for_topic(self._config.topic)
            self._check_partition(partitions)
        except BaseException:
            consumer.close(autocommit=False, timeout_ms=1000)
            raise
        return consumer

    def _check_partition(self, partitions: set[int]) -> None:
        if self._config.partition in partitions:
            return
        what = "the brokers have no such topic"
        if partitions:
            what = f"the topic has no such partition, only {min(partitions)} to {max(partitions)}"
        raise ConfigurationError(
            what, hint="Check `topic` and `partition` of the source, and what the account may see"
        ).at(**self._where())

    @contextmanager
    def _asking(self) -> Generator[Any]:
        """A consumer of its own for one question."""
        consumer = self._connect()
        try:
            with self._translating():
                yield consumer
        finally:
            consumer.close(autocommit=False, timeout_ms=1000)

    @contextmanager
    def _used(self) -> Generator[None]:
        """Hold the consumer; drop it at the end if it was closed meanwhile."""
        with self._using:
            try:
                yield
            finally:
                if self._closing.is_set():
                    self._drop()

    @contextmanager
    def _translating(self) -> Generator[None]:
        try:
            yield
        except KafkaError as error:
            raise translate(error).at(**self._where()) from error
        except SetlError as error:
            error.at(**self._where())
            raise

    def _drop(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close(autocommit=False, timeout_ms=1000)

    def _where(self) -> dict[str, object]:
        return {
            "brokers": ",".join(self._config.brokers),
            "topic": self._config.topic,
            "partition": self._config.partition,
        }
