"""Histograms: how often what was measured lay in which range. Two of them can be added."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

STATEMENT_SECONDS = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip
"""Upper bounds for statements and requests: from half a millisecond to a wait for a lock."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts by range, and the sum of all values.

    Attributes:
        bounds: the ranges' upper bounds, which belong to them; growing. Empty if nothing was
            counted yet, which can be added to any histogram.
        counts: values in each range, not those below it; one more than bounds, for all above.
        total: sum of the values, in their unit.
    """

    bounds: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()
    total: float = 0.0

    @staticmethod
    def of(values: Iterable[float], bounds: tuple[float, ...]) -> Histogram:
        """Count values."""
        counts, total = [0] * (len(bounds) + 1), 0.0
        for value in values:
            counts[bisect_left(bounds, value)] += 1
            total += value
        return Histogram(bounds, tuple(counts), total)

    @property
    def count(self) -> int:
        """How many values were counted."""
        return sum(self.counts)

    def __add__(self, other: Histogram) -> Histogram:
        """Both together.

        Raises:
            ValueError: their bounds differ.
        """
        if not other.counts:
            return self
        if not self.counts:
            return other
        if self.bounds != other.bounds:
            raise ValueError("histograms with other bounds cannot be added")
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return Histogram(self.bounds, counts, self.total + other.total)
