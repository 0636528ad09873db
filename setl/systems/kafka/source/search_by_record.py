"""Looks positions up where each record stands alone.

Any offset is a boundary then. Commit times do not grow from record to record, and there are no
transactions by which to tell how far they do not. But nothing is in Kafka before it is committed:
what Kafka dates before a time was committed before it. So a time is looked up by Kafka's own, with
some room for clocks that differ; what is read twice changes nothing.
"""

from __future__ import annotations

from typing import Final

from typing_extensions import override

from setl.channel.fields.kafka_endpoints import KafkaSource
from setl.clock import Clock
from setl.errors import PositionLostError
from setl.model.position import KafkaPosition
from setl.systems.kafka.by_time import utc
from setl.systems.kafka.client import Bounds
from setl.systems.kafka.formats import header_reader
from setl.systems.kafka.partition import PartitionView, SeenRecord, hints
from setl.systems.kafka.reader import TopicReader
from setl.systems.kafka.record import TopicPartition
from setl.systems.kafka.source.search import TopicSearch, lost

_MARGIN: Final = 60  # seconds by which clocks may differ


def topic_search(
    config: KafkaSource, reader: TopicReader, *, timeout: float, clock: Clock
) -> TopicSearch:
    """What looks positions up in a source's partition, with a reader that does nothing else."""
    view = partition_view(config, reader, config.partition, timeout=timeout, clock=clock)
    return RecordSearch(view, clock) if config.stands_alone else TopicSearch(view, clock)


def partition_view(
    config: KafkaSource, reader: TopicReader, number: int, *, timeout: float, clock: Clock
) -> PartitionView:
    """What looks around in a partition of a source's topic."""
    return PartitionView(
        reader,
        TopicPartition(config.topic, number),
        timeout=timeout,
        clock=clock,
        headers=header_reader(config),
    )


class RecordSearch(TopicSearch):
    """A `TopicSearch` where each record stands alone."""

    @override
    def check_between(self, offset: int) -> None:
        """Any offset lies between two records."""

    @override
    def first_since(self, seconds: int) -> SeenRecord | None:
        return first_written_since(self._view, self.bounds(), seconds, self._deadline())

    @override
    def at_time(self, seconds: int) -> KafkaPosition:
        bounds = self.bounds()
        offset = self._view.written_since(seconds - _MARGIN)
        if offset is None:
            raise _not_there(seconds, "Kafka has got no record since", bounds)
        if 0 < bounds.first == offset:
            raise _not_there(seconds, "the oldest record is newer", bounds)
        return self._view.at(offset, seconds)

    @override
    def by_time(self, position: KafkaPosition, objection: str, bounds: Bounds) -> KafkaPosition:
        applied = position.timestamp
        if not applied:
            raise lost(position, objection, "the position has no time to look for", bounds)
        if bounds.first == bounds.end:
            raise lost(position, objection, "the topic is empty", bounds)
        offset = self._view.written_since(applied - _MARGIN)
        if offset is None:
            offset = bounds.end  # it has not come as far yet
        if offset == bounds.first:
            raise lost(position, objection, f"nothing in it is older than {utc(applied)}", bounds)
        return self._view.at(offset, applied - _MARGIN)


def first_written_since(
    view: PartitionView, bounds: Bounds, seconds: int, deadline: float
) -> SeenRecord | None:
    """The first record that Kafka dates at or after a time, None if there is none."""
    offset = view.written_since(seconds)
    if offset is None:
        return None
    return next(view.records(offset, bounds.end, deadline), None)


def _not_there(seconds: int, reason: str, bounds: Bounds) -> PositionLostError:
    return PositionLostError(
        f"nothing can be read from {utc(seconds)} ({seconds}) on: {reason}", hint=hints(bounds)
    )
