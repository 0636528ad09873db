"""How a producer of transactions is let go."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from setl.errors import SetlError
from setl.systems.kafka.relay import sender as kafka_sender
from setl.systems.kafka.relay.sender import TransactionalSender
from setl.systems.kafka.relay.waiting import Waiting


class Client:
    """In place of librdkafka's producer: notes what is asked of it, and fails where told."""

    def __init__(self, *_, **__):
        self.calls: list[tuple[Any, ...]] = []
        self.failing: tuple[str, ...] = ()

    def __len__(self):
        return 0

    def __getattr__(self, name):
        def call(*args, **_):
            self.calls.append((name, *args))
            if name in self.failing:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer"))

        return call

    def asked(self, name):
        return [call[1:] for call in self.calls if call[0] == name]


@pytest.fixture
def waiting():
    return Waiting(5.0)


@pytest.fixture
def sender(waiting, monkeypatch):
    monkeypatch.setattr(kafka_sender, "Producer", Client)
    return TransactionalSender({}, "t", waiting, "relay")


def client_of(sender) -> Client:
    return sender._producer


def test_an_open_transaction_is_aborted_also_when_it_was_abandoned(sender, waiting):
    # The client ends the process if it is let go with a partition still to be added.
    sender.send(0, b"v", b"p", None, 0)
    waiting.abandon()
    sender.close()
    [(limit,)] = client_of(sender).asked("abort_transaction")
    assert limit < 1


def test_without_one_nothing_is_aborted(sender):
    sender.close()
    assert client_of(sender).asked("abort_transaction") == []


def test_one_that_was_begun_to_end_another_is_aborted_too(sender):
    client_of(sender).failing = ("produce",)
    with pytest.raises(SetlError):
        sender.end_hanging(0)
    sender.close()
    assert len(client_of(sender).asked("abort_transaction")) == 1


def test_one_that_has_ended_is_left_alone(sender):
    sender.end_hanging(0)
    assert len(client_of(sender).asked("abort_transaction")) == 1
    sender.close()
    assert len(client_of(sender).asked("abort_transaction")) == 1


def test_a_broker_that_does_not_answer_does_not_keep_it(sender, waiting):
    sender.send(0, b"v", b"p", None, 0)
    client_of(sender).failing = ("abort_transaction",)
    waiting.abandon()
    sender.close()
