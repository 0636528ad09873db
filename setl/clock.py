"""The clock that code is given; nothing reads the system's clock directly."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells code the time; tests pass their own."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes backwards. For deadlines."""
        ...

    def now(self) -> float:
        """Seconds since 1970-01-01 UTC. For people and for lag, never for deadlines."""
        ...


class SystemClock:
    """The clocks of this machine."""

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        return time.monotonic()

    def now(self) -> float:
        """See `Clock.now`."""
        return time.time()
