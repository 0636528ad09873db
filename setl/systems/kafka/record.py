"""What is read of a topic: one record, and which partition it is of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Headers = Sequence[tuple[str, bytes | None]]


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class Record(NamedTuple):
    """A record as `setl.systems.kafka.reader.TopicReader` gives it.

    Attributes:
        partition: the number of its partition.
        offset: its offset.
        timestamp: when it was written, or taken by the broker, as the topic is set; in
            milliseconds, or whatever its writer took for that. Negative: not known.
        key: its key, None if it has none.
        value: its value, None for a tombstone.
        headers: names and values of its headers, in order.
    """

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
