"""The checks of a DTS source: brokers, topic, partition and where to start."""

from __future__ import annotations

import contextlib
from typing import Any

from kafka import KafkaConsumer
from kafka.errors import KafkaConfigurationError, KafkaError
from kafka.structs import TopicPartition

from setl.config.connections import kafka_settings
from setl.config.endpoints import DtsSource, OffsetStart, TimestampStart
from setl.config.preflight.finding import Report

_TIMEOUT_MS = 5_000


def check_dts_source(source: DtsSource, report: Report) -> None:
    """Report everything about a DTS source."""
    limits = {"bootstrap_timeout_ms": _TIMEOUT_MS, "request_timeout_ms": _TIMEOUT_MS}
    consumer: Any = None
    make: Any = KafkaConsumer  # its settings come by name, from the channel file too
    try:
        # AssertionError and TypeError are how kafka-python refuses a setting.
        consumer = make(**{**limits, **kafka_settings(source)})
        _check_topic(consumer, source, report)
    except (KafkaConfigurationError, AssertionError, TypeError, ValueError) as error:
        report.error(
            f"kafka-python refuses its settings: {error}",
            "Correct what stands under `kafka`: see KafkaConsumer in its documentation",
        )
    except (KafkaError, OSError) as error:
        report.error(
            f"no answer from Kafka: {_reason(error)}",
            "Check `brokers`, and with an account `user`, `password` and `sid`",
        )
    finally:
        if consumer is not None:
            with contextlib.suppress(KafkaError, OSError):
                consumer.close(autocommit=False)


def _check_topic(consumer: Any, source: DtsSource, report: Report) -> None:
    partitions = consumer.partitions_for_topic(source.topic)
    if not partitions:
        report.error(
            f"there is no topic {source.topic}, or the account may not read it",
            "Copy the topic from the subscription; it is made when the subscription is",
        )
        return
    if source.partition not in partitions:
        report.error(
            f"the topic {source.topic} has no partition {source.partition}",
            f"It has {', '.join(map(str, sorted(partitions)))}; DTS uses 0 only",
        )
        return
    place = TopicPartition(source.topic, source.partition)
    first = int(consumer.beginning_offsets([place])[place])
    end = int(consumer.end_offsets([place])[place])
    before = len(report.findings)
    if isinstance(source.start, OffsetStart):
        if not first <= source.start.offset <= end:
            report.error(
                f"`start` names offset {source.start.offset}, but the topic goes from {first} to"
                f" {end}",
                "Choose an offset in between, or earliest, or latest",
            )
    elif isinstance(source.start, TimestampStart):
        _check_time(consumer, place, source.start.timestamp, first, report)
    if len(report.findings) == before:
        report.ok(f"the topic {source.topic} has records {first} to {end}")


def _check_time(
    consumer: Any, place: TopicPartition, timestamp: int, first: int, report: Report
) -> None:
    # Brokers count milliseconds.
    found = consumer.offsets_for_times({place: timestamp * 1000}).get(place)
    if found is None:
        report.warning(
            f"`start` names the time {timestamp}, after which the topic has no record yet",
            "Reading begins with the next record; say latest if that is meant",
        )
    elif int(found.offset) == first and first > 0:
        report.warning(
            f"`start` names the time {timestamp}; the topic's oldest record is from then or later,"
            " so changes in between may be gone",
            "Load the tables first, or choose a later time",
        )


def _reason(error: Exception) -> str:
    text = str(error).strip()
    return text or type(error).__name__
