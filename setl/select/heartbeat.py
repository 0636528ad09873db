"""The port to whatever writes signs of life to a source, which come back through its stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

_TELLING = 10.0  # seconds from one heartbeat to the next, at most, where they tell the lag


@dataclass(frozen=True, slots=True)
class HeartbeatStatus:
    """What a `Heartbeat` did.

    Attributes:
        written: heartbeats written since the start.
        errors: attempts that failed.
        last_at: when the last one was written, seconds since 1970 UTC; 0 for never.
        error: why the last attempt failed, "" if it did not.
        hangs_at: the server on which the commit of an earlier one does not end, "" for none.
    """

    written: int = 0
    errors: int = 0
    last_at: float = 0.0
    error: str = ""
    hangs_at: str = ""


class Heartbeat(Protocol):
    """Writes to a source every few seconds, from another thread.

    Several pipelines that read one source may share what writes to it.

    A failure is counted and logged; it never stops the pipeline, since reading may well go on.
    """

    @property
    def id(self) -> int:
        """The row of ``retl.xdual`` whose writes tell the lag."""
        ...

    @property
    def interval(self) -> float:
        """Seconds from one write to the next."""
        ...

    def start(self) -> None:
        """Begin to write. May be called twice."""
        ...

    def stop(self) -> None:
        """Write no more. Waits for a write under way, but not for ever. May be called twice."""
        ...

    def status(self) -> HeartbeatStatus:
        """What was done so far."""
        ...


def shows_lag(heartbeat: Heartbeat | None) -> bool:
    """Whether heartbeats come often enough to tell how far the target is behind.

    Between two that are an hour apart nobody would see for an hour that it falls behind, nor that
    it has caught up. Then the stream's own times tell, as without heartbeats.
    """
    return heartbeat is not None and 0 < heartbeat.interval <= _TELLING
