"""A DTS subscription, one partition of a Kafka topic, as a `Source`.

The partition is assigned, not subscribed to: which node reads is decided by the mainstem, and
nothing is ever committed to Kafka. The place is the pipeline's own checkpoint.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import ceil
from typing import Any

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
from setl.model.entry import Entry
from setl.model.position import KafkaPosition, Position
from setl.select.kafka_client import connect, translate

_SLICE = 0.2  # seconds after which a waiting read looks whether it was closed
_SILENCE = 3.0  # seconds without records after which the broker is asked for a sign of life


class DtsKafkaSource:
    """Reads one partition from an offset on; see `Source`.

    A broker that is gone looks like an idle one to the client, which tries for ever. So after
    3 s without records the broker is asked where the partition ends; no answer within
    `timeout` is a lost connection.

    `open`, `read` and `initial` belong to one thread; `latest` and `close` to any.
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
            first, end = self._bounds(consumer)
            if isinstance(start, OffsetStart):
                self._check(start.offset, first, end)
                return self._at(start.offset)
            if isinstance(start, TimestampStart):
                return self._at_time(consumer, start.timestamp, first, end)
            return self._at(first if start == "earliest" else end)

    def open(self, position: Position) -> None:
        """See `Source.open`."""
        if not isinstance(position, KafkaPosition) or (
            (position.topic, position.partition) != (self._config.topic, self._config.partition)
        ):
            raise FatalError(
                f"the checkpoint {position} is not one of {self._config.topic}"
                f"[{self._config.partition}]",
                hint="Reset the position: it was kept for another source",
            )
        self._closing.clear()
        with self._used():
            self._drop()
            consumer = self._connect()
            self._consumer = consumer
            with self._translating():
                self._check(position.offset, *self._bounds(consumer))
                consumer.assign([self._partition])
                consumer.seek(self._partition, position.offset)
            self._headers = DtsHeaderReader()
            self._next = position.offset
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
            return self._at(self._bounds(consumer)[1])

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
                raise self._lost(self._next, *self._bounds(self._consumer)) from error
            now = self._clock.monotonic()
            if found:
                self._heard = now
                return found[self._partition]
            if now - self._heard > _SILENCE:
                self._bounds(self._consumer)
                self._heard = self._clock.monotonic()
            return []

    def _entries(self, records: list[Any]) -> list[Entry]:
        topic, partition = self._config.topic, self._config.partition
        read, entries = self._headers.read, list[Entry]()
        try:
            for record in records:
                # Without a timestamp of its own the position gets the record's.
                position = KafkaPosition(topic, partition, record.offset + 1)
                entries.append(read(record.value or b"", position))
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

    def _at_time(self, consumer: Any, seconds: int, first: int, end: int) -> KafkaPosition:
        wanted = seconds * 1000
        found = consumer.offsets_for_times(
            {self._partition: wanted}, timeout_ms=self._timeout * 1000
        )[self._partition]
        if found is None:
            return self._at(end, seconds)
        if found.offset == first > 0 and found.timestamp > wanted:
            raise PositionLostError(
                f"the oldest record that is kept is of {found.timestamp // 1000} and not of "
                f"{seconds}: records in between may have expired",
                hint=self._ways_out(first, end),
            ).at(**self._where())
        return self._at(found.offset, seconds)

    def _check(self, offset: int, first: int, end: int) -> None:
        if not first <= offset <= end:
            raise self._lost(offset, first, end)

    def _lost(self, offset: int, first: int, end: int) -> PositionLostError:
        why = "has expired" if offset < first else "does not exist, so the topic was made anew"
        return PositionLostError(
            f"offset {offset} {why}; the topic holds {first} to {end}",
            hint=self._ways_out(first, end),
        ).at(**self._where())

    def _ways_out(self, first: int, end: int) -> str:
        return (
            f"Load the tables again and start at `start: latest` ({end}), or start at "
            f"`start: earliest` ({first}) and verify afterwards; let the topic keep records longer"
        )

    def _bounds(self, consumer: Any) -> tuple[int, int]:
        """First offset that is kept, and the offset of the next record to come."""
        wanted, limit = [self._partition], self._timeout * 1000
        return (
            consumer.beginning_offsets(wanted, timeout_ms=limit)[self._partition],
            consumer.end_offsets(wanted, timeout_ms=limit)[self._partition],
        )

    def _at(self, offset: int, seconds: int = 0) -> KafkaPosition:
        return KafkaPosition(self._config.topic, self._config.partition, offset, seconds)

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
