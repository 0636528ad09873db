"""How a node has its C library return memory, and its threads take turns.

glibc gives each thread that allocates an arena of its own, up to eight for each core, and gives
little of one back to the system. What a node reads passes through several threads, so each arena
grows to what its thread held at most: the driver rose by 100 MiB in a quarter of an hour, all of it
free. With few arenas they share what is free: in a load of 80 seconds the driver rose from 189 MiB
to 272 with 16 arenas, and to 228 with two, after more rows. Other C libraries have no such arenas.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Final

_M_ARENA_MAX = -8  # of glibc's <malloc.h>
_ARENAS = 2


def share_arenas() -> bool:
    """Let the threads of this process share a few arenas; whether the C library can.

    To be called before threads are started, since arenas that exist stay. A number that the
    environment names (MALLOC_ARENA_MAX) is left as it is. Nothing happens without glibc.
    """
    if "MALLOC_ARENA_MAX" in os.environ or not _is_glibc():
        return False
    try:
        return ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS) == 1
    except (OSError, AttributeError):
        return False


def _is_glibc() -> bool:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (AttributeError, ValueError, OSError):
        return False


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
