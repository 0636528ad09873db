"""The one thing the arbiter asks of a clock."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Where elections get the time from, so that tests can decide it."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start, the same start as `Arbiter.last_contact` uses."""
        ...

    def now(self) -> float:
        """Seconds since 1970 UTC, for what an operator wants at a certain time."""
        ...
