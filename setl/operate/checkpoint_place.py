"""The checks of where a checkpoint is kept, if neither the target nor ZooKeeper keeps it."""

from __future__ import annotations

from kafka.errors import KafkaError
from kafka.structs import TopicPartition

from setl.channel.file import DtsSource, Pipeline
from setl.errors import SetlError
from setl.select.checkpoints.container import container_sign, lost_with_container
from setl.systems.finding import Report
from setl.systems.kafka.client import FEW, connect, translate
from setl.systems.kafka.settings import kafka_settings

_TIMEOUT = 5.0


def check_checkpoint_place(pipeline: Pipeline, report: Report) -> None:
    """Report what is to be said about a pipeline's `checkpoint`."""
    source = pipeline.source
    if pipeline.checkpoint == "file":
        sign = container_sign()
        if sign:
            report.warning(
                lost_with_container(sign),
                "Put `checkpoint_file` on a volume that stays, or leave `checkpoint` out",
            )
    elif pipeline.checkpoint == "kafka" and isinstance(source, DtsSource):
        _check_commits(source, report)


def _check_commits(source: DtsSource, report: Report) -> None:
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
