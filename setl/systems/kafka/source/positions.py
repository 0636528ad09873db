"""Places in a topic that a person has named, and how far they are from its end."""

from __future__ import annotations

from setl.channel.file import KafkaSource, OffsetStart, TimestampStart
from setl.errors import ConfigurationError
from setl.model.position import KafkaOrigin, KafkaPosition, Position
from setl.select.start_point import StartPoint, parse_start_point


def parse_topic_start(text: str) -> StartPoint:
    """Understand an offset as a position, and what `parse_start_point` does; raises as it."""
    return parse_start_point(
        text,
        own=lambda text: StartPoint(OffsetStart(offset=int(text))) if text.isdigit() else None,
        at_time=lambda seconds: StartPoint(TimestampStart(timestamp=int(seconds))),
        forms="an offset",
    )


def topic_distance(position: Position, latest: Position) -> int | None:
    """Records from a position to the end of its partition; None if they are not of one."""
    if not (isinstance(position, KafkaPosition) and isinstance(latest, KafkaPosition)):
        return None
    same = (position.topic, position.partition) == (latest.topic, latest.partition)
    same = same and _maybe_one(position.origin, latest.origin)
    return max(0, latest.offset - position.offset) if same else None


def position_to_reach(start_point: StartPoint, config: KafkaSource) -> KafkaPosition:
    """The offset that somebody wants to see passed.

    Raises:
        ConfigurationError: it is none; what Kafka finds for a time may lie before it.
    """
    if isinstance(start_point.start, OffsetStart):
        return KafkaPosition(config.topic, config.partition, start_point.start.offset)
    raise ConfigurationError(
        "a topic can be waited for up to now or to an offset only",
        hint="Kafka dates records when they arrive, which does not say what lies before a time",
    )


def topic_passed(reached: Position, position: Position) -> bool:
    """Whether the position lies before where a pipeline has come to, in the same partition."""
    if not (isinstance(reached, KafkaPosition) and isinstance(position, KafkaPosition)):
        return False
    same = (position.topic, position.partition) == (reached.topic, reached.partition)
    return (
        same and _maybe_one(position.origin, reached.origin) and reached.offset >= position.offset
    )


def _maybe_one(position: KafkaOrigin | None, latest: KafkaOrigin | None) -> bool:
    """Whether two origins may be the same topic; what is not known counts as the same."""
    if position is None or latest is None:
        return True
    return all(a == b or not a or not b for a, b in zip(position, latest, strict=True))
