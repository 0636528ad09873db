"""Reads topics with librdkafka's consumer.

librdkafka fetches, unpacks and checks in threads of its own, in C. It drops the records of
transactions that were given up, knows all of Kafka's compressions, and limits what an answer may
hold.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as ConsumerPartition

from setl.channel.fields.kafka_endpoints import KafkaSource
from setl.errors import ConfigurationError, FatalError, PositionLostError, SetlError
from setl.systems.kafka.client import TopicClient
from setl.systems.kafka.errors import translate
from setl.systems.kafka.record import Record, TopicPartition
from setl.systems.kafka.settings import source_settings

# Seconds between two looks at an idle topic. There are brokers that answer at once, having
# nothing; the client would ask again at once, and keep a core busy.
_PAUSE: Final = 0.02
_DAMAGED: Final = ("_BAD_MSG", "_BAD_COMPRESSION", "CORRUPT_MESSAGE", "INVALID_MSG")

FEW: Final[Mapping[str, Any]] = {
    "fetch.message.max.bytes": 256 * 1024,
    "queued.min.messages": 1,
}
"""For readers that look at single records: less is fetched that nobody reads."""


def open_reader(source: KafkaSource, timeout: float, *, few: bool = False) -> TopicReader:
    """As `reader_and_partitions`, for who does not look at the partitions."""
    return reader_and_partitions(source, timeout, few=few)[0]


def reader_and_partitions(
    source: KafkaSource, timeout: float, *, few: bool = False, more: Mapping[str, Any] | None = None
) -> tuple[TopicReader, set[int]]:
    """A reader of a source's topic, and the partitions of which its brokers have told.

    Whoever asks for them again waits: a second question to a new connection takes librdkafka 50 ms.

    Args:
        source: brokers, account, topic and further settings.
        timeout: seconds to wait for any answer of a broker.
        few: whether only single records will be read.
        more: settings between those of all readers and the source's own.

    Raises:
        ConfigurationError: a setting is wrong, or the account is refused, or the certificate is
            not trusted; after a moment, since trying again would not help.
        TransientError: no broker answers within `timeout` seconds.
    """
    settings = {**(FEW if few else {}), **(more or {}), **source_settings(source)}
    where: dict[str, object] = {"brokers": ",".join(source.brokers), "topic": source.topic}
    try:
        reader = TopicReader(settings, source.topic, timeout)
        try:
            return reader, reader.partitions()
        except BaseException:
            reader.close()
            raise
    except SetlError as error:
        raise error.at(**where) from error.__cause__


class TopicReader(TopicClient):
    """Reads partitions of one topic, and may be a member of a group.

    Belongs to one thread.
    """

    def __init__(self, settings: Mapping[str, Any], topic: str, timeout: float) -> None:
        """Nothing is asked yet; see `TopicClient`."""
        super().__init__(settings, topic, timeout)
        self._next: dict[int, int] = {}  # of each partition, where reading goes on
        self._at_end: set[int] = set()
        self._again = 0.0  # when to look again, of a topic that was read to its end
        self._held: SetlError | None = None
        self._is_member = False

    def seek(self, starts: Mapping[int, int]) -> None:
        """Read these partitions, by number, from these offsets on."""
        self._next = dict(starts)
        self._serve(0)  # what is reported of the connections so far is of no reading yet
        self._connections.lost = False
        self._ahead, self._held = [], None
        self._assign()

    def poll(self, limit: int, timeout: float) -> list[Record]:
        """The next records, as soon as there are any; takes and raises what `take` does."""
        return [
            Record(
                m.partition(), m.offset(), m.timestamp()[1], m.key(), m.value(), m.headers() or ()
            )
            for m in self.take(limit, timeout)
        ]

    def take(self, limit: int, timeout: float) -> list[Message]:
        """The next records as the client has them, which costs less than making `Record`s.

        Args:
            limit: how many at most.
            timeout: seconds to wait for the first.

        Raises:
            PositionLostError: the broker does not have the next offset.
            ConfigurationError: the brokers refuse.
            FatalError: a record is damaged.
            TransientError: any other error.
        """
        if self._held is not None:
            error, self._held = self._held, None
            raise error
        if self._again:
            pause = self._again - time.monotonic()
            if pause > timeout:
                time.sleep(timeout)
                return []
            time.sleep(max(0.0, pause))
            self._assign()
        found, self._ahead = self._ahead, []
        if not found:
            first = self._consumer.poll(timeout)
            if first is not None:
                found = [first]
                if limit > 1:
                    found += self._consumer.consume(limit - 1, 0)
        records = self._passed(found)
        if not records:
            self._connections.raise_refusal()
            if self._held is not None:
                error, self._held = self._held, None
                raise error
        if self._next and len(self._at_end) == len(self._next):
            self._consumer.unassign()
            self._again = time.monotonic() + _PAUSE
        return records

    def position(self, partition: int) -> int:
        """Where reading goes on: behind the last record, and behind what nobody is shown."""
        return self._next[partition]

    def highwater(self, partition: int) -> int | None:
        """Where the partition ended, as the last answer told; None before the first."""
        _, end = self._consumer.get_watermark_offsets(
            ConsumerPartition(self._topic, partition), cached=True
        )
        return None if end < 0 else end

    @property
    def lost_connection(self) -> bool:
        """Whether a connection was lost since `seek`.

        The client opens another by itself and reads on at the same offset, whichever brokers
        answer there. It tells so before it gives out the first record that came over another.
        """
        return self._connections.lost

    def subscribe(
        self,
        assigned: Callable[[set[TopicPartition]], None],
        revoked: Callable[[], None],
        lost: Callable[[], None],
    ) -> None:
        """Become a member of the group, which then says what is this member's; nothing is read.

        Args:
            assigned: called inside `poll` with what the group has given to this member.
            revoked: called inside `poll` when the group reassigns its partitions.
            lost: called inside `poll` when the group has excluded this member, or its
                coordinator has been silent for the time of a session.
        """

        def on_assign(consumer: Consumer, positions: Sequence[Any]) -> None:
            consumer.assign(list(positions))
            consumer.pause(list(positions))
            assigned({TopicPartition(p.topic, p.partition) for p in positions})

        def on_revoke(_: Consumer, __: Sequence[Any]) -> None:
            revoked()

        def on_lost(_: Consumer, __: Sequence[Any]) -> None:
            lost()

        self._is_member = True
        self._consumer.subscribe(
            [self._topic], on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost
        )

    # -- inside -----------------------------------------------------------------------------

    def _assign(self) -> None:
        self._at_end.clear()
        self._again = 0.0
        self._consumer.assign(
            [ConsumerPartition(self._topic, p, offset) for p, offset in self._next.items()]
        )

    def _passed(self, found: list[Message]) -> list[Message]:
        """The records among messages; at an error those before it, and the rest is kept."""
        records = [message for message in found if message.error() is None]
        if len(records) < len(found):
            records = self._up_to_error(found)
        for message in records if len(self._next) > 1 else records[-1:]:
            number, offset = message.partition(), message.offset()
            if self._next.get(number, 0) <= offset:
                self._next[number] = offset + 1
                self._at_end.discard(number)
        return records

    def _up_to_error(self, found: list[Message]) -> list[Message]:
        """The records before the first error, which is kept, with what follows it.

        Where the client skips what is damaged, what follows must not be taken before whoever
        reads has seen the error: a position behind it would leave the damaged out for good.
        """
        records: list[Message] = []
        for at, message in enumerate(found, 1):
            error = message.error()
            if error is None:
                records.append(message)
            elif error.name() != "_PARTITION_EOF":
                self._held = self._failure(error)
                if self._held is not None:
                    self._ahead = found[at:]
                    break
            elif (number := message.partition()) in self._next:
                self._next[number] = message.offset()
                self._at_end.add(number)
        return records

    def _failure(self, error: KafkaError) -> SetlError | None:
        name = error.name()
        if name == "_AUTO_OFFSET_RESET":
            return PositionLostError(f"the broker does not have the offset: {error.str()}")
        if name in _DAMAGED:
            return FatalError(
                f"Kafka delivers a damaged record: {error.str()}",
                hint="Look at the brokers' logs and disks. If it cannot be fixed: `setl stop` the"
                " channel, move past it with `setl position reset PIPELINE --to` an offset, start"
                " it, and compare with `setl verify --repair`",
            )
        if name == "GROUP_AUTHORIZATION_FAILED" and not self._is_member:
            return None  # the client asks for a group's coordinator that nobody needs here
        return translate(error, "source")


def check_single(partitions: set[int]) -> None:
    """See that a topic has one partition, as those of DTS.

    Raises:
        ConfigurationError: it has more, or there is no such topic.
    """
    if not partitions:
        raise ConfigurationError(
            "the brokers have no such topic",
            hint="Check `topic` of the source, and what the account may see",
        )
    if len(partitions) > 1:
        raise ConfigurationError(
            f"the topic has {len(partitions)} partitions, and `mode: subscribe` can read topics"
            " with one only",
            hint="Use `mode: assign` with `partitions`",
        )
