"""How many rows one load may take: as many as the target writes in a short while.

A load cannot be interrupted half-way and nothing of it counts before its end, so its size is a
length of time: the time after which a take-over shows its first rows (I4), a stop takes effect,
and lag is seen to shrink. What a target can do in that time differs a hundredfold between a quick
table and a busy index, so it is measured.
"""

from __future__ import annotations

from setl.model.loaded import Loaded

SECONDS = 2.0
"""What one load should take at most."""

_GROWTH = 4


class LoadSize:
    """The limit of the next load, in rows. The first load is one batch."""

    def __init__(self, most: int, *, seconds: float = SECONDS, first: int = 1) -> None:
        """Start small.

        Args:
            most: never allow more rows than this; memory is bounded by it (I20).
            seconds: what a load should take at most.
            first: rows of the first load.
        """
        self._most = most
        self._seconds = seconds
        self._rows = first

    @property
    def rows(self) -> int:
        """Rows after which no further batch joins a load; one batch always may."""
        return self._rows

    def loaded(self, rows: int, seconds: float) -> None:
        """A load of so many rows took so long.

        At most four times as many with each load, since the first ones of a leadership say
        little.
        """
        if not rows:
            return
        affordable = int(rows / max(seconds, 0.001) * self._seconds)
        self._rows = max(1, min(self._most, affordable, _GROWTH * max(self._rows, rows)))


def spent_on_rows(report: Loaded, tasks: int, seconds: float) -> float:
    """How much of the time of a load more rows would make longer, in seconds.

    What Spark needs to begin and end a load does not grow with its rows. In the first loads of a
    JVM it is most of the time.

    Args:
        report: what the tasks did.
        tasks: how many of them ran at once.
        seconds: how long the load took in all.
    """
    return max((report.seconds + report.transform_seconds) / tasks, seconds / 3)
