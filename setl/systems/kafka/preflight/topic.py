"""The checks of a relay's topic: brokers, partitions, settings, and what its delivery needs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, ResourceType

from setl.channel.fields.kafka_endpoints import KafkaTarget
from setl.systems.finding import Report
from setl.systems.kafka.settings import target_settings
from setl.systems.kafka.tls import check_transport

_T = TypeVar("_T")
_TIMEOUT: Final = 5.0
_BATCH: Final = 1_000_000  # bytes; librdkafka fills batches up to this
_DAY_MS: Final = 24 * 3600 * 1000
_CHECK_ID: Final = "setl/check"  # begins as the ids of relays do, for brokers that have rules

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())
_log.propagate = False  # what the clients would log is a finding here


def check_kafka_target(target: KafkaTarget, report: Report) -> None:
    """Report everything about a relay's topic."""
    complaints: list[KafkaError] = []
    settings: dict[str, Any] = {
        "compression.type": target.compression,
        **target_settings(target),
        "error_cb": complaints.append,
    }
    check_transport(settings, report)
    try:
        found = _partitions(settings, target.topic)
    except KafkaException as error:
        _no_answer(error, complaints, report)
        return
    if found:
        _check_partitions(target, found, report)
        _check_settings(settings, target.topic, report)
    else:
        report.ok(
            f"there is no topic {target.topic} yet; the relay makes it, with"
            f" {target.partitions} partition{'s' if target.partitions > 1 else ''}"
        )
    if target.delivery == "transactional":
        _check_transactions(settings, report)


def _partitions(settings: Mapping[str, Any], topic: str) -> int:
    """How many partitions the topic has, 0 if there is no such topic."""
    # A consumer does not make a topic by asking for it, as other clients do.
    own = {**settings, "group.id": "setl-relay", "allow.auto.create.topics": False}
    consumer = Consumer(own, logger=_log)
    try:
        metadata = consumer.list_topics(topic, timeout=_TIMEOUT).topics[topic]
    except KafkaException:
        consumer.poll(0)  # tells the reason
        raise
    finally:
        consumer.close()
    unknown = ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC")
    if metadata.error is not None and metadata.error.name() not in unknown:
        raise KafkaException(metadata.error)
    return len(metadata.partitions) if metadata.error is None else 0


def _no_answer(error: KafkaException, complaints: list[KafkaError], report: Report) -> None:
    reason: KafkaError = complaints[-1] if complaints else error.args[0]
    if error.args[0].name() == "_INVALID_ARG":
        report.error(
            f"librdkafka refuses its settings: {error.args[0].str()}",
            "Correct what stands under `kafka`: see CONFIGURATION.md in its documentation",
            code="kafka-settings",
        )
        return
    report.unseen(
        f"no answer from Kafka: {reason.str()}",
        "Check `brokers`, and with an account `user`, `password` and what it may do",
        code="no-answer",
    )


def _check_partitions(target: KafkaTarget, found: int, report: Report) -> None:
    what = f"the topic {target.topic} has {found} partition{'s' if found > 1 else ''}"
    if target.partition_by == "order" and found > 1:
        report.warning(
            f"{what}, of which rows only go to the first",
            "Choose `partition_by: table` or `key`, if their order across tables is not needed",
            code="partition-count",
        )
    elif found != target.partitions:
        report.warning(
            f"{what}, not {target.partitions}",
            "Correct `partitions`, which only counts for a topic that is made",
            code="partition-count",
        )
    else:
        report.ok(what)


def _check_settings(settings: Mapping[str, Any], topic: str, report: Report) -> None:
    admin = AdminClient(settings, logger=_log)
    asked = admin.describe_configs(
        [ConfigResource(ResourceType.TOPIC, topic)], request_timeout=_TIMEOUT
    )
    try:
        (entries,) = (answer.result() for answer in asked.values())
    except KafkaException as error:
        report.warning(
            f"the topic's settings are unknown: {error.args[0].str()}",
            "Make sure yourself that `cleanup.policy` is delete, since others lose records",
            code="topic-settings-unknown",
        )
        return
    if "compact" in _value(entries, "cleanup.policy", str, ""):
        report.error(
            "the topic is compacted: of the records with the same key all but the last vanish",
            f"Set its `cleanup.policy` to delete: kafka-configs --alter --topic {topic}"
            " --add-config cleanup.policy=delete",
            code="topic-compacted",
        )
    largest = _value(entries, "max.message.bytes", int, _BATCH)
    if largest < _BATCH:
        report.warning(
            f"the topic takes batches of up to {largest} bytes, fewer than the relay fills",
            f"Set its `max.message.bytes` to {16 * 1024 * 1024}, or above the largest row",
            code="topic-batch-size",
        )
    else:
        report.ok(f"the topic takes records of up to {largest:,} bytes (`max.message.bytes`)")
    _check_retention(_value(entries, "retention.ms", int, -1), report)


def _check_retention(milliseconds: int, report: Report) -> None:
    if 0 <= milliseconds < _DAY_MS:
        report.warning(
            f"the topic keeps records for {milliseconds / 3_600_000:g} hours (`retention.ms`);"
            " a subscriber that is away for longer cannot go on",
            "Keep them for as long as the source keeps its binlog",
            code="topic-retention",
        )
    elif milliseconds >= 0:
        report.ok(f"the topic keeps records for {milliseconds / _DAY_MS:g} days (`retention.ms`)")


def _value(
    entries: Mapping[str, ConfigEntry], name: str, kind: Callable[[str], _T], default: _T
) -> _T:
    entry = entries.get(name)
    return default if entry is None or entry.value is None else kind(entry.value)


def _check_transactions(settings: Mapping[str, Any], report: Report) -> None:
    """Begin to use transactions under an id that is nobody's; what a running relay does goes on."""
    producer = Producer({**settings, "transactional.id": _CHECK_ID}, logger=_log)
    try:
        producer.init_transactions(_TIMEOUT)
    except KafkaException as error:
        reason: KafkaError = error.args[0]
        if reason.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            report.error(
                "the account may not use transactions",
                "Allow it WRITE and DESCRIBE for transactional ids that begin with setl/, or write"
                " `delivery: idempotent`",
                code="kafka-transactions",
            )
            return
        report.error(
            f"the brokers do not begin a transaction: {reason.str()}",
            "Write `delivery: idempotent`, or `one_in_flight` if that is refused too",
            code="kafka-transactions",
        )
        return
    report.ok("the brokers offer transactions, by which they fence a former leader")
