"""How many rows a second a pipeline applies."""

from __future__ import annotations

from collections import deque

from setl.clock import Clock

_WINDOW = 10.0  # seconds over which rows a second are averaged


class RowRate:
    """Counts the rows of the last seconds. Not thread-safe: its owner has a lock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rows: deque[tuple[float, int]] = deque()

    def add(self, rows: int) -> None:
        """So many were applied now."""
        if rows:
            self._rows.append((self._clock.monotonic(), rows))

    def per_second(self) -> float:
        """On average over the last ten seconds."""
        horizon = self._clock.monotonic() - _WINDOW
        while self._rows and self._rows[0][0] < horizon:
            self._rows.popleft()
        return sum(rows for _, rows in self._rows) / _WINDOW
