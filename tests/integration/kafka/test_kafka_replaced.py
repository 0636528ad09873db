"""The Kafka behind an address is not the one it was: replaced, or its topic made again.

No entry may be lost without an error, and none may be read from a position that only looks the
same.
"""

import time
import uuid
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic
from kafka.structs import TopicPartition

from setl.channel.file import KafkaSource
from setl.errors import PositionLostError, SetlError, TransientError
from setl.model.entry import EntryKind
from setl.model.position import KafkaPosition
from setl.systems.kafka.source.subscription import DtsKafkaSource
from setl_embedded import Kafka
from tests.integration.streams_read import checkpoint_at, read_until
from tests.runs import single
from tests.unit.codec.dts_records import integer, record, row_record

pytestmark = pytest.mark.servers


class Topic:
    """A topic whose records carry the times that the test gives them."""

    def __init__(self, brokers, name):
        self.brokers, self.name = brokers, name
        self.producer = KafkaProducer(bootstrap_servers=brokers, linger_ms=2)

    def send(self, *records):
        """Records as (seconds, value); Kafka keeps the same time."""
        for seconds, value in records:
            self.producer.send(self.name, value, partition=0, timestamp_ms=seconds * 1000)
        self.producer.flush()

    def transaction(self, number, seconds, rows=2):
        rows = [
            row_record(
                "INSERT",
                [("id", 3)],
                after=[integer(number * 100 + row)],
                sourceTimestamp=seconds,
                id=number,
            )
            for row in range(rows)
        ]
        begin, commit = (
            record(operation, sourceTimestamp=seconds, id=number)
            for operation in ("BEGIN", "COMMIT")
        )
        self.send(*[(seconds, value) for value in (begin, *rows, commit)])

    def close(self):
        self.producer.close(0)


# Of today: brokers look every second or every few minutes for records older than a week, by the
# times that records carry, and drop them.
BASE = int(time.time()) - 7200


@pytest.fixture
def brokers(tmp_path):
    """Starts brokers at one address, one after the other."""
    started, port = [], []

    def start():
        if started:
            started[-1].stop()
        broker = Kafka(tmp_path / f"kafka-{len(started)}")
        if port:
            broker.port = port[0]
        port.append(broker.port)
        broker.start()
        started.append(broker)
        return broker

    yield start
    for broker in started:
        with suppress(SetlError):
            broker.stop()


@pytest.fixture
def dts():
    made = []

    def source(brokers, topic, start: Any = "earliest"):
        config = KafkaSource(type="kafka", brokers=[brokers], topic=topic, start=start)
        made.append(DtsKafkaSource(config, timeout=30.0))
        return made[-1]

    yield source
    for one in made:
        one.close()


def read_dts(source, position, count):
    source.open(position)
    return single(read_until(source, lambda found: len(single(found)) >= count))


@pytest.fixture
def streamed(dts):
    """Writes transactions of two rows into a topic, so many seconds apart, and reads them."""
    made = []

    def fill(brokers, count, apart=30):
        topic = Topic(brokers, f"dts-{uuid.uuid4().hex[:8]}")
        made.append(topic)
        for number in range(count):
            topic.transaction(number, BASE + apart * number)
        source = dts(brokers, topic.name)
        return topic, source, read_dts(source, source.initial(), 4 * count)

    yield fill
    for topic in made:
        topic.close()


def commits(entries):
    return [i for i, entry in enumerate(entries) if entry.kind is EntryKind.COMMIT]


def payloads(entries):
    return [e.payload for e in entries if e.kind is EntryKind.ROWS]


def test_another_kafka_is_found_by_time_and_nothing_is_lost(brokers, streamed):
    topic, source, entries = streamed(brokers().brokers, 20)
    checkpoint = checkpoint_at(entries, 48)  # the end of the twelfth
    assert checkpoint.resume == entries[47].position
    assert entries[47].position.timestamp == BASE + 30 * 11
    assert source.locate(checkpoint) is checkpoint
    topic.close()

    brokers()
    # It has the stream from a later beginning, so that offsets mean something else there.
    again = Topic(topic.brokers, topic.name)
    for number in range(5, 20):
        again.transaction(number, BASE + 30 * number)
    moved = source.locate(checkpoint)
    assert moved.generation == 2
    assert moved.applied is None
    assert source.locate(moved) is moved
    found = payloads(read_dts(source, moved.resume, 40))
    rest = payloads(entries[48:])
    assert found[-len(rest) :] == rest
    assert found == payloads(entries)[-len(found) :]
    assert len(rest) < len(found) <= len(rest) + 8  # a minute more, not the whole topic
    # Inside a transaction too, from its beginning or before.
    cut = checkpoint_at(entries, 50)
    assert cut.applied is not None
    assert source.locate(cut).resume == moved.resume
    # Whoever opens the old place all the same gets an error before any entry.
    with pytest.raises(TransientError, match="another record stands before 48"):
        read_dts(source, checkpoint.resume, 1)
    again.close()


def test_a_kafka_replaced_while_it_is_read_is_not_read_on_at_the_old_offset(brokers, streamed):
    topic, source, entries = streamed(brokers().brokers, 5)
    topic.close()
    brokers()
    again = Topic(topic.brokers, topic.name)
    for number in range(9):
        again.transaction(100 + number, BASE + 30 * number)
    with pytest.raises(TransientError, match="looked up again"):
        read_until(source, lambda found: found)
    moved = source.locate(checkpoint_at(entries, 20))
    assert moved.generation == 2
    assert isinstance(moved.resume, KafkaPosition)
    assert moved.resume.timestamp < BASE + 30 * 4
    again.close()


def remake(brokers, name):
    """Delete a topic and make it again, empty."""
    admin = KafkaAdminClient(bootstrap_servers=brokers)
    admin.delete_topics([name])
    admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1)])
    admin.close()


def test_a_topic_made_again_that_does_not_reach_back_is_lost(kafka, streamed):
    topic, source, entries = streamed(kafka.brokers, 6)
    checkpoint = checkpoint_at(entries, 12)
    topic.close()
    remake(kafka.brokers, topic.name)
    with pytest.raises(PositionLostError, match="the topic is empty") as raised:
        source.locate(checkpoint)
    assert "--to earliest" in raised.value.hint
    topic = Topic(kafka.brokers, topic.name)
    topic.transaction(50, BASE + 3000)
    with pytest.raises(PositionLostError, match=r"it was made again.*nothing in it is older than"):
        source.locate(checkpoint)
    for number in range(51, 60):
        topic.transaction(number, BASE + 3000)
    with pytest.raises(PositionLostError, match="another record than the one that was read"):
        source.locate(checkpoint)
    topic.close()


def test_a_topic_that_has_not_come_that_far_is_read_on_without_a_gap(kafka, streamed):
    topic, source, entries = streamed(kafka.brokers, 8, apart=300)
    checkpoint = checkpoint_at(entries, 28)
    topic.close()
    remake(kafka.brokers, topic.name)
    topic = Topic(kafka.brokers, topic.name)
    for number in range(3, 5):
        topic.transaction(number, BASE + 300 * number)
    moved = source.locate(checkpoint)
    # Its newest transaction, of long before the position.
    assert str(moved.resume) == f"{topic.name}[0]@4"
    for number in range(5, 8):
        topic.transaction(number, BASE + 300 * number)
    assert payloads(read_dts(source, moved.resume, 16)) == payloads(entries[16:])
    topic.close()


def test_expired_records_are_lost_and_not_looked_for_by_time(kafka, streamed):
    topic, source, entries = streamed(kafka.brokers, 6)
    checkpoint = checkpoint_at(entries, 8)
    admin = KafkaAdminClient(bootstrap_servers=kafka.brokers)
    admin.delete_records({TopicPartition(topic.name, 0): 16})
    admin.close()
    with pytest.raises(PositionLostError, match="offset 8 has expired; the topic holds 16 to 24"):
        source.locate(checkpoint)
    # Where the record before the position has just expired, nothing is missing.
    assert source.locate(checkpoint_at(entries, 16)).generation == 1


def test_a_transaction_that_the_topic_has_lost_the_end_of_is_applied_again(kafka, dts):
    """Its beginning is there as it was, and other records come at the offsets behind it."""
    name = f"dts-{uuid.uuid4().hex[:8]}"
    topic = Topic(kafka.brokers, name)
    topic.transaction(1, BASE)
    topic.transaction(2, BASE + 30, rows=4)
    source = dts(kafka.brokers, name)
    source.open(source.initial())
    entries = read_until(source, lambda found: len(commits(found)) == 2)
    checkpoint = checkpoint_at(entries, commits(entries)[1])
    assert source.locate(checkpoint) is checkpoint
    applied = checkpoint.applied
    assert isinstance(applied, KafkaPosition)
    for found in ({"record": applied.record ^ 1}, {"offset": applied.offset + 10}):
        moved = source.locate(replace(checkpoint, applied=replace(applied, **found)))
        assert (moved.resume, moved.applied, moved.generation) == (checkpoint.resume, None, 2)
    topic.close()
