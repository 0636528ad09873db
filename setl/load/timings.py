"""Measures how long a target takes for each statement or request."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from setl.clock import Clock
from setl.model.histogram import STATEMENT_SECONDS, Histogram


class Timings:
    """Collects times until somebody takes them. Several threads may measure at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seconds: list[float] = []

    @contextmanager
    def one(self) -> Generator[None]:
        """Measure a statement or a request, one that fails too."""
        started = self._clock.monotonic()
        try:
            yield
        finally:
            self._seconds.append(self._clock.monotonic() - started)

    def taken(self) -> Histogram:
        """What was measured since the last time that this was called."""
        seconds, self._seconds = self._seconds, []
        return Histogram.of(seconds, STATEMENT_SECONDS) if seconds else Histogram()
