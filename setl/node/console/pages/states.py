"""How states look: a word, a sign and a tone, so that none is told by colour alone. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from setl.node.cluster.view import NO_ANSWER, NO_LEADER


class Tone(Enum):
    """How much a state wants attention; also the name of its style."""

    GOOD = "good"
    BUSY = "busy"
    WARN = "warn"
    BAD = "bad"
    QUIET = "quiet"


@dataclass(frozen=True, slots=True)
class Look:
    """How a state is shown.

    Attributes:
        word: its name.
        sign: one character of a shape of its own.
        tone: how much it wants attention.
    """

    word: str
    sign: str
    tone: Tone

    @property
    def rank(self) -> int:
        """Where it is in a table that is sorted by state: what wants most attention first."""
        return _BY_ATTENTION.index(self.tone)


_BY_ATTENTION = (Tone.BAD, Tone.WARN, Tone.BUSY, Tone.GOOD, Tone.QUIET)

_LOOKS = {
    "running": Look("running", "●", Tone.GOOD),
    "taking over": Look("taking over", "◔", Tone.BUSY),
    "retrying": Look("retrying", "▲", Tone.WARN),
    "suspended": Look("suspended", "◆", Tone.WARN),
    "paused": Look("paused", "❚❚", Tone.QUIET),
    "stopped": Look("stopped", "■", Tone.QUIET),
    "standby": Look("standby", "○", Tone.QUIET),
    "failed": Look("failed", "✖", Tone.BAD),
    NO_LEADER: Look("no leader", "✖", Tone.BAD),
    NO_ANSWER: Look("no answer", "?", Tone.WARN),
}


def look_of(state: str) -> Look:
    """How a pipeline's state is shown; one of another release by its own word."""
    return _LOOKS.get(state) or Look(state, "?", Tone.WARN)


CHANNEL_LOOKS = {
    "START": Look("started", "▶", Tone.GOOD),
    "PAUSE": Look("paused", "❚❚", Tone.QUIET),
    "STOP": Look("stopped", "■", Tone.QUIET),
}
"""How the states are shown in which an operator wants a channel."""
