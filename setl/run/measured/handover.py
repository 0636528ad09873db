"""What a change of leadership costs: how long nobody applied, and what was applied again."""

from __future__ import annotations

from dataclasses import dataclass, replace

from setl.run.measured.figures import HandoverCost


@dataclass(frozen=True, slots=True)
class _Handover:
    """Up to where the leadership before had come.

    Attributes:
        through: version up to which the target may hold changes already.
        counted: whether the target tells `through`, so that what is applied again is known.
        working_at: see `HandoverCost`.
    """

    through: int
    counted: bool
    working_at: float | None = None


class HandoverTracker:
    """Follows one leadership until it has passed all that the one before may have applied.

    Not thread-safe: `setl.run.measured.progress.Progress` guards it.

    Attributes:
        cost: None until a first batch is acknowledged and everything has passed that might have
            been applied before; never changes afterwards.
    """

    def __init__(self) -> None:
        """Nothing has begun."""
        self.cost: HandoverCost | None = None
        self._handover: _Handover | None = None
        self._stored_at: float | None = None
        self._checkpoint_found = False

    def found_checkpoint(self, stored_at: float | None) -> None:
        """See `setl.run.measured.progress.Progress.found_checkpoint`."""
        if not self._checkpoint_found:
            self._checkpoint_found, self._stored_at = True, stored_at

    def took_over(self, through: int, *, counted: bool) -> None:
        """See `setl.run.measured.progress.Progress.took_over`."""
        if self._handover is None:
            self._handover = _Handover(through, counted)

    def acknowledged(
        self, passed: int, now: float, *, first_applied_at: float | None, redelivered: int
    ) -> None:
        """Everything up to a version is applied.

        Args:
            passed: that version.
            now: seconds since 1970.
            first_applied_at: see `setl.run.measured.figures.Figures`.
            redelivered: rows that were applied again so far.
        """
        handover = self._handover
        if handover is None or self.cost is not None:
            return
        working_at = handover.working_at or now
        self._handover = replace(handover, working_at=working_at)
        if passed >= handover.through:
            again = redelivered if handover.counted else None
            self.cost = HandoverCost(working_at, first_applied_at, again, self._stored_at)
