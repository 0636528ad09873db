"""Compares ranges; those that differ are compared again before that counts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from setl.bulk.range_comparison import RangeComparer, RangeOutcome
from setl.bulk.verdict import TableVerdict
from setl.clock import Clock
from setl.errors import TransientError
from setl.model.change import Row
from setl.run.verification.ambiguity import seen_twice, stood_still

_LOOKS = 3  # of a range in which something else differs each time


@dataclass(frozen=True, slots=True)
class ComparedRange:
    """One look at a range.

    Attributes:
        outcome: what both sides say; of what differs, only what is beyond doubt.
        seconds: how long it took.
        sure: whether it counts; else the range is to be compared again in a while.
    """

    outcome: RangeOutcome
    seconds: float
    sure: bool


@dataclass(frozen=True, slots=True)
class _Ambiguity:
    after: Row | None
    rows: int
    verdict: TableVerdict
    looks: int


class RangeComparison:
    """Looks at one range after another. Not thread-safe."""

    def __init__(
        self,
        opposite: Callable[[threading.Event], None] | None,
        stopping: threading.Event,
        clock: Clock,
    ) -> None:
        """Nothing is compared yet.

        Args:
            opposite: waits until the other direction has brought what the target has; None where
                there is none.
            stopping: ends that wait.
            clock: for times.
        """
        self._opposite = opposite
        self._stopping = stopping
        self._clock = clock
        self._ambiguity: _Ambiguity | None = None

    def forget(self) -> None:
        """What the last look saw is of no use any more."""
        self._ambiguity = None

    def look(self, comparer: RangeComparer, after: Row | None, rows: int) -> ComparedRange:
        """Compare a range.

        Args:
            comparer: compares it.
            after: see `RangeComparer.compare`.
            rows: likewise; a range that is compared again has as many as before.

        Raises:
            TransientError: nobody can tell now what differs.
            SetlError: what comparing raises.
        """
        ambiguity = self._ambiguity
        if ambiguity is not None and ambiguity.after != after:
            ambiguity = None
        if ambiguity is not None and self._opposite is not None:
            self._opposite(self._stopping)
        started = self._clock.monotonic()
        outcome = comparer.compare(after, ambiguity.rows if ambiguity else rows)
        seconds = self._clock.monotonic() - started
        verdict = outcome.verdict
        self._ambiguity = None
        if not verdict.differences:
            return ComparedRange(outcome, seconds, sure=True)
        if verdict.note:
            raise TransientError(f"what differs may be on its way: {verdict.note}")
        looks, known = 1, verdict
        if ambiguity is not None:
            looks = ambiguity.looks + 1
            judge = seen_twice if self._opposite is None else stood_still
            known = judge(ambiguity.verdict, verdict)
            outcome = replace(outcome, verdict=known)
        # What was not there the first time may be in doubt as that was.
        sure = ambiguity is not None and (
            known.differences >= verdict.differences or looks >= _LOOKS
        )
        if not sure:
            self._ambiguity = _Ambiguity(
                after, ambiguity.rows if ambiguity else rows, verdict, looks
            )
        return ComparedRange(outcome, seconds, sure)
