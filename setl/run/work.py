"""What a run does with the batches it selects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint, KnownTargets
from setl.model.entry import Entry
from setl.model.table_load import TableLoad


class Applied(NamedTuple):
    """What became of batches that were applied together.

    Attributes:
        rows: row changes applied.
        wrote: whether anything was written, so that the checkpoint is worth keeping at once.
        checkpoint: where to go on, if not where the batches say; its rows are counted.
        load: how whole tables are loaded from here on, None for as before.
        again: whether what follows has to be read again, since batches are to be cut otherwise.
    """

    rows: int
    wrote: bool
    checkpoint: Checkpoint | None = None
    load: TableLoad | None = None
    again: bool = False


class Work(Protocol):
    """What a run does with the batches it selects, under one epoch.

    Order: `take_over`, `begin`, then `apply` and `acknowledged` in turns; after an error
    `take_over` again. Idempotence: batches may be applied again, from a stored checkpoint on;
    that changes nothing. Crash: whatever was applied and not stored is applied again by the
    next leader, after its `take_over` has kept this one out.

    Called by the run's thread, except `cancel`, `end_writers` and `look_at_loads`.
    """

    def take_over(self) -> None:
        """Keep former leaders out of the target, before anything is selected (I2).

        Raises:
            FencedError: a newer leadership exists.
            TransientError: the target does not answer.
        """
        ...

    def with_written(self, checkpoint: Checkpoint) -> Checkpoint:
        """A checkpoint with the transactions that the target has of what follows it.

        As far as the target told when it was taken over, see `Checkpoint.transaction`.
        """
        ...

    def forget(self, checkpoint: Checkpoint) -> None:
        """Forget what the target keeps of the pipeline, which begins here as if it never ran.

        Raises:
            SetlError: the target does not answer.
        """
        ...

    def begin(self, checkpoint: Checkpoint) -> Checkpoint:
        """Get ready to apply what follows a checkpoint; returns it, or an earlier one to read from.

        Raises:
            SetlError: the target does not fit the checkpoint, or does not answer.
        """
        ...

    @property
    def targets(self) -> KnownTargets:
        """What the checkpoint is to say of the target's tables, see `Checkpoint.targets`."""
        ...

    @property
    def room(self) -> int:
        """Rows after which no further batch joins an `apply`; one batch always may."""
        ...

    def apply(self, batches: Sequence[Batch], allowed: Callable[[], bool]) -> Applied | None:
        """Apply batches, in order; returns when the target has everything.

        Args:
            batches: at least one.
            allowed: to be asked before anything is written; waits while the arbiter is silent
                (I3), and says whether to go on.

        Returns:
            What was done; None if it was not allowed, and nothing was written.

        Raises:
            SetlError: it failed; some of it may be applied, or may yet be (see `abandoned`).
        """
        ...

    def acknowledged(self, pending: int) -> None:
        """What `apply` did last is acknowledged: count it.

        Args:
            pending: batches selected and not yet acknowledged.
        """
        ...

    def absorbs(self, entries: Sequence[Entry]) -> bool:
        """Whether nothing has to be done about whole transactions but to count that they came.

        As `absorbed`, called while the run's thread waits for a batch; neither may block.
        """
        ...

    def absorbed(self, batch: Batch) -> None:
        """Such transactions came, and are acknowledged: count them. Raises what damages them."""
        ...

    def idle(self, allowed: Callable[[], bool]) -> Checkpoint | None:
        """No batch came for a moment.

        Returns:
            Where to go on by now, None if nothing has changed.

        Raises:
            SetlError: as `apply`.
        """
        ...

    def tables_due(self, reached: Checkpoint) -> bool:
        """Whether `load_tables` has anything to do, as far as is known. Asks nobody.

        Args:
            reached: up to where everything is applied.
        """
        ...

    def look_at_loads(self) -> None:
        """What operators ask to be loaded may have changed; from any thread."""
        ...

    def load_tables(self, reached: Checkpoint, allowed: Callable[[], bool]) -> TableLoad | None:
        """Load some rows of whole tables, if any are left or asked for.

        Between two `apply`. Order: `reached` is what is applied. Idempotence: rows may be loaded
        again; they are read again, and never older than what is there. Crash: the next leader goes
        on from the stored checkpoint.

        Args:
            reached: up to where everything is applied.
            allowed: see `apply`.

        Returns:
            How far the load has come, None if it has not moved.

        Raises:
            SetlError: as `apply`.
        """
        ...

    @property
    def abandoned(self) -> bool:
        """Whether an `apply` has ended while parts of it may still be writing.

        Then its epoch is burnt: the fence tells what they write from what is applied next only
        if that is applied under a higher one.
        """
        ...

    def cancel(self) -> None:
        """Cancel the `apply` that runs; from any thread, and again and again."""
        ...

    def end_writers(self) -> None:
        """End what this epoch has open in the target; from any thread. Raises SetlError."""
        ...

    def close(self) -> None:
        """Leave no thread and no connection behind. Safe to call twice."""
        ...
