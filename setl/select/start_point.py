"""A position in a source's stream, as a person names it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import ValidationError

from setl.channel.file import BinlogStart, GtidStart, OffsetStart, TimestampStart
from setl.errors import ConfigurationError

_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*")


@dataclass(frozen=True, slots=True)
class StartPoint:
    """A position in a stream, as a person names it.

    Attributes:
        start: in the words of the channel file's `start`.
        time: seconds since 1970 UTC, for a stream that `start` cannot name a time of; else None.
    """

    start: Literal["latest", "earliest"] | BinlogStart | GtidStart | OffsetStart | TimestampStart
    time: float | None = None

    @property
    def since(self) -> float:
        """The time that the position is, seconds since 1970 UTC; 0 if it is none.

        What is found for a time may lie some way before it: files of a binlog are dated, not
        what is in them, and Kafka dates records when they arrive.
        """
        if isinstance(self.start, TimestampStart):
            return float(self.start.timestamp)
        return self.time or 0.0


def parse_start_point(
    text: str,
    *,
    own: Callable[[str], StartPoint | None],
    at_time: Callable[[float], StartPoint],
    forms: str,
) -> StartPoint:
    """Understand a position: latest, earliest, a time, or what only streams of one kind have.

    Args:
        text: what was written. A time is ISO 8601 with hours and minutes, local unless it
            names a zone.
        own: understands the places that only streams of this kind have, gives None for others;
            may raise ValueError.
        at_time: the position of a time in seconds since 1970 UTC.
        forms: what `own` understands, for people.

    Raises:
        ConfigurationError: it is none of those.
    """
    text = text.strip()
    if text in ("latest", "earliest"):
        return StartPoint(text)
    try:
        if _TIME.fullmatch(text):
            return at_time(datetime.fromisoformat(text).astimezone().timestamp())
        found = own(text)
    except (ValidationError, ValueError, OverflowError) as error:
        raise ConfigurationError(f"not a position in the source: {text!r}: {error}") from error
    if found is None:
        raise ConfigurationError(
            f"not a position in the source: {text!r}",
            hint=f"Write latest, earliest, {forms}, or a time such as 2026-11-21T22:00",
        )
    return found
