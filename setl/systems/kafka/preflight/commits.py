"""Whether the commits of a group can be read, for `checkpoint: kafka`."""

from __future__ import annotations

from kafka.errors import KafkaError
from kafka.structs import TopicPartition

from setl.channel.kafka_ends import DtsSource
from setl.errors import SetlError
from setl.systems.finding import Report
from setl.systems.kafka.client import FEW, connect, translate
from setl.systems.kafka.settings import kafka_settings

_TIMEOUT = 5.0


def check_commits(source: DtsSource, report: Report) -> None:
    """See that the account may read the group's commits; whether it may commit shows only then."""
    place = TopicPartition(source.topic, source.partition)
    try:
        consumer = connect({**FEW, **kafka_settings(source)}, _TIMEOUT)
        try:
            consumer.committed(place, timeout_ms=int(_TIMEOUT * 1000))
        finally:
            consumer.close(autocommit=False, timeout_ms=1000)
    except (KafkaError, SetlError) as error:
        told = translate(error) if isinstance(error, KafkaError) else error
        report.error(
            f"the commits of the group {source.sid} cannot be read: {told.message}",
            "Allow the account READ on the group, or choose another `checkpoint`",
        )
    else:
        report.ok(f"the commits of the group {source.sid} can be read")
