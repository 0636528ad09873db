"""The topic of a relay: how many partitions it has, and making it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from setl.systems.kafka.errors import LOGGER, error_of
from setl.systems.kafka.relay.waiting import Waiting

MAX_RECORD: Final = 16 * 1024 * 1024
"""Bytes of the largest record, of a topic that is made and for the producer."""

_WHILE_NEW = frozenset(("_UNKNOWN_TOPIC", "UNKNOWN_TOPIC_OR_PART"))


def made_topic(
    consumer: Consumer,
    settings: Mapping[str, Any],
    topic: str,
    partitions: int,
    waiting: Waiting,
) -> int:
    """Make the topic if it is missing; returns how many partitions it has.

    Raises:
        ConfigurationError: it is missing, and the account or the brokers do not let it be made.
        TransientError: no answer within the limit.
    """
    admin = AdminClient(settings, logger=LOGGER)

    def count(limit: float) -> int:
        # By the consumer: asked by another client, brokers may make it, and in their own way.
        metadata = consumer.list_topics(topic, timeout=limit).topics[topic]
        if metadata.error is not None and metadata.error.name() not in _WHILE_NEW:
            raise KafkaException(metadata.error)
        return 0 if metadata.error is not None else len(metadata.partitions)

    def make(limit: float) -> None:
        # A cluster's own default may be to compact, which would drop records of the same key.
        config = {"cleanup.policy": "delete", "max.message.bytes": str(MAX_RECORD)}
        new = NewTopic(topic, partitions, config=config)
        try:
            admin.create_topics([new], request_timeout=limit)[topic].result()
        except KafkaException as error:
            # Another node was first, or our request was repeated.
            if error_of(error).code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise

    def known(limit: float) -> int:
        found = count(limit)
        if not found:  # made, and not every broker knows it yet
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
        return found

    def poll() -> None:
        consumer.poll(0)

    found = waiting.asked(f"tell about the topic {topic}", count, poll)
    if found:
        return found
    waiting.asked(f"make the topic {topic}", make, poll)
    return waiting.asked(f"show the new topic {topic}", known, poll)
