"""The clock that the arbiter needs."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Tells elections the time; tests pass their own."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start, the same start as `Arbiter.last_contact` uses."""
        ...

    def now(self) -> float:
        """Seconds since 1970 UTC, for what an operator wants at a certain time."""
        ...
