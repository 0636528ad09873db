"""What a rule says of a pipeline or a node at one moment, and from when on of what expires."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

Severity = Literal["critical", "warning"]

CRITICAL_PART: Final = 4
"""It is critical in the last of so many parts of that time."""

_MOST: Final = 14 * 86_400.0
_PART_OF_LIFE: Final = 6


class AlarmKey(NamedTuple):
    """Which alarm it is.

    Attributes:
        rule: the rule's name, as in a channel file.
        channel: the channel, "" for none.
        pipeline: the pipeline, "" for none.
        subject: what else it is about, such as a node or a server; "" for nothing.
    """

    rule: str
    channel: str = ""
    pipeline: str = ""
    subject: str = ""

    def __str__(self) -> str:
        return f"{self.rule} of {self.about}"

    @property
    def about(self) -> str:
        """What it is about, for people."""
        name = f"{self.channel}/{self.pipeline}" if self.channel else ""
        return ", ".join(part for part in (name, self.subject) if part)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether something is wrong.

    Attributes:
        key: which alarm it is.
        holds: whether it is so; None if nobody knows, so that the alarm stays what it is.
        text: what is wrong, a sentence without a stop.
        hint: what to do, "" if `text` says it.
        severity: ``critical`` if changes are not applied or may be lost.
        patience: seconds for which it must hold before the alarm is raised.
        calm: seconds for which it must not hold until the alarm is over.
        repeat: seconds after which the alarm is sent again.
    """

    key: AlarmKey
    holds: bool | None
    text: str = ""
    hint: str = ""
    severity: Severity = "warning"
    patience: float = 0.0
    calm: float = 60.0
    repeat: float = 4 * 3600.0


def seconds_before(begins: float | None, expires: float) -> float:
    """Seconds before its end from which on people have to know of it.

    Who renews by a program has certificates of a few days, and renews them when about a third is
    left. 14 days before their end they would not even be there.

    Args:
        begins: since when it is valid, seconds since 1970 UTC; None if nobody knows.
        expires: until when.
    """
    return _MOST if begins is None else min(_MOST, (expires - begins) / _PART_OF_LIFE)
