"""Which kind of error each error of librdkafka is."""

import logging

import pytest
from confluent_kafka import KafkaError

from setl.errors import ConfigurationError, DataError, FencedError, TransientError
from setl.systems.kafka.errors import LOGGER, ClientErrors, translate
from setl.systems.kafka.relay.waiting import Waiting


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._FENCED, FencedError),
        (KafkaError.PRODUCER_FENCED, FencedError),
        (KafkaError.INVALID_PRODUCER_EPOCH, FencedError),
        (KafkaError._AUTHENTICATION, ConfigurationError),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ConfigurationError),
        (KafkaError._UNSUPPORTED_FEATURE, ConfigurationError),
        (KafkaError.POLICY_VIOLATION, ConfigurationError),
        (KafkaError.MSG_SIZE_TOO_LARGE, DataError),
        (KafkaError.INVALID_RECORD, DataError),
        (KafkaError._TRANSPORT, TransientError),
        (KafkaError._TIMED_OUT, TransientError),
        (KafkaError.NOT_ENOUGH_REPLICAS, TransientError),
        (KafkaError._GAPLESS_GUARANTEE, TransientError),
        (KafkaError.UNKNOWN, TransientError),
    ],
)
def test_kinds(code, kind):
    error = translate(KafkaError(code, "why"))
    assert type(error) is kind
    assert "why" in error.message


def test_brokers_without_transactions_are_reported_what_to_choose():
    assert "delivery: idempotent" in translate(KafkaError(KafkaError._UNSUPPORTED_FEATURE)).hint


def test_a_wait_without_an_answer_says_why_nothing_answers():
    complaints = ClientErrors()
    late = TransientError("Kafka did not commit within 1 s")
    assert complaints.instead_of(late, 0) is late
    complaints.heard(KafkaError(KafkaError._TRANSPORT, "Connection refused"))
    assert complaints.instead_of(late, 1) is late  # of another wait
    assert str(complaints.instead_of(late, 0)).endswith("within 1 s: Connection refused")
    complaints.heard(KafkaError(KafkaError._AUTHENTICATION, "wrong password"))
    assert isinstance(complaints.instead_of(late, 1), ConfigurationError)
    # What follows from it does not hide it.
    complaints.heard(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    assert isinstance(complaints.instead_of(late, 1), ConfigurationError)
    assert str(complaints.instead_of(late, 2)).endswith("within 1 s: all brokers are down")


def test_waiting_ends_with_its_limit():
    asked = []
    with pytest.raises(TransientError, match=r"did not hurry within 0\.05 s"):
        asked.extend(Waiting(0.05).slices("hurry", 0.01))
    assert asked
    assert max(asked) <= 0.01


def test_waiting_ends_when_the_log_is_abandoned():
    waiting = Waiting(60)
    slices = waiting.slices("hurry")
    next(slices)
    waiting.abandon()
    with pytest.raises(FencedError):
        next(slices)


@pytest.mark.parametrize(
    ("text", "logged"),
    [
        ("Configuration property enable.gapless.guarantee is experimental: …", False),
        ("Configuration property linger.ms is a producer property and will be ignored", False),
        ("Connect to ipv4#127.0.0.1:1 failed: Connection refused", True),
    ],
)
def test_warnings_about_settings_that_are_meant_are_left_out(caplog, text, logged):
    LOGGER.log(logging.WARNING, "CONFWARN [%s] %s", "rdkafka#producer-1", text)
    assert bool(caplog.records) is logged
