"""A relay's topic whose connection fails while records are settled."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from setl.channel.kafka_endpoints import DtsTarget
from setl.errors import TransientError
from setl.systems.kafka.relay.log import KafkaRelayLog


def settled(delivery, *, before=0, during=0):
    """A log that has settled a record, with so many complaints before that and during it."""
    target = {"type": "dts", "brokers": ["b:1"], "topic": "t", "delivery": delivery}
    log = KafkaRelayLog(DtsTarget.model_validate(target), "r")

    def complain(times):
        for _ in range(times):
            log._waiting.complaints.heard(KafkaError(KafkaError._TRANSPORT, "gone"))

    sender: Any = SimpleNamespace(
        send=lambda *_: None, settle=lambda: complain(during), purge=lambda: None
    )
    log._sender = sender
    log.append(0, b"", b"", None, 0)
    complain(before)
    log.settle()
    return log


@pytest.mark.parametrize("when", ["before", "during"])
def test_what_was_committed_while_the_connection_failed_is_doubted(when):
    with pytest.raises(TransientError, match="lost inside a transaction"):
        settled("transactional", **{when: 1})
    settled("idempotent", **{when: 1})


def test_it_is_doubted_once_since_a_broker_may_be_gone_for_good():
    log = settled("transactional")
    log._waiting.complaints.heard(KafkaError(KafkaError._TRANSPORT, "gone"))
    log.append(0, b"", b"", None, 0)
    with pytest.raises(TransientError):
        log.settle()
    log._error = None  # as after `take_over`
    log._waiting.complaints.heard(KafkaError(KafkaError._TRANSPORT, "gone"))
    log.append(0, b"", b"", None, 0)
    log.settle()
