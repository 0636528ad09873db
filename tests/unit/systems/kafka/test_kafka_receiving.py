"""Answers of brokers, put together here and by kafka-python, and how a socket is read."""

import socket
from ssl import SSLWantReadError
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import CorrelationIdError, InvalidReceiveError, KafkaConnectionError
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.parser import KafkaProtocol

from setl.systems.kafka.receiving import Answers, Receiver, receive_fast

VERSION = 12  # of requests and answers, one that brokers of today speak


def parser(count, most=1 << 20):
    """A parser that waits for the answers to so many requests, every second one for records."""
    make: Any = KafkaProtocol
    made = make(client_id="test", receive_message_max_bytes=most)
    for number in range(count):
        made.send_request((FetchRequest if number % 2 else MetadataRequest)(version=VERSION))
    return made


def answer(number, records):
    """The bytes of the answer to a request."""
    if number % 2 == 0:
        message = MetadataResponse(
            version=VERSION, throttle_time_ms=0, brokers=[], cluster_id="größe", controller_id=1,
            topics=[],
        )  # fmt: skip
    else:
        partition = FetchResponse.FetchableTopicResponse.PartitionData
        of_one = partition(
            version=VERSION, partition_index=0, error_code=0, high_watermark=9,
            last_stable_offset=9, log_start_offset=0, aborted_transactions=None,
            preferred_read_replica=-1, records=records,
        )  # fmt: skip
        of_topic = FetchResponse.FetchableTopicResponse(
            version=VERSION, topic="orders", partitions=[of_one]
        )
        message = FetchResponse(
            version=VERSION, throttle_time_ms=0, error_code=0, session_id=0, responses=[of_topic]
        )
    message.with_header(correlation_id=number + 1)
    return message.encode(framed=True, header=True)


@given(st.lists(st.binary(max_size=5000), max_size=4), st.lists(st.integers(1, 4000), min_size=1))
def test_answers_are_what_kafka_python_makes_of_them(contents, cuts):
    data = b"".join(answer(i, records) for i, records in enumerate(contents))
    theirs, ours = parser(len(contents)), parser(len(contents))
    take, found, expected = Answers(ours), [], theirs.receive_bytes(data)
    at, turn = 0, 0
    while at < len(data):
        end = at + cuts[turn % len(cuts)]
        found += take(data[at:end])
        at, turn = end, turn + 1
    assert len(found) == len(contents)
    assert [(n, str(a)) for n, a in found] == [(n, str(a)) for n, a in expected]
    for (_, message), records in list(zip(found, contents, strict=True))[1::2]:
        given_out = message.responses[0].partitions[0].records
        assert given_out == records
        assert isinstance(given_out, bytes)  # of their own: the answer's memory is let go


def test_an_answer_that_is_too_large_or_to_nothing_is_refused():
    with pytest.raises(InvalidReceiveError):
        Answers(parser(1, most=100))((101).to_bytes(4))
    with pytest.raises(InvalidReceiveError):
        Answers(parser(1))((-1).to_bytes(4, signed=True))
    with pytest.raises(CorrelationIdError):
        Answers(parser(0))(answer(0, b""))


@pytest.fixture
def ends():
    here, there = socket.socketpair()
    here.setblocking(False)
    yield here, there
    here.close()
    there.close()


def test_what_has_come_is_taken_and_then_the_end(ends):
    here, there = ends
    receive = Receiver(SimpleNamespace(_sock=here))
    assert receive() == (b"", None)
    there.sendall(b"one")
    there.sendall(b"two")
    assert receive() == (b"onetwo", None)
    there.sendall(b"three")
    there.close()
    data, error = receive()
    assert data == b"three"
    assert isinstance(error, KafkaConnectionError)
    here.close()
    assert isinstance(receive()[1], KafkaConnectionError)
    assert isinstance(Receiver(SimpleNamespace(_sock=None))()[1], KafkaConnectionError)


class Endless:
    """A socket from which more comes than is ever taken; of TLS if it holds bytes back."""

    def __init__(self, held=0):
        self.held = held
        self.taken = 0

    def recv(self, size):
        if self.held < 0:
            raise SSLWantReadError
        self.taken += size
        assert self.taken < 1 << 25, "it takes what comes for ever"
        self.held -= self.held > 0
        return b"x" * size

    def pending(self):
        return self.held


def test_other_connections_have_their_turn_though_more_comes():
    endless = Endless()
    data, error = Receiver(SimpleNamespace(_sock=endless))()
    assert error is None
    assert len(data) == endless.taken <= 2 << 20


def test_what_tls_holds_already_is_taken_to_the_end():
    # The system would not say that there is something to read.
    endless = Endless(held=100)
    data, error = Receiver(SimpleNamespace(_sock=endless))()
    assert (len(data), error, endless.held) == (100 * 64 * 1024, None, 0)
    endless.held = -1
    assert Receiver(SimpleNamespace(_sock=endless))() == (b"", None)


def test_every_connection_of_a_manager_is_changed_once():
    transport = SimpleNamespace(_sock=None)

    class Connection:
        made = 0
        parser = None

        def connection_made(self, given):
            assert isinstance(given._sock_recv, Receiver)
            self.made += 1
            self.parser = KafkaProtocol(client_id="test")

    class Manager:
        def __init__(self):
            self._conns = {}

        def get_connection(self, node, **_):
            return self._conns.setdefault(node, Connection())

    manager = Manager()
    receive_fast(manager)
    first, again = manager.get_connection(1), manager.get_connection(1, timeout_ms=5)
    assert first is again
    first.connection_made(transport)
    assert first.made == 1
    assert isinstance(first.parser.receive_bytes, Answers)
