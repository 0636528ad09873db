"""A place in a source's stream, as a person names it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from setl.channel.file import BinlogStart, GtidStart, OffsetStart, TimestampStart


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a stream, as a person names it.

    Attributes:
        start: in the words of the channel file's `start`.
        time: seconds since 1970 UTC, for a stream that `start` cannot name a time of; else None.
    """

    start: Literal["latest", "earliest"] | BinlogStart | GtidStart | OffsetStart | TimestampStart
    time: float | None = None

    @property
    def since(self) -> float:
        """The time that the place is, seconds since 1970 UTC; 0 if it is none.

        What is found for a time may lie some way before it: files of a binlog are dated, not
        what is in them, and Kafka dates records when they arrive.
        """
        if isinstance(self.start, TimestampStart):
            return float(self.start.timestamp)
        return self.time or 0.0


def seconds_of(text: str) -> float:
    """A time in ISO 8601 as seconds since 1970 UTC; local unless it names a zone.

    Raises:
        ValueError: it is no time.
    """
    return datetime.fromisoformat(text).astimezone().timestamp()
