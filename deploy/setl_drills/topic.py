"""What readers of relays' topics see, through a client of the drills' own."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from kafka import KafkaConsumer
from kafka.errors import KafkaError
from kafka.structs import TopicPartition

from setl.codec.dts.header import read_header
from setl.codec.dts.relayed import LAST, RelayPosition, relay_position_of
from setl.codec.dts.rows import DtsRowCodec
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition, KafkaPosition
from setl_drills.binlog import KeyChange, key_changes
from setl_drills.checkers import Advance
from setl_drills.waiting import wait_for
from setl_drills.watching import Watch

Isolation = Literal["read_committed", "read_uncommitted"]
_READ_LIMIT = 60.0
_POLL_MS = 100
_REST = 0.03
"""Seconds between two looks at topics, so that records come together and not one by one."""

# Brokers that are away on purpose are no news.
logging.getLogger("kafka").setLevel(logging.CRITICAL)


class Record(NamedTuple):
    """One record of a relay's topic.

    Attributes:
        position: its position in what the relay writes.
        value: the DTS record.
    """

    position: RelayPosition
    value: bytes

    @property
    def is_row(self) -> bool:
        """Whether it is neither BEGIN nor COMMIT nor a heartbeat."""
        return 0 < self.position.ordinal < LAST


def read_committed(brokers: str, topic: str) -> list[Record]:
    """Read all committed records that are in a topic with one partition now.

    Args:
        brokers: where.
        topic: its name.

    Raises:
        DidNotHappenError: the end of the topic is not reached.
        ValueError: something is in it that no relay wrote.
    """
    where, found = TopicPartition(topic, 0), list[Record]()

    def at_the_end() -> bool:
        found.extend(map(_record, _polled(consumer).get(where, ())))
        return consumer.position(where) >= end

    with _consumer(brokers, "read_committed", where) as consumer:
        end = consumer.end_offsets([where])[where]
        wait_for(f"the end of {topic} at {end}", at_the_end, _READ_LIMIT, interval=0)
    return found


def changes_in(records: Iterable[Record], schema: str) -> Iterator[KeyChange]:
    """The row changes of a schema in records."""
    codec, nowhere = DtsRowCodec(), KafkaPosition("", 0, 0)
    for record in records:
        entry = read_header(record.value, nowhere)
        if entry.kind is EntryKind.ROWS and entry.schema == schema:
            yield from key_changes(codec.decode(entry.payload, entry.context))


def _record(record: Any) -> Record:
    position = relay_position_of(record.headers)
    if position is None:
        raise ValueError(
            f"{record.topic} at {record.offset}: a record that no relay wrote, with the headers"
            f" {record.headers!r} and the value {record.value!r}"[:600]
        )
    return Record(position, record.value)


def _ends_a_transaction(record: Any) -> bool:
    """Whether it was written to be aborted, by a relay that found a transaction left open.

    See `setl.systems.kafka.relay.sender.TransactionalSender.end_hanging`.
    """
    return record.value is None and not record.headers


class TopicWatch(Watch):
    """Sees rows arrive in topics, those of transactions that are not committed as well.

    Attributes:
        advances: by pipeline key of the relay, in order of time. The epoch is always 0: a record
            does not tell under which one it was written.
    """

    def __init__(self, brokers: str, topics: Mapping[str, str]) -> None:
        """Describe it.

        Args:
            brokers: where.
            topics: by pipeline key, the topic that it writes.
        """
        super().__init__("topics")
        self.advances: dict[str, list[Advance]] = {key: [] for key in topics}
        self._rows: dict[str, int] = dict.fromkeys(topics, 0)
        self._brokers = brokers
        self._keys = {topic: key for key, topic in topics.items()}
        self._last: dict[str, RelayPosition] = {}

    def watch(self) -> None:
        """See `Watch`."""
        where = [TopicPartition(topic, 0) for topic in self._keys]
        # Not only committed ones: see `setl_drills.tables.whole_topic`.
        with _consumer(self._brokers, "read_uncommitted", *where) as consumer:
            while not self._stopping.is_set():
                try:
                    # Without waiting in there: to a broker that answers at once, having nothing,
                    # the client would go on asking.
                    self._note(_polled(consumer, 0))
                    self._stopping.wait(_REST)
                except KafkaError:
                    self._stopping.wait(0.1)  # a broker that is away comes back

    def _note(self, polled: Mapping[TopicPartition, list[Any]]) -> None:
        now = time.time()
        for where, polled_records in polled.items():
            key = self._keys[where.topic]
            records = [_record(r) for r in polled_records if not _ends_a_transaction(r)]
            if not records:
                continue
            rows = sum(record.is_row for record in records)
            self._rows[key] += rows
            self._last[key] = records[-1].position
            if rows:
                self.advances[key].append(Advance(now, 0))

    def since(self, key: str, moment: float) -> list[Advance]:
        """The arrivals seen from a moment on."""
        self.check()
        return [a for a in list(self.advances[key]) if a.at >= moment]

    def rows(self, key: str) -> int:
        """How many rows came until now, committed or not."""
        self.check()
        return self._rows[key]

    def holds(self, key: str, position: BinlogPosition) -> bool:
        """Whether a topic has all that a binlog has before a position."""
        self.check()
        last = self._last.get(key)
        return last is not None and last.order[1:3] >= position.order


@contextmanager
def _consumer(brokers: str, isolation: Isolation, *where: TopicPartition) -> Iterator[Any]:
    consumer: Any = KafkaConsumer(
        bootstrap_servers=brokers,
        isolation_level=isolation,
        enable_auto_commit=False,
        fetch_max_wait_ms=_POLL_MS,
        check_crcs=False,  # in Python that takes as long as all the rest, and the path is short
        reconnect_backoff_max_ms=200,
    )
    try:
        consumer.assign(list(where))
        consumer.seek_to_beginning(*where)
        yield consumer
    finally:
        consumer.close(autocommit=False)


def _polled(consumer: Any, wait_ms: int = _POLL_MS) -> Mapping[TopicPartition, list[Any]]:
    found: Mapping[TopicPartition, list[Any]] = consumer.poll(wait_ms, max_records=10_000)
    return found
