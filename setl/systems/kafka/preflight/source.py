"""The checks of a DTS source: brokers, account, topic, partition, where to start, commits."""

from __future__ import annotations

from setl.channel.fields.kafka_endpoints import KafkaSource, OffsetStart, TimestampStart
from setl.clock import SystemClock
from setl.errors import PositionLostError, SetlError, TransientError
from setl.systems.finding import Report
from setl.systems.kafka.reader import TopicReader, check_single, open_reader, reader_and_partitions
from setl.systems.kafka.settings import source_settings
from setl.systems.kafka.source.search_by_record import topic_search
from setl.systems.kafka.tls import check_transport

_TIMEOUT = 5.0


def check_kafka_source(
    source: KafkaSource, report: Report, *, read: frozenset[int] = frozenset()
) -> None:
    """Report everything about a DTS source.

    Args:
        source: the subscription.
        report: where to put it.
        read: the partitions that pipelines of the channel read; empty if nobody has looked.
    """
    check_transport(source_settings(source), report)
    try:
        reader, partitions = reader_and_partitions(source, _TIMEOUT, few=True)
        try:
            _check_topic(reader, partitions, source, report)
            _check_unread(partitions, source, read, report)
        finally:
            reader.close()
    except SetlError as error:
        _report(error, report)


def _check_unread(
    partitions: set[int], source: KafkaSource, read: frozenset[int], report: Report
) -> None:
    unread = sorted(partitions - read)
    if read and source.partition in partitions and unread:
        report.warning(
            f"the topic {source.topic} has {len(partitions)} partitions, and the channel does not"
            f" read {', '.join(map(str, unread))}: what is there never arrives",
            f"Write `partitions: {len(partitions)}`, unless another channel reads them, or a relay"
            " with `partition_by: order` writes the topic",
            code="partitions-unread",
        )


def _report(error: SetlError, report: Report) -> None:
    hint = error.hint or "Check `brokers`, and with an account `user` and `sid`"
    if isinstance(error, TransientError):
        report.unseen(f"no answer from Kafka: {error.message}", hint, code="no-answer")
    else:
        report.error(error.message, hint, code="kafka-refused")


def _check_topic(
    reader: TopicReader, partitions: set[int], source: KafkaSource, report: Report
) -> None:
    if not partitions:
        report.error(
            f"there is no topic {source.topic}, or the account may not read it",
            "Check the topic's name, for DTS in its console, and the account's permissions",
            code="no-topic",
        )
        return
    if source.partition not in partitions:
        report.error(
            f"the topic {source.topic} has no partition {source.partition}",
            f"It has {', '.join(map(str, sorted(partitions)))}; DTS uses 0 only",
            code="no-partition",
        )
        return
    if source.mode == "subscribe":
        check_single(partitions)
    search = topic_search(source, reader, timeout=_TIMEOUT, clock=SystemClock())
    bounds = search.bounds()
    if isinstance(source.start, OffsetStart):
        if not bounds.first <= source.start.offset <= bounds.end:
            report.error(
                f"`start` names offset {source.start.offset}, but the topic goes from"
                f" {bounds.first} to {bounds.end}",
                "Choose an offset in between, or earliest, or latest",
                code="start-not-there",
            )
            return
    elif isinstance(source.start, TimestampStart):
        # As the source itself will look for it.
        try:
            search.at_time(source.start.timestamp)
        except PositionLostError as error:
            report.error(
                f"`start` names a time that is not there: {error.message}",
                "Choose a time in between, or earliest, or latest",
                code="start-not-there",
            )
            return
    report.ok(f"the topic {source.topic} has records {bounds.first} to {bounds.end}")


def check_commits(source: KafkaSource, report: Report) -> None:
    """See that the account may read the group's commits; whether it may commit shows only then."""
    try:
        reader = open_reader(source, _TIMEOUT, few=True)
        try:
            reader.committed(source.partition)
        finally:
            reader.close()
    except SetlError as error:
        report.error(
            f"the commits of the group {source.sid} cannot be read: {error.message}",
            "Allow the account READ on the group, or choose another `checkpoint`",
            code="kafka-commits",
        )
    else:
        report.ok(f"the commits of the group {source.sid} can be read")
