"""The checkpoint of a pipeline whose source is shared with other members of a consumer group."""

from __future__ import annotations

from typing import Protocol

from setl.errors import TransientError
from setl.model.checkpoint import Checkpoint
from setl.select.source import CheckpointStore


class Turns(Protocol):
    """Membership of a group that deals turns out: who may read the source now."""

    def join(self) -> None:
        """Become a member, if this process is none. Raises SetlError."""
        ...

    def wait(self, timeout: float) -> object:
        """Wait for a turn, `timeout` seconds at most; None if none has come."""
        ...

    def note(self) -> None:
        """Remember the present turn, if there is one."""
        ...

    @property
    def noted(self) -> object:
        """The turn that was remembered, None if there was none."""
        ...

    @property
    def in_noted_turn(self) -> bool:
        """Whether that turn still lasts."""
        ...


class TurnStore:
    """Keeps a checkpoint only for the turn in which it was loaded.

    Outside a turn nothing is read, so there is nothing to keep but a position to begin, which is
    looked for again when the turn comes.
    """

    def __init__(self, store: CheckpointStore, group: Turns, timeout: float) -> None:
        """Nothing is asked yet.

        Args:
            store: keeps the checkpoint.
            group: which this node joins before it loads.
            timeout: seconds to wait for the first turn. Without, the group would give it right
                after the checkpoint was loaded, which would have to be loaded again.
        """
        self._store = store
        self._group = group
        self._timeout = timeout
        self._first = True

    def load(self) -> Checkpoint | None:
        """See `CheckpointStore.load`; raises what joining the group raises, too."""
        self._group.join()
        self._group.wait(self._timeout if self._first else 0)
        self._first = False
        self._group.note()
        return self._store.load()

    def age(self) -> float | None:
        """See `CheckpointStore.age`."""
        return self._store.age()

    def store(self, checkpoint: Checkpoint, epoch: int) -> None:
        """See `CheckpointStore.store`.

        Raises:
            TransientError: the turn is over; another member goes on from what was stored last.
        """
        if self._group.noted is None:
            return
        if not self._group.in_noted_turn:
            raise TransientError(
                "the group has taken the partition from this node, and with it the checkpoint"
            )
        self._store.store(checkpoint, epoch)

    def close(self) -> None:
        """See `CheckpointStore.close`."""
        self._store.close()
