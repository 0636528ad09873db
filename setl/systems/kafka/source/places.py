"""Places in a topic that a person has named, and how far they are from its end."""

from __future__ import annotations

from setl.channel.file import DtsSource, OffsetStart, TimestampStart
from setl.errors import ConfigurationError
from setl.model.position import KafkaOrigin, KafkaPosition, Position
from setl.select.place import Place, parse_place


def parse_topic_place(text: str) -> Place:
    """Understand an offset as a place, and what `parse_place` does; raises as it."""
    return parse_place(
        text,
        own=lambda text: Place(OffsetStart(offset=int(text))) if text.isdigit() else None,
        at_time=lambda seconds: Place(TimestampStart(timestamp=int(seconds))),
        forms="an offset",
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
