"""How long a thread of a node may compute while other threads want to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# A thread that reads a backlog computes all the time, and one that loads asks the JVM a question
# every few milliseconds: with Python's 5 ms it waits that long for each answer (a backlog from
# Kafka took 14 % longer).
_SHORTEST: Final = 0.001
_LONGEST: Final = 0.005  # Python's own
_OF_EACH: Final = 0.0001


def turn(pipelines: int) -> float:
    """Seconds of a turn on a node that runs so many pipelines.

    A thread that waits for its turn wakes up once in each turn of the others, to ask for one. A
    heartbeat wakes all threads of all pipelines at once, so that many of them would spend more on
    waking up than on the heartbeat.
    """
    return min(_LONGEST, max(_SHORTEST, pipelines * _OF_EACH))


class ThreadTurns:
    """Keeps the turn of this process as long as it should be."""

    def __init__(self, set_seconds: Callable[[float], None]) -> None:
        """Nothing is set yet; `set_seconds` is `sys.setswitchinterval`."""
        self._set_seconds = set_seconds
        self._seconds = 0.0

    def share(self, pipelines: int) -> None:
        """So many pipelines run now."""
        seconds = turn(pipelines)
        if seconds != self._seconds:
            self._set_seconds(seconds)
            self._seconds = seconds
