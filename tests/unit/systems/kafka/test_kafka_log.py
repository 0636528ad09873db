"""A relay's topic whose connection fails while records are flushed."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from setl.channel.fields.kafka_endpoints import KafkaTarget
from setl.errors import TransientError
from setl.systems.kafka.relay.log import KafkaRelayLog


def flushed(delivery, *, before=0, during=0, gone_at_once=False):
    """A log that has flushed a record, with so many complaints before that and during it."""
    target = {"type": "kafka", "brokers": ["b:1"], "topic": "t", "delivery": delivery}
    log = KafkaRelayLog(KafkaTarget.model_validate(target), "r")

    def complain(times):
        for _ in range(times):
            log._waiting.complaints.heard(KafkaError(KafkaError._TRANSPORT, "gone"))

    def flush(check):
        complain(during)
        check()
        if gone_at_once:
            pytest.fail("records went on their way behind a lost connection")

    sender: Any = SimpleNamespace(send=lambda *_: None, flush=flush, purge=lambda: None)
    log._sender = sender
    log.append(0, b"", b"", None, 0)
    complain(before)
    log.flush()
    return log


@pytest.mark.parametrize("when", ["before", "during"])
def test_what_was_committed_while_the_connection_failed_is_doubted(when):
    with pytest.raises(TransientError, match="lost inside a transaction"):
        flushed("transactional", before=when == "before", during=when == "during")
    flushed("idempotent", before=when == "before", during=when == "during")


def test_a_flush_ends_as_soon_as_the_connection_is_lost():
    """A broker that forgets transactions would keep what comes later as one that nobody ends."""
    with pytest.raises(TransientError, match="lost inside a transaction"):
        flushed("transactional", during=1, gone_at_once=True)


def test_it_is_doubted_once_since_a_broker_may_be_gone_for_good():
    log = flushed("transactional")
    log._waiting.complaints.heard(KafkaError(KafkaError._TRANSPORT, "gone"))
    log.append(0, b"", b"", None, 0)
    with pytest.raises(TransientError):
        log.flush()
    log._error = None  # as after `take_over`
    log._waiting.complaints.heard(KafkaError(KafkaError._TRANSPORT, "gone"))
    log.append(0, b"", b"", None, 0)
    log.flush()
