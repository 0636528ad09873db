"""How long to wait before trying again."""

from __future__ import annotations

import random


class Backoff:
    """Doubles from `first` to `longest` seconds, with jitter; a success starts it again.

    The jitter keeps several pipelines that lost the same server from coming back in step.
    """

    def __init__(
        self,
        source: random.Random,
        first: float = 0.2,
        longest: float = 10.0,
        failures: int = 0,
    ) -> None:
        """Go on from so many failures in a row."""
        self._random = source
        self._first = first
        self._longest = longest
        self._failures = failures

    @property
    def failures(self) -> int:
        """Failures since the last success."""
        return self._failures

    def failed(self) -> float:
        """Count a failure; returns the seconds to wait."""
        # 2.0**1100 overflows, so the exponent has a bound of its own.
        limit = min(self._longest, self._first * 2.0 ** min(self._failures, 30))
        self._failures += 1
        return limit * self._random.uniform(0.5, 1.0)

    def succeeded(self) -> None:
        """Start again from `first`."""
        self._failures = 0
