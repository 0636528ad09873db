"""How far a target is behind its source, which grows for as long as nothing newer arrives."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence

from setl.clock import Clock

_SAMPLES = 4096  # over an hour of heartbeats at one a second
_SLACK = 1.0  # seconds between two signs of life where no heartbeats are written
# Seconds for which a sample says more than that nothing waits: a topic whose writer is behind has
# heartbeats of its own at shorter intervals.
_HOLDS = 10.0


class LagTracker:
    """Keeps what was measured, and adds the time since. Not thread-safe: its owner has a lock.

    Everything committed up to some time at the source is applied; lag is how long ago that is.
    It is measured when a heartbeat arrives. Until the next one is due it stays as it is; then it
    grows, whatever the reason for which none arrives.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._samples: deque[float] = deque()
        # The same, the smallest first. Sorting them for each look takes the longer, the longer a
        # pipeline runs: after an hour a hundredth of a core on a node with sixty.
        self._ordered: list[float] = []
        self._lag: float | None = None
        self._since = self._sampled_at = 0.0
        self._slack = _SLACK

    def every(self, seconds: float) -> None:
        """Heartbeats are written this often."""
        self._slack = max(seconds, _SLACK)

    def begin(self) -> None:
        """A leadership begins: from now on something may wait."""
        if self._lag is None:
            self._note(0.0)

    def resumed(self, behind: float) -> None:
        """What is applied was committed so many seconds ago; a sample says it better."""
        if not self._samples:
            self._note(max(0.0, behind))

    def sample(self, seconds: float) -> None:
        """What was committed so many seconds ago has just been applied."""
        new = max(0.0, seconds)
        if len(self._samples) == _SAMPLES:
            del self._ordered[bisect_left(self._ordered, self._samples.popleft())]
        self._samples.append(new)
        insort(self._ordered, new)
        self._note(new)
        self._sampled_at = self._since

    def caught_up(self) -> None:
        """Nothing waits, as far as one can see without heartbeats."""
        holds = self._samples and self._clock.monotonic() < self._sampled_at + _HOLDS
        self._note(self._samples[-1] if holds else 0.0)

    def forget(self) -> None:
        """Somebody else leads."""
        self._lag = None

    def lag(self) -> float | None:
        """Seconds; None if nothing was led here."""
        if self._lag is None:
            return None
        return self._lag + max(0.0, self._clock.monotonic() - self._since - self._slack)

    def ordered(self) -> Sequence[float]:
        """The samples that are kept, the smallest first; valid until the next sample."""
        return self._ordered

    def _note(self, lag: float) -> None:
        self._lag, self._since = lag, self._clock.monotonic()


def percentile(ordered: Sequence[float], fraction: float) -> float | None:
    """The value below which `fraction` of the ordered samples lie; None without samples."""
    if not ordered:
        return None
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))]
