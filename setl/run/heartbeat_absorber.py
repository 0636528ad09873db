"""What the thread that reads does in place of a run that waits: it lets heartbeats are absorbed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry
from setl.run.measured.figures import RunState
from setl.run.measured.progress import Progress
from setl.run.parts import Work
from setl.select.unacked import AbsorbsHeartbeats


class HeartbeatAbsorber(AbsorbsHeartbeats):
    """Heartbeats move a waiting run on without waking it up; it keeps that when it does wake up.

    Only where the run goes well. A failure before has passed once a checkpoint is stored, and lag
    is to grow while no load may start.
    """

    def __init__(
        self,
        work: Work,
        progress: Progress,
        reached: Callable[[Checkpoint], None],
    ) -> None:
        """Let pass what `work` has nothing to do for.

        Args:
            work: counts what has passed.
            progress: says how the run goes.
            reached: takes up to where everything is applied now.
        """
        self._work = work
        self._progress = progress
        self._reached = reached

    def absorbs(self, entries: Sequence[Entry]) -> bool:
        """See `AbsorbsHeartbeats.absorbs`."""
        return self._progress.state is RunState.RUNNING and self._work.absorbs(entries)

    def absorbed(self, batch: Batch) -> None:
        """See `AbsorbsHeartbeats.absorbed`."""
        self._work.absorbed(batch)
        self._reached(batch.checkpoint)
