"""What the reader makes of librdkafka's consumer: positions, ends, errors, connections, commits."""

import logging

import pytest
from confluent_kafka import KafkaError

from setl.errors import ConfigurationError, FatalError, PositionLostError, TransientError
from setl.systems.kafka import client as client_module
from setl.systems.kafka.reader import TopicReader


class Message:
    def __init__(self, offset, partition=0, error=None):
        self._offset, self._partition, self._error = offset, partition, error

    def error(self):
        return self._error

    def offset(self):
        return self._offset

    def partition(self):
        return self._partition

    def timestamp(self):
        return 1, 7

    def key(self):
        return None

    def value(self):
        return b"v"

    def headers(self):
        return None


def end(offset, partition=0):
    return Message(offset, partition, KafkaError(KafkaError._PARTITION_EOF))


def failed(code, offset=0):
    return Message(offset, error=KafkaError(code))


class FakeConsumer:
    """In place of librdkafka's; `reported` is what it reports before the next message."""

    def __init__(self, settings, logger):
        self.settings, self.log = settings, logger
        self.messages, self.reported = [], []
        self.assigned, self.paused, self.commits = None, [], []

    def _report(self):
        for tell in self.reported:
            tell()
        self.reported = []

    def poll(self, timeout):
        self._report()
        return self.messages.pop(0) if self.messages else None

    def consume(self, count, timeout):
        found, self.messages = self.messages[:count], self.messages[count:]
        return found

    def assign(self, positions):
        self.assigned = {p.partition: p.offset for p in positions}

    def unassign(self):
        self.assigned = None

    def pause(self, positions):
        self.paused += positions

    def subscribe(self, topics, **callbacks):
        self.callbacks = callbacks

    def commit(self, offsets, asynchronous):
        assert asynchronous
        self.commits += offsets

    def list_topics(self, topic, timeout):
        self._report()
        raise client_module.KafkaException(KafkaError(KafkaError._TRANSPORT))

    def error(self, code, text):
        self.reported.append(lambda: self.settings["error_cb"](KafkaError(code, text)))

    def line(self, text):
        self.reported.append(lambda: self.log.log(logging.INFO, text))


@pytest.fixture
def opened(monkeypatch):
    made = []

    def make(settings, logger):
        made.append(FakeConsumer(settings, logger))
        return made[-1]

    monkeypatch.setattr(client_module, "Consumer", make)
    return TopicReader({"group.id": "g"}, "orders", 0.2), made[0]


def offsets(records):
    return [record.offset for record in records]


def test_a_position_goes_behind_what_nobody_is_shown(opened):
    reader, client = opened
    reader.seek({0: 3})
    assert client.assigned == {0: 3}
    client.messages = [Message(4), Message(6), end(9)]
    assert offsets(reader.poll(10, 0)) == [4, 6]
    assert reader.position(0) == 9


def test_what_comes_behind_an_end_is_read_too(opened):
    reader, client = opened
    reader.seek({0: 3})
    client.messages = [end(3), Message(3), Message(4)]
    assert offsets(reader.poll(10, 0)) == [3, 4]
    assert reader.position(0) == 5
    assert client.assigned is not None


def test_a_topic_read_to_its_end_is_asked_again_after_a_pause(opened, monkeypatch):
    reader, client = opened
    now = [100.0]
    monkeypatch.setattr(client_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(
        client_module.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds)
    )
    reader.seek({0: 3, 1: 8})
    client.messages = [end(3, 0)]
    assert reader.poll(10, 0) == []
    assert client.assigned == {0: 3, 1: 8}, "of the other partition there may be more"
    client.messages = [end(8, 1)]
    assert reader.poll(10, 0) == []
    assert client.assigned is None
    assert reader.poll(10, 0.001) == []
    assert client.assigned is None
    client.messages = [Message(3)]
    assert offsets(reader.poll(10, 1)) == [3]
    assert client.assigned == {0: 3, 1: 8}
    assert now[0] == pytest.approx(100.02)


def test_records_before_an_error_are_given_out_and_the_error_after_them(opened):
    reader, client = opened
    reader.seek({0: 3})
    client.messages = [Message(3), failed(KafkaError._BAD_MSG, 4)]
    assert offsets(reader.poll(10, 0)) == [3]
    with pytest.raises(FatalError, match="damaged"):
        reader.poll(10, 0)


def test_what_follows_an_error_is_not_given_out_before_it(opened):
    reader, client = opened
    reader.seek({0: 3})
    client.messages = [Message(3), failed(KafkaError._TRANSPORT, 4), Message(7), end(8)]
    assert offsets(reader.poll(10, 0)) == [3]
    assert reader.position(0) == 4
    with pytest.raises(TransientError):
        reader.poll(10, 0)
    assert reader.position(0) == 4
    assert offsets(reader.poll(10, 0)) == [7]
    assert reader.position(0) == 8


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._AUTO_OFFSET_RESET, PositionLostError),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ConfigurationError),
        (KafkaError._TRANSPORT, TransientError),
    ],
)
def test_an_error_instead_of_a_record_has_its_kind(opened, code, kind):
    reader, client = opened
    reader.seek({0: 3})
    client.messages = [failed(code)]
    with pytest.raises(kind):
        reader.poll(10, 0)


def test_a_group_that_nobody_needs_may_be_forbidden(opened):
    reader, client = opened
    reader.seek({0: 3})
    client.messages = [failed(KafkaError.GROUP_AUTHORIZATION_FAILED)]
    assert reader.poll(10, 0) == []


def test_a_lost_connection_is_reported_with_the_first_record_behind_it(opened):
    reader, client = opened
    client.line("FAIL [rdkafka#consumer-1] [thrd:b1:9092/1]: b1:9092/1: Disconnected")
    reader.seek({0: 3})
    assert not reader.lost_connection, "that was before"
    client.messages = [Message(3)]
    reader.poll(1, 0)
    assert not reader.lost_connection
    client.line("FAIL [rdkafka#consumer-1] [thrd:b1:9092/1]: b1:9092/1: Disconnected")
    client.messages = [Message(4)]
    reader.poll(1, 0)
    assert reader.lost_connection


@pytest.mark.parametrize(
    "text",
    [
        "FAIL [rdkafka#consumer-1] [thrd:b2:9092/2]: b2:9092/2: Connect to ipv4#b2:9092 failed",
        "FAIL [rdkafka#consumer-1] [thrd:GroupCoordinator]: GroupCoordinator: Disconnected",
        "CONFWARN [rdkafka#consumer-1] [thrd:app]: Configuration property acks is a producer",
    ],
)
def test_what_is_no_lost_connection(opened, text):
    reader, client = opened
    reader.seek({0: 3})
    client.line(text)
    client.messages = [Message(3)]
    reader.poll(1, 0)
    assert not reader.lost_connection


def test_a_refusal_ends_a_question_at_once(opened):
    reader, client = opened
    client.error(
        KafkaError._AUTHENTICATION,
        "sasl_ssl://b1:9092/bootstrap: SASL authentication error: no (after 3ms in state AUTH_REQ)",
    )
    with pytest.raises(ConfigurationError) as raised:
        reader.partitions()
    assert raised.value.message == "Kafka refuses the account: SASL authentication error: no"


def test_a_question_without_an_answer_says_what_the_last_connection_failed_of(opened):
    reader, client = opened
    client.line("FAIL [rdkafka#consumer-1] [thrd:b1:9092/bootstrap]: b1:9092/bootstrap: Gone")
    with pytest.raises(TransientError, match=r"the last connection failed: .*Gone"):
        reader.partitions()


def test_what_comes_while_something_is_asked_is_not_lost(opened):
    reader, client = opened
    reader.seek({0: 3})
    client.messages = [Message(3)]
    with pytest.raises(TransientError):
        reader.partitions()
    client.messages += [Message(4)]
    assert offsets([*reader.poll(10, 0), *reader.poll(10, 0)]) == [3, 4]


def test_a_member_fetches_nothing(opened):
    reader, client = opened
    given, ended = [], []
    reader.subscribe(given.append, lambda: ended.append("revoked"), lambda: ended.append("lost"))
    position = client_module.ConsumerPartition("orders", 0)
    client.callbacks["on_assign"](client, [position])
    assert client.assigned == {0: -1001}
    assert client.paused == [position]
    assert given == [{("orders", 0)}]
    client.callbacks["on_revoke"](client, [position])
    client.callbacks["on_lost"](client, [position])
    assert ended == ["revoked", "lost"]


def test_commits_are_answered_in_their_order(opened):
    reader, client = opened
    answers = []
    reader.send_commit(0, 5, "a", lambda error: answers.append(("a", error)))
    reader.send_commit(0, 6, "b", lambda error: answers.append(("b", error)))
    assert [(p.offset, p.metadata) for p in client.commits] == [(5, "a"), (6, "b")]
    client.settings["on_commit"](None, [])
    client.settings["on_commit"](KafkaError(KafkaError.ILLEGAL_GENERATION), [])
    assert answers[0] == ("a", None)
    assert answers[1][0] == "b"
    assert "present members only" in answers[1][1].message


def test_a_commit_without_an_answer_has_a_limit(opened):
    reader, _ = opened
    with pytest.raises(TransientError, match="do not answer to a commit"):
        reader.commit(0, 5, "")
