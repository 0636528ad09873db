"""What the Kafka client gets to see, and what it does that an embedded broker does not."""

from zlib import crc32

import pytest

from setl.channel.file import OffsetStart
from setl.errors import PositionLostError, TransientError
from setl.model.position import KafkaOrigin, KafkaPosition
from setl.systems.kafka import reader as kafka_reader
from setl.systems.kafka.source import access as kafka_access
from tests.unit.codec.dts_records import record as dts_record
from tests.unit.systems.kafka.fake_reader import OUT_OF_RANGE, FakeReader, config, records, valued


def test_whoever_connects_asks_for_the_partitions_once(monkeypatch):
    reader = FakeReader()
    monkeypatch.setattr(kafka_reader, "TopicReader", lambda *_: reader)
    access = kafka_access.PartitionAccess(config(), 1.0, reader.clock)
    assert access.connect() is reader
    assert reader.counted == 1


def test_records_that_expire_while_they_are_read_are_lost(opened):
    source, reader = opened
    assert reader.sought == 2
    reader.polls = [records(2, 3, 4), OUT_OF_RANGE]
    assert [e.position.offset for e in source.read(10, 1)] == [4, 5]
    reader.held = (8, 10)
    with pytest.raises(PositionLostError, match="offset 5 has expired; the topic holds 8 to 10"):
        source.read(10, 1)


def test_a_topic_that_was_made_again_is_a_lost_position(opened):
    source, reader = opened
    reader.held = (0, 2)
    with pytest.raises(PositionLostError, match="offset 3 does not exist"):
        source.open(KafkaPosition("orders", 0, 3))


def test_a_start_that_was_never_written_is_not_said_to_be_lost(opened):
    source, reader = opened
    reader.held = (2, 9)
    source._config = source._config.model_copy(update={"start": OffsetStart(offset=10)})
    with pytest.raises(
        PositionLostError, match="offset 10 does not exist yet; the topic holds 2 to 9"
    ) as raised:
        source.initial()
    assert raised.value.hint.startswith("Set `start` to an offset from 2 to 9")
    source._config = source._config.model_copy(update={"start": OffsetStart(offset=1)})
    with pytest.raises(PositionLostError, match="offset 1 has expired"):
        source.initial()


def test_a_silent_broker_is_asked_for_a_sign_of_life(opened):
    source, reader = opened
    reader.asked = 0
    assert source.read(10, 2.5) == ()
    assert reader.asked == 0
    assert source.read(10, 2.5) == ()
    assert reader.asked == 1
    reader.held = TransientError("no answer")
    with pytest.raises(TransientError, match="no answer"):
        source.read(10, 4)


def test_a_busy_broker_is_not_asked(opened):
    source, reader = opened
    reader.asked = 0
    for offset in range(3, 40):
        reader.polls = [[], records(offset)]
        assert len(source.read(10, 1)) == 1
    assert reader.asked == 0


def test_closed_means_closed(opened):
    source, reader = opened
    source.close()
    assert reader.closed
    with pytest.raises(TransientError):
        source.read(10, 0)
    source.close()


def test_the_record_before_the_position_is_read_again_and_compared(opened):
    source, reader = opened
    value = dts_record(sourceTimestamp=1_700_000_100)
    position = KafkaPosition("orders", 0, 3, record=crc32(value))
    reader.polls = [valued(value, b"", first=2)]
    source.open(position)
    assert reader.sought == 2
    assert [e.position.offset for e in source.read(10, 1)] == [4]
    source.open(position)
    reader.polls = [valued(dts_record(id=7), b"", first=2)]
    with pytest.raises(TransientError, match="another record stands before 3"):
        source.read(10, 1)
    source.open(position)
    reader.polls = [valued(value, first=3)]  # it is not there any more
    with pytest.raises(TransientError, match="another record stands before 3"):
        source.read(10, 1)


def test_a_connection_made_again_ends_reading_before_what_came_over_it(opened):
    source, reader = opened
    reader.polls = [records(3)]
    assert len(source.read(10, 1)) == 1
    reader.lost_connection = True
    reader.polls = [records(4)]
    with pytest.raises(TransientError, match="the connection to the brokers was lost"):
        source.read(10, 1)
    reader.polls = [OUT_OF_RANGE]
    reader.held = (8, 10)
    with pytest.raises(TransientError, match="the connection to the brokers was lost"):
        source.read(10, 1)  # what those brokers have is not what was asked for


def test_another_topic_after_a_time_without_records_ends_reading(opened):
    source, reader = opened
    reader.topic_id = "t1"
    source.open(KafkaPosition("orders", 0, 3))
    reader.polls = [records(3), *[[]] * 6, records(4)]
    assert len(source.read(10, 1)) == 1
    reader.topic_id = "t2"
    with pytest.raises(TransientError, match="it was made again"):
        source.read(10, 5)


def test_another_cluster_or_topic_ends_reading(opened):
    source, reader = opened
    reader.cluster = "c2"
    with pytest.raises(TransientError, match="cluster c1, and c2 answers now"):
        source.read(10, 5)
    known = KafkaOrigin("c1", "t1")
    with pytest.raises(TransientError, match="c2 answers now"):
        source.open(KafkaPosition("orders", 0, 3, origin=known))
    reader.cluster = "c1"
    reader.topic_id = "t2"
    with pytest.raises(TransientError, match="it was made again"):
        source.open(KafkaPosition("orders", 0, 3, origin=known))


def test_an_offset_beyond_the_end_of_a_topic_made_again_is_looked_up_again(opened):
    source, reader = opened
    reader.polls = [records(3), OUT_OF_RANGE]
    source.read(10, 1)
    reader.held = (0, 2)
    with pytest.raises(TransientError, match="the topic ends at 2"):
        source.read(10, 1)


def test_positions_know_enough_to_be_found_again(opened):
    source, reader = opened
    reader.topic_id = "t1"
    value = dts_record(sourceTimestamp=1_700_000_100)
    reader.polls = [valued(value, b"", value, first=3)]
    source.open(KafkaPosition("orders", 0, 3, 1_600_000_000))
    one, filler, _ = source.read(10, 1)
    known = KafkaOrigin("c1", "t1")
    assert one.position == KafkaPosition("orders", 0, 4, 1_700_000_100, crc32(value), known)
    # A filler has no time of its own.
    assert filler.position == KafkaPosition("orders", 0, 5, 1_700_000_100, 0, known)


def test_a_record_before_the_position_that_expires_in_the_last_moment_is_no_loss(opened):
    source, reader = opened
    reader.polls = [OUT_OF_RANGE]
    reader.held = (3, 10)
    with pytest.raises(TransientError, match="the record before 3 has expired"):
        source.read(10, 1)


def test_how_many_records_are_left_is_known_without_asking(opened):
    source, reader = opened
    assert source.behind() is None
    reader.end = 20
    reader.polls = [records(2, 3, 4)]
    source.read(10, 1)
    assert source.behind() == 15
    reader.asked = 0
    reader.next = 20  # what follows are records that nobody is shown
    source.read(10, 0.1)
    assert (source.behind(), reader.asked) == (0, 0)
    source.open(KafkaPosition("orders", 0, 3))
    assert source.behind() is None
