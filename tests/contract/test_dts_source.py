"""What a source promises that reads DTS records from Kafka."""

import itertools
import time
import uuid
from contextlib import closing
from zlib import crc32

import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewPartitions, NewTopic
from kafka.structs import TopicPartition

from setl.channel.file import KafkaSource, OffsetStart, TimestampStart
from setl.channel.routes.routing import Route
from setl.codec.dts.relayed import HEADER, LAST, RelayPosition, RelayTransaction
from setl.codec.dts.rows import DtsRowCodec
from setl.errors import ConfigurationError, FatalError, PositionLostError
from setl.extract.extractor import Extractor
from setl.extract.loopback import MarkIdentity
from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint, CheckpointTracker
from setl.model.position import KafkaPosition
from setl.systems.kafka.source.subscription import DtsKafkaSource
from tests.clocks import SetClock
from tests.contract.source_sides import (
    DtsSide,
    comparable,
    kinds,
    read_count,
    read_rows,
    until_error,
)
from tests.runs import single
from tests.unit.codec.dts_records import integer, record, row_record
from tests.waiting import eventually


@pytest.fixture
def dts(kafka):
    made = DtsSide(kafka)
    yield made
    made.close()


def transaction(seconds, rows=2):
    """Records of a transaction that the source committed then."""
    values = [row_record("INSERT", [("id", 8)], sourceTimestamp=seconds) for _ in range(rows)]
    begin, end = (record(operation, sourceTimestamp=seconds) for operation in ("BEGIN", "COMMIT"))
    return [begin, *values, end]


BASE = 1_790_000_000


def test_dts_a_start_by_offset_and_by_time(dts):
    # Kafka's own times say nothing of the source's: here they even go backwards. The broker drops
    # records that it believes to be old.
    written = int(time.time()) - 3000
    for number in range(20):
        dts.send(*transaction(BASE + 100 * number), at=written - 10 * number)
    assert dts.source(OffsetStart(offset=3)).initial().offset == 3
    # Offset 0 is the heartbeat that made the topic, of 2023; four records a transaction follow.
    for seconds, offset in ((-9, 1), (0, 1), (1, 5), (100, 5), (1234, 53), (1900, 77)):
        found = dts.source(TimestampStart(timestamp=BASE + seconds)).initial()
        assert found.offset == offset
        # What the record before it says, which is how the position is found again.
        if offset > 1:
            commit = transaction(BASE + 25 * (offset - 5))[-1]
            assert (found.timestamp, found.record) == (BASE + 25 * (offset - 5), crc32(commit))


def test_dts_a_start_at_a_time_that_is_not_there_names_the_nearest(dts):
    dts.send(*transaction(BASE), *transaction(BASE + 100))
    with pytest.raises(PositionLostError, match=rf"newest record is of .* \({BASE + 100}\), at o"):
        dts.source(TimestampStart(timestamp=BASE + 101)).initial()
    expire(dts, 5)
    with pytest.raises(PositionLostError, match=rf"oldest is of .* \({BASE + 100}\), at offset 5"):
        dts.source(TimestampStart(timestamp=BASE + 99)).initial()
    assert dts.source(TimestampStart(timestamp=BASE + 100)).initial().offset == 5
    expire(dts, 9)
    with pytest.raises(PositionLostError, match="no record that has a time"):
        dts.source(TimestampStart(timestamp=BASE)).initial()


@pytest.fixture
def in_transactions(dts):
    """Appends records in one transaction of Kafka's, which leaves a record nobody is shown.

    A producer for each: the embedded broker names the transactions that were given up to readers
    that are past their end, too, and a reader takes what the same producer wrote since for theirs.
    """
    numbers = itertools.count()

    def send(*values, positions=None, commit=True):
        ident = f"t-{dts.topic}-{next(numbers)}"
        producer = Producer({"bootstrap.servers": dts.server.brokers, "transactional.id": ident})
        producer.init_transactions(20)
        producer.begin_transaction()
        for number, value in enumerate(values):
            headers = positions and [(HEADER, positions[number].encoded())]
            producer.produce(dts.topic, value, partition=0, headers=headers or None)
        producer.flush(20)
        (producer.commit_transaction if commit else producer.abort_transaction)(20)

    return send


def test_dts_positions_hold_though_offsets_have_gaps(dts, in_transactions):
    for number in range(3):
        in_transactions(*transaction(BASE + number))
        in_transactions(*transaction(BASE + 500), commit=False)
    source = dts.source()
    source.open(dts.origin)
    whole = read_rows(source, 6)
    assert kinds(whole) == "BRRC" * 3
    # The last ones are no records for a reader, but it passes them.
    eventually(lambda: not source.read(10, 0.1) and source.behind() == 0, 30)
    # Each transaction of the source leaves a gap of one, and each that was given up one of five.
    assert [e.position.offset for e in whole[3::4]] == [5, 15, 25]
    for end in (3, 7, 11):
        checkpoint = Checkpoint(whole[end].position)
        assert source.locate(checkpoint) is checkpoint
        source.open(whole[end].position)
        rest = read_rows(source, 4) if end == 3 else single(source.read(10, 1))
        assert comparable(rest) == comparable(whole[end + 1 :][: len(rest)])
    latest = source.latest()
    assert latest.offset == 31
    assert source.initial() == KafkaPosition(
        dts.topic, 0, 31, BASE + 2, 0, whole[0].position.origin
    )
    source.open(latest)
    in_transactions(*transaction(BASE + 9))
    assert kinds(read_rows(source, 2)) == "BRRC"
    assert dts.source(TimestampStart(timestamp=BASE + 2)).initial().offset == 21
    with pytest.raises(PositionLostError, match=rf"\({BASE + 9}\), at offset 34"):
        dts.source(TimestampStart(timestamp=BASE + 10)).initial()


def test_dts_a_transaction_that_does_not_end_is_seen(dts):
    dts.send(*transaction(BASE))
    settings = {"bootstrap.servers": dts.server.brokers, "transactional.id": f"h-{dts.topic}"}
    hanging = Producer(settings)
    hanging.init_transactions(20)
    hanging.begin_transaction()
    for value in transaction(BASE + 1):
        hanging.produce(dts.topic, value, partition=0)
    hanging.flush(20)
    dts.send(*transaction(BASE + 2))  # another producer, which is done
    clock = SetClock()
    source = dts.source(clock=clock)
    source.open(dts.origin)
    before = read_rows(source, 2)
    assert kinds(before) == "BRRC"
    position = before[-1].position.offset

    def blocked():
        clock.time += 4
        source.read(10, 0)
        return source.blocked()

    reported = eventually(blocked, 30)
    assert reported.transaction
    assert f"{dts.topic}[0]@{position}: 8 records wait" in reported.what
    assert f"--start-offset {position}" in reported.hint
    assert (source.behind(), source.latest().offset) == (8, position + 8)
    hanging.commit_transaction(20)
    assert kinds(read_rows(source, 4)) == "BRRC" * 2
    assert source.blocked() is None


def test_dts_partitions_that_are_added_are_seen(dts):
    dts.send(*transaction(BASE))
    clock = SetClock()
    source = dts.source(clock=clock)
    source.open(dts.origin)
    before = read_rows(source, 2)
    with closing(KafkaAdminClient(bootstrap_servers=dts.server.brokers)) as admin:
        admin.create_partitions({dts.topic: NewPartitions(3)})

    def refused():
        clock.time += 31
        dts.send(*transaction(BASE + 1))  # it is never silent
        try:
            source.read(10, 0.1)
        except FatalError as error:
            return error
        return None

    assert "has 3 partitions now, not 1" in eventually(refused, 30).message
    with pytest.raises(FatalError, match="has 3 partitions now"):
        source.open(before[-1].position)
    # Whoever starts it again has seen it.
    again = dts.source()
    again.open(before[-1].position)
    assert kinds(read_rows(again, 2)) == "BRRC"


def test_dts_what_a_relay_repeats_is_no_entry_after_a_restart_either(dts, in_transactions):
    def positions(begin, *ordinals):
        return [RelayPosition(RelayTransaction(1, "bin.000001", begin), o) for o in ordinals]

    in_transactions(*transaction(BASE), positions=positions(4, 0, 1, 2, LAST))
    in_transactions(*transaction(BASE + 1), positions=positions(90, 0, 1, 2, LAST))
    source = dts.source()
    source.open(dts.origin)
    whole = read_rows(source, 4)
    in_transactions(*transaction(BASE), positions=positions(4, 0, 1, 2, LAST))
    in_transactions(*transaction(BASE + 1)[1:], positions=positions(90, 1, 2, LAST))
    in_transactions(*transaction(BASE + 2), positions=positions(200, 0, 1, 2, LAST))
    rest = read_rows(source, 2)
    assert kinds(rest) == "BRRC"
    source.open(whole[-1].position)
    assert comparable(read_rows(source, 2)) == comparable(rest)


class Everything:
    def route(self, schema, table):
        return (Route(0, (schema, table)),)

    def shadow(self, schema, table):
        return None


def mark_record(number):
    """The mark that channel `number` writes."""
    columns = [("ID", 8), ("CHANNEL_ID", 3)]
    after = [integer(1), integer(number)]
    return row_record("UPDATE", columns, before=after, after=after, name="retl.retl_mark")


def test_dts_partitions_of_a_topic_are_streams_of_their_own(kafka):
    topic = f"dts-{uuid.uuid4().hex[:12]}"
    admin = KafkaAdminClient(bootstrap_servers=kafka.brokers)
    admin.create_topics([NewTopic(topic, num_partitions=2, replication_factor=1)])
    admin.close()
    producer = KafkaProducer(bootstrap_servers=kafka.brokers)
    own = mark_record(7)
    left, right = transaction(BASE), transaction(BASE + 5)
    # Transactions of both are open at once, and one of them is marked.
    for partition, value in (
        (0, left[0]), (0, own), (1, right[0]), (0, left[1]), (1, right[1]), (0, left[2]),
        (1, right[2]), (0, left[3]), (1, right[3]), (1, right[0]), (1, right[1]),
    ):  # fmt: skip
        producer.send(topic, value, partition=partition)
    producer.flush()
    producer.close()
    sources = [
        DtsKafkaSource(KafkaSource(type="kafka", brokers=[kafka.brokers], topic=topic, partition=n))
        for n in (0, 1)
    ]
    stored = []
    for number, source in enumerate(sources):
        start = KafkaPosition(topic, number, 0)
        source.open(start)
        entries = read_count(source, (5, 6)[number])
        checkpoint = CheckpointTracker(Checkpoint(start)).advance_all(entries)
        extractor = Extractor(Everything(), MarkIdentity(7), DtsRowCodec())
        extracted = extractor.extract(Batch(1, 1, entries, checkpoint, len(entries), 0))
        stored.append((checkpoint.resume.order, len(extracted.rows)))
        assert source.latest().order == (0, len(entries))
        assert source.behind() == 0
        source.close()
    # One is dropped whole; of the other a transaction is still open.
    assert stored == [((0, 5), 0), ((0, 4), 3)]


def test_dts_records_without_value_move_the_position_on(dts):
    dts.send(None)
    dts.write()
    source = dts.source()
    source.open(dts.origin)
    entries = read_rows(source, 2)
    assert [e.kind.name[0] for e in entries] == list("HBRRC")
    assert [e.position.offset for e in entries] == [2, 3, 4, 5, 6]


def test_dts_what_is_no_record_is_an_error_after_what_came_before(dts):
    dts.write()
    dts.send(b"\xff" * 200)
    source = dts.source()
    source.open(dts.origin)
    assert kinds(read_rows(source, 2)) == "BRRC"
    for _ in range(2):
        error, _ = until_error(source)
        assert type(error) is FatalError
        assert "not a DTS record" in str(error)
        assert f"{dts.topic}[0]@5" in str(error)
        assert "`setl position reset PIPELINE --to 6`" in error.hint


def test_dts_a_missing_topic_or_partition_is_a_matter_of_configuration(dts):
    with pytest.raises(ConfigurationError, match="no such topic"):
        dts.source(topic="never-made").initial()
    with pytest.raises(ConfigurationError, match="no such partition"):
        dts.source(partition=40).initial()


def test_dts_settings_are_passed_through_and_mistakes_are_named(dts):
    source = dts.source(sid="sid-1", kafka={"fetch.max.wait.ms": 100, "client_id": "x"})
    dts.write()
    source.open(dts.origin)
    assert kinds(read_rows(source, 2)) == "BRRC"
    with pytest.raises(ConfigurationError, match=r"fetch\.min\.bytes"):
        dts.source(kafka={"fetch.min.bytes": -5}).initial()


def expire(dts, offset):
    """Let the broker forget everything before `offset`."""
    admin = KafkaAdminClient(bootstrap_servers=dts.server.brokers)
    admin.delete_records({TopicPartition(dts.topic, 0): offset})
    admin.close()


def test_dts_expired_records_are_a_lost_position(dts):
    dts.write(2)
    expire(dts, 5)
    assert dts.source("earliest").initial().offset == 5
    with pytest.raises(PositionLostError, match="offset 1 has expired; the topic holds 5 to 9"):
        dts.source().open(dts.origin)
    with pytest.raises(PositionLostError):
        dts.source(OffsetStart(offset=4)).initial()
