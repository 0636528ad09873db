"""Places in a topic that a person has named, and how far they are from its end."""

from __future__ import annotations

import re

from pydantic import ValidationError

from setl.channel.file import DtsSource, OffsetStart, TimestampStart
from setl.errors import ConfigurationError
from setl.model.position import KafkaOrigin, KafkaPosition, Position
from setl.select.place import Place, seconds_of

_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*")


def parse_topic_place(text: str) -> Place:
    """Understand a place: latest, earliest, an offset, or a time.

    Args:
        text: what was written. A time is ISO 8601 with hours and minutes, local unless it
            names a zone.

    Raises:
        ConfigurationError: it is none of those.
    """
    text = text.strip()
    if text in ("latest", "earliest"):
        return Place(text)
    try:
        if text.isdigit():
            return Place(OffsetStart(offset=int(text)))
        if _TIME.fullmatch(text):
            return Place(TimestampStart(timestamp=int(seconds_of(text))))
    except (ValidationError, ValueError, OverflowError) as error:
        raise ConfigurationError(f"not a place in the source: {text!r}: {error}") from error
    raise ConfigurationError(
        f"not a place in the source: {text!r}",
        hint="Write latest, earliest, an offset, or a time such as 2026-11-21T22:00",
    )


def topic_distance(place: Position, latest: Position) -> int | None:
    """Records from a place to the end of its partition; None if they are not of one."""
    if not (isinstance(place, KafkaPosition) and isinstance(latest, KafkaPosition)):
        return None
    same = (place.topic, place.partition) == (latest.topic, latest.partition)
    same = same and _maybe_one(place.origin, latest.origin)
    return max(0, latest.offset - place.offset) if same else None


def place_to_pass(place: Place, config: DtsSource) -> KafkaPosition:
    """The offset that somebody wants to see passed.

    Raises:
        ConfigurationError: it is none; what Kafka finds for a time may lie before it.
    """
    if isinstance(place.start, OffsetStart):
        return KafkaPosition(config.topic, config.partition, place.start.offset)
    raise ConfigurationError(
        "a topic can be waited for up to now or to an offset only",
        hint="Kafka dates records when they arrive, which does not say what lies before a time",
    )


def topic_passed(reached: Position, place: Position) -> bool:
    """Whether the place lies before where a pipeline has come to, in the same partition."""
    if not (isinstance(reached, KafkaPosition) and isinstance(place, KafkaPosition)):
        return False
    same = (place.topic, place.partition) == (reached.topic, reached.partition)
    return same and _maybe_one(place.origin, reached.origin) and reached.offset >= place.offset


def _maybe_one(place: KafkaOrigin | None, latest: KafkaOrigin | None) -> bool:
    """Whether two origins may be the same topic; what is not known counts as the same."""
    if place is None or latest is None:
        return True
    return all(a == b or not a or not b for a, b in zip(place, latest, strict=True))
