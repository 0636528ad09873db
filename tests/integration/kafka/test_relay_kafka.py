"""A relay's topic on a broker: finding its end, and what `setl check` says about it."""

import logging
import time

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from setl.codec.dts.relayed import HEADER
from setl.errors import ConfigurationError, DataError, FencedError, TransientError
from setl.systems.finding import Report
from setl.systems.kafka.preflight.topic import check_kafka_target
from tests.kafka_topics import RelayTopic, position

NOW = int(time.time() * 1000)


@pytest.fixture
def topic(kafka):
    made = RelayTopic(kafka.brokers)
    yield made
    made.close()


def append(log, first, count):
    for n in range(first, first + count):
        log.append(0, b"%d" % n, position(n).encoded(), None, NOW + n)


def relay(topic, flushed):
    """A leader that has flushed some records."""
    log = topic.log()
    log.take_over()
    append(log, 1, flushed)
    log.flush()
    return log


def arrived(log):
    """Wait until what a leader has appended is on the broker, uncommitted."""
    producer = log._sender._producer
    assert producer.flush(60) == 0


def other_producer(topic, **settings):
    return Producer({"bootstrap.servers": topic.brokers, **settings})


def expire(topic, before):
    """Let the records before an offset be dropped, as retention does."""
    admin = AdminClient({"bootstrap.servers": topic.brokers})
    for answer in admin.delete_records([TopicPartition(topic.name, 0, before)]).values():
        answer.result(60)


@pytest.mark.parametrize("left", [1, 100, 3000])
def test_what_a_dead_leader_left_open_does_not_count(topic, left):
    old = relay(topic, 5)
    append(old, 6, left)
    arrived(old)
    assert topic.log().take_over() == (position(5),)
    with pytest.raises(FencedError):
        old.flush()
    assert len(topic.read()) == 5


def test_aborted_stretches_are_searched_through(topic):
    log = relay(topic, 5)
    for count in (1, 70, 700):
        append(log, 6, count)
        arrived(log)
        log.close()
        assert log.take_over() == (position(5),)
    append(log, 6, 1)
    log.flush()
    assert topic.log().take_over() == (position(6),)


def test_nothing_but_aborted_records(topic):
    log = topic.log()
    log.take_over()
    append(log, 1, 200)
    arrived(log)
    assert topic.log().take_over() == (None,)


def test_the_beginning_is_expired(topic):
    log = relay(topic, 100)
    expire(topic, 90)
    assert topic.log().take_over() == (position(100),)
    expire(topic, 100)  # all but the end of the transaction
    again = topic.log()
    assert again.take_over() == (None,)
    append(again, 101, 1)
    again.flush()
    assert topic.log().take_over() == (position(101),)
    append(log, 102, 1)
    with pytest.raises(FencedError):
        log.flush()


def test_a_transaction_of_somebody_else_is_waited_for(topic):
    relay(topic, 5)
    stranger = other_producer(topic, **{"transactional.id": f"stranger-{topic.name}"})
    stranger.init_transactions(60)
    stranger.begin_transaction()
    stranger.produce(topic.name, b"x", partition=0, headers=[(HEADER, position(6).encoded())])
    stranger.flush(60)
    with pytest.raises(TransientError, match="may be open"):
        # Each answer has to come within the limit, so it is not too short.
        topic.log(limit=4.0).take_over()
    stranger.commit_transaction(60)
    assert topic.log().take_over() == (position(6),)


def test_a_record_that_no_relay_wrote(topic):
    relay(topic, 5)
    stranger = other_producer(topic)
    stranger.produce(topic.name, b"x", partition=0)
    stranger.flush(60)
    with pytest.raises(ConfigurationError, match=r"no relay wrote .*offset 6.*topic of its own"):
        topic.log().take_over()


def test_a_position_of_another_release(topic):
    relay(topic, 5)
    stranger = other_producer(topic)
    stranger.produce(topic.name, b"x", partition=0, headers=[(HEADER, b"2 what else")])
    stranger.flush(60)
    with pytest.raises(DataError, match="offset 6"):
        topic.log().take_over()


def test_readers_need_not_wait_for_the_successor_of_a_leader_that_closed(topic):
    log = relay(topic, 5)
    append(log, 6, 10)
    arrived(log)
    log.close()
    assert len(topic.read()) == 5


def test_two_nodes_make_the_topic(topic):
    topic.make({})
    assert topic.log().take_over() == (None,)


def test_no_broker_answers(caplog, capfd):
    with pytest.raises(TransientError, match="refused"):
        RelayTopic("127.0.0.1:1").log(limit=3.0).take_over()
    assert capfd.readouterr().err == ""  # clients log, and never print
    assert any(record.name == "setl.systems.kafka.librdkafka" for record in caplog.records)


def test_a_setting_that_librdkafka_refuses(topic):
    with pytest.raises(ConfigurationError, match="batch"):
        topic.log(kafka={"batch.num.messages": -5}).take_over()


def test_no_password_is_reported(caplog):
    caplog.set_level(logging.DEBUG)
    more = {"user": "u", "password": "hush-hush", "kafka": {"debug": "all"}}
    with pytest.raises(TransientError) as entry:
        RelayTopic("127.0.0.1:1").log(limit=0.5, **more).take_over()
    assert "hush" not in str(entry.value) + caplog.text


def checked(topic, **more):
    report = Report("relay")
    check_kafka_target(topic.target(**more), report)
    return [(finding.level, finding.what) for finding in report.findings]


def entry(findings, level):
    return " ".join(what for found, what in findings if found == level)


def test_check_of_a_topic_that_will_be_made(topic):
    findings = checked(topic)
    assert [level for level, _ in findings] == ["ok", "ok"]
    assert "the relay makes it, with 1 partition" in findings[0][1]
    assert topic.name not in AdminClient({"bootstrap.servers": topic.brokers}).list_topics().topics


def test_check_does_not_disturb_a_leader(topic):
    log = relay(topic, 5)
    append(log, 6, 5)
    assert entry(checked(topic), "error") == ""
    log.flush()
    assert len(topic.read()) == 10


def test_check_of_a_topic_that_suits(topic):
    topic.make({"cleanup.policy": "delete", "retention.ms": str(7 * 24 * 3600 * 1000)})
    findings = checked(topic)
    assert {level for level, _ in findings} == {"ok"}
    assert "7 days" in entry(findings, "ok")
    assert "max.message.bytes" in entry(findings, "ok")


def test_check_of_a_topic_that_does_not(kafka):
    topic = RelayTopic(kafka.brokers, partitions=3)
    topic.make({
        "cleanup.policy": "compact", "retention.ms": "3600000", "max.message.bytes": "1000"
    })  # fmt: skip
    findings = checked(topic, partition_by="order", partitions=1)
    assert "compacted" in entry(findings, "error")
    assert "3 partitions, of which rows only go to the first" in entry(findings, "warning")
    assert "1 hours" in entry(findings, "warning")
    assert "up to 1000 bytes" in entry(findings, "warning")
    assert "has 3 partitions, not 2" in entry(
        checked(topic, partition_by="key", partitions=2), "warning"
    )


def test_check_without_an_answer():
    ((level, what),) = checked(RelayTopic("127.0.0.1:1"))
    assert level == "error"
    assert "refused" in what


def test_check_of_a_setting_that_librdkafka_refuses(topic):
    ((level, what),) = checked(topic, kafka={"batch.num.messages": -5})
    assert level == "error"
    assert "batch" in what


def test_check_of_brokers_without_transactions(topic, monkeypatch):
    class Refusing:
        def __init__(self, *_, **__):
            pass

        def init_transactions(self, _):
            raise KafkaException(KafkaError(KafkaError._UNSUPPORTED_FEATURE, "too old"))

    monkeypatch.setattr("setl.systems.kafka.preflight.topic.Producer", Refusing)
    report = Report("relay")
    check_kafka_target(topic.target(), report)
    (error,) = [finding for finding in report.findings if finding.level == "error"]
    assert "too old" in error.what
    assert "delivery: idempotent" in error.hint[0]
    assert entry(checked(topic, delivery="idempotent"), "error") == ""
