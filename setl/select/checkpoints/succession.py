"""What a leader may store where nothing but an epoch beside the checkpoint keeps others out."""

from __future__ import annotations

from typing import NamedTuple

from setl.errors import FencedError
from setl.model.checkpoint import Checkpoint, check_progress


class StoredCheckpoint(NamedTuple):
    """What a store holds.

    Attributes:
        checkpoint: the checkpoint, None if only an epoch is known.
        epoch: the leadership that stored it, 0 if it was not one of setl.
    """

    checkpoint: Checkpoint | None
    epoch: int


class Succession:
    """Decides, store by store, what replaces what is kept.

    A leader that was replaced may store once more after its successor has loaded: it does not
    know yet that it is over. What it stored it had applied, so its successor, which began from
    an older checkpoint, keeps the newer one until it is past it.

    Belongs to one thread, and to one leadership.
    """

    def __init__(self) -> None:
        self._known: StoredCheckpoint | None = None
        self._inherited: Checkpoint | None = None

    def loaded(self, stored: StoredCheckpoint | None) -> None:
        """This is what was there when the leadership began, or after its own last store."""
        self._known = stored

    def decide(
        self, stored: StoredCheckpoint | None, checkpoint: Checkpoint, epoch: int
    ) -> Checkpoint:
        """What to store instead of `stored` when the leadership `epoch` is at `checkpoint`.

        Raises:
            FencedError: a higher epoch has stored.
            FatalError: `checkpoint` lies before what is kept.
        """
        if stored is None:
            return checkpoint
        if stored.epoch > epoch:
            raise FencedError(f"epoch {epoch} is over, epoch {stored.epoch} is active")
        if stored.checkpoint is None:
            return checkpoint
        if 0 < stored.epoch < epoch and stored != self._known:
            self._inherited = stored.checkpoint
        inherited = self._inherited
        if inherited is not None and checkpoint.order < inherited.order:
            return inherited
        check_progress(stored.checkpoint, checkpoint)
        return checkpoint
