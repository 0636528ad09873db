"""Which of the batches that wait are applied together, and which need no run to be applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from setl.clock import Clock
from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry
from setl.run.measured.figures import RunState
from setl.run.measured.progress import Progress
from setl.run.work import Work
from setl.select.reader import SelectLoop
from setl.select.unacked import AbsorbsHeartbeats

_POLL_SECONDS = 0.2
# A source that has no row for so long has no more of what was applied before. Heartbeats do not
# count: a relay writes them while its source is quiet, too.
_REPEATS_SECONDS = 3.0


class Backlog:
    """Takes batches from Select, several at a time where they have piled up. For one thread."""

    def __init__(
        self, select: SelectLoop, work: Work, clock: Clock, interrupted: Callable[[], bool]
    ) -> None:
        """Nothing is taken yet.

        Args:
            select: whose batches they are.
            work: says how much it applies at once.
            clock: for waiting.
            interrupted: whether to wait for nothing any more.
        """
        self._select = select
        self._work = work
        self._clock = clock
        self._interrupted = interrupted
        self._set_aside: Batch | None = None

    def forget(self) -> None:
        """Give up what was taken and not handed on: reading restarts."""
        self._set_aside = None

    def next_batch(self, timeout: float, passing: AbsorbsHeartbeats) -> Batch | None:
        """The next batch, None if none comes in time; see `SelectLoop.next_batch`."""
        batch, self._set_aside = self._set_aside, None
        return batch or self._select.next_batch(timeout, passing)

    def with_what_waits(self, first: Batch) -> list[Batch]:
        """The batch and those waiting behind it: what piled up is applied together.

        So loads grow with the backlog and stay small without one. What stands alone, such
        as DDL (I16), is set aside until everything before it is acknowledged.

        What was applied before comes in one load, as far as memory allows (I20). In
        parts it would bring back, for a moment, rows as they were; and where the target has
        unique keys, such a row may conflict with one that came later.
        """
        batches, rows = [first], first.rows
        row_came = self._clock.monotonic()
        while not first.stands_alone:
            again = batches[-1].checkpoint.repeats
            if not again and rows >= self._work.room:
                break
            following = self._next_again(row_came) if again else self._next_now(rows)
            if following is None:
                break
            if following.stands_alone:
                self._set_aside = following
                break
            batches.append(following)
            if following.rows:
                rows += following.rows
                row_came = self._clock.monotonic()
        return batches

    def _next_now(self, rows: int) -> Batch | None:
        """What can join a load of so many rows: a batch that waits, or what is complete by now."""
        return self._select.next_batch(0) or self._select.complete_so_far(rows)

    def _next_again(self, row_came: float) -> Batch | None:
        """The next batch of what was applied before; None if it does not come, or has no room."""
        deadline = row_came + _REPEATS_SECONDS
        while self._clock.monotonic() < deadline and not self._interrupted():
            batch = self._select.next_batch(_POLL_SECONDS)
            if batch is not None or self._select.status().held_back:
                return batch
        return None


class HeartbeatAbsorber(AbsorbsHeartbeats):
    """Lets the thread that reads move a waiting run on over heartbeats, without waking it up.

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
