"""When a run keeps its checkpoint, and which one it has kept last."""

from __future__ import annotations

from typing import Final

from setl.clock import Clock
from setl.model.checkpoint import Checkpoint
from setl.run.measured.pace import Stage
from setl.run.measured.progress import Progress
from setl.select.source import CheckpointStore

# A checkpoint that moved over nothing but foreign or filtered entries is stored this often.
# Storing it at once would be a change in the target's binlog, which the opposite pipeline
# reads and answers with a checkpoint of its own, for ever.
IDLE_SECONDS: Final = 1.0  # nobody waits longer to see that an idle pipeline has it all
QUIET_SECONDS: Final = 5.0  # the same where nothing was written for a while
QUIET_AFTER: Final = 30.0  # seconds without a write to the target
BUSY_SECONDS: Final = 5.0  # while batches come of which nothing is written to the target


class CheckpointWriter:
    """Keeps the checkpoints of one leadership in its store, in order.

    Crash: what was reached and not kept is read again by the next leader.

    Attributes:
        last: what is stored, as far as this run knows; None before it has begun.
    """

    def __init__(
        self, store: CheckpointStore, epoch: int, progress: Progress, clock: Clock
    ) -> None:
        """Nothing is known of what is stored.

        Args:
            store: where to keep them.
            epoch: under which.
            progress: is told how long it takes.
            clock: for the times between two of them.
        """
        self.last: Checkpoint | None = None
        self._store = store
        self._epoch = epoch
        self._progress = progress
        self._clock = clock
        self._saved_at = self._wrote_at = clock.monotonic()

    def is_stored(self, checkpoint: Checkpoint) -> None:
        """This is what is stored."""
        self.last, self._saved_at = checkpoint, self._clock.monotonic()

    def moved(self, checkpoint: Checkpoint) -> None:
        """Store where to begin instead; raises what `CheckpointStore.store` raises."""
        self._store.store(checkpoint, self._epoch)
        self.is_stored(checkpoint)

    def wrote(self) -> None:
        """Something was written to the target."""
        self._wrote_at = self._clock.monotonic()

    @property
    def quiet(self) -> bool:
        """Whether nothing was written to the target for a while."""
        return self._clock.monotonic() - self._wrote_at >= QUIET_AFTER

    def unsaved(self, reached: Checkpoint | None) -> Checkpoint | None:
        """The same, if it is not stored yet; work that went further back has to catch up."""
        if reached is None or self.last is None or reached == self.last:
            return None
        return reached if reached.order >= self.last.order else None

    def keep(self, checkpoint: Checkpoint) -> None:
        """Store it; raises what `CheckpointStore.store` raises."""
        started = self._clock.monotonic()
        self._progress.at_stage(Stage.CHECKPOINT)
        self._store.store(checkpoint, self._epoch)
        self.is_stored(checkpoint)
        self._progress.add_time("checkpoint", self._saved_at - started)

    def save_if_due(self, reached: Checkpoint | None, interval: float) -> bool:
        """Store it if it moved, and the last one is so many seconds old; was it stored?"""
        unsaved = self.unsaved(reached)
        if unsaved is None or self._clock.monotonic() - self._saved_at < interval:
            return False
        self.keep(unsaved)
        return True

    def save_if_idle(self, reached: Checkpoint | None) -> bool:
        """The same while nothing comes: seldom where nothing was written for a while.

        Otherwise sixty quiet pipelines would write sixty transactions a second to their targets,
        to say that only heartbeats have come.
        """
        return self.save_if_due(reached, QUIET_SECONDS if self.quiet else IDLE_SECONDS)
