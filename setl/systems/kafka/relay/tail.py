"""Finding the last record of each partition, and the position in its header.

Where a partition ends, a consumer of all records tells; what is in it, one of committed records.

The last offsets need not be records: each transaction takes one for its end, and one that was
aborted leaves all its records behind, unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from setl.channel.fields.kafka_endpoints import KafkaTarget
from setl.codec.dts.relayed import RelayPosition, relay_position_of
from setl.errors import ConfigurationError, DataError
from setl.systems.kafka.errors import LOGGER, error_of, translate
from setl.systems.kafka.reader import FEW, TopicReader
from setl.systems.kafka.record import Record
from setl.systems.kafka.relay.waiting import Waiting
from setl.systems.kafka.settings import target_settings

_STEP = 64
_GROWTH = 8
_AT_ONCE = 1000  # records that one poll gives
_ANSWER = 5.0  # seconds to wait for any one answer
_SETTINGS: Mapping[str, Any] = {
    "group.id": "setl-relay",  # the client wants one; nothing is kept under it
    "enable.auto.commit": False,
    "isolation.level": "read_uncommitted",  # the end is where all records end
    "allow.auto.create.topics": False,
}


@contextmanager
def inquirer(settings: Mapping[str, Any], waiting: Waiting) -> Generator[Consumer]:
    """A consumer that tells about topics, and never makes one.

    Raises:
        ConfigurationError: a setting is wrong.
    """
    own = {**settings, **_SETTINGS, "error_cb": waiting.complaints.heard}
    try:
        consumer = Consumer(own, logger=LOGGER)
    except KafkaException as error:
        raise translate(error_of(error)) from error
    try:
        yield consumer
    finally:
        consumer.close()


def last_positions(
    consumer: Consumer,
    target: KafkaTarget,
    partitions: Iterable[int],
    waiting: Waiting,
    end_hanging: Callable[[int], None],
) -> tuple[RelayPosition | None, ...]:
    """The position of the last committed record of some partitions, None for one without records.

    Args:
        consumer: from `inquirer`.
        target: the topic.
        partitions: which of its partitions.
        waiting: the log's.
        end_hanging: called for a partition that has an open transaction, before it is waited for.

    Raises:
        ConfigurationError: a last record has no place; or the account is refused.
        DataError: a position cannot be understood.
        TransientError: no answer within the limit, or another producer keeps a transaction open.
    """
    settings = {**FEW, **target_settings(target), **_SETTINGS, "isolation.level": "read_committed"}
    reading = TopicReader(settings, target.topic, min(waiting.limit, _ANSWER))
    try:
        tail = _Tail(consumer, reading, target.topic, waiting, end_hanging)
        return tuple([_position(target, tail.last(partition)) for partition in partitions])
    finally:
        reading.close()


class _Tail:
    def __init__(
        self,
        consumer: Consumer,
        reading: TopicReader,
        topic: str,
        waiting: Waiting,
        end_hanging: Callable[[int], None],
    ) -> None:
        self._consumer = consumer
        self._reading = reading
        self._topic = topic
        self._waiting = waiting
        self._end_hanging = end_hanging
        self._ended: set[int] = set()  # partitions in which that was done

    def last(self, partition: int) -> Record | None:
        """Search backwards, in steps that grow, for the last record that readers see."""
        where = TopicPartition(self._topic, partition)
        begin, end = self._waiting.asked(
            f"tell the offsets of {self._topic} [{partition}]",
            lambda limit: self._consumer.get_watermark_offsets(where, timeout=limit),
            lambda: self._consumer.poll(0),
        )
        start, step = end, _STEP
        while start > begin:
            start = max(begin, start - step)
            step *= _GROWTH
            found = self._last_from(partition, start, end)
            if found is not None:
                return found
        return None

    def _last_from(self, partition: int, start: int, end: int) -> Record | None:
        """The last committed record at or after an offset; None if there is none.

        Records behind an open transaction are not shown before it ends. Taking over ended the
        relay's own, unless it hangs; that of another producer is waited for.
        """
        self._reading.seek({partition: start})
        last: Record | None = None
        for pause in self._pauses(partition):
            came = self._reading.poll(_AT_ONCE, pause)
            if came:
                last = came[-1]
            # It goes beyond what nobody is shown as well.
            if self._reading.position(partition) >= end:
                break
            if not came and partition not in self._ended:
                self._end_hanging(partition)
                self._ended.add(partition)
        return last

    def _pauses(self, partition: int) -> Iterable[float]:
        return self._waiting.slices(
            f"show the end of {self._topic} [{partition}], where a transaction of another"
            " producer may be open,"
        )


def _position(target: KafkaTarget, record: Record | None) -> RelayPosition | None:
    if record is None:
        return None
    where: dict[str, object] = {
        "topic": target.topic,
        "partition": record.partition,
        "offset": record.offset,
    }
    try:
        position = relay_position_of(record.headers)
    except DataError as error:
        raise error.at(**where) from None
    if position is None:
        raise ConfigurationError(
            "the topic has a record that no relay wrote",
            hint="Give the relay a topic of its own; or delete this one, and it is made again",
        ).at(**where)
    found = position.transaction.format
    if found != target.format:
        raise ConfigurationError(
            f"the topic has records of the format {found}, and not {target.format}",
            hint=f"Give the relay a topic of its own, or write `format: {found}` again",
        ).at(**where)
    return position
