"""The ports of Select: where entries come from, and where checkpoints are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry
from setl.model.position import Position


class Source(Protocol):
    """A stream of changes, read by one thread.

    Order: entries come in the order of the source. Idempotence: a source keeps nothing
    outside itself; opened twice at one position it delivers the same entries. Crash: nothing
    is lost by dropping a source at any time, since what was applied is known from the
    checkpoint alone.
    """

    def initial(self) -> Position:
        """Where a pipeline without a checkpoint starts, as its configuration says.

        Raises:
            TransientError: the source cannot be reached.
            PositionLostError: the configured place does not exist; names what does.
        """
        ...

    def open(self, position: Position) -> None:
        """Go to a transaction boundary; `read` goes on from there. May be called again.

        Raises:
            TransientError: the source cannot be reached.
            PositionLostError: the source no longer has this position.
            ConfigurationError: the source refuses the account or logs in another format.
        """
        ...

    def read(self, limit: int, timeout: float) -> Sequence[Entry]:
        """Wait up to `timeout` seconds for entries, then return at most about `limit` of them.

        Returns early with what there is; an empty sequence means that the stream is idle.
        After an error the source must be opened again.

        Raises:
            TransientError: the connection was lost.
            PositionLostError: what comes next was removed before it was read.
            FatalError: the stream holds something that cannot be replicated.
        """
        ...

    def latest(self) -> Position:
        """The end of the stream as of now, on a connection of its own: thread-safe."""
        ...

    def close(self) -> None:
        """Drop connections and threads. Safe to call twice, from any thread."""
        ...


class CheckpointStore(Protocol):
    """Where a pipeline's checkpoint is kept.

    Order: a store never goes backwards; storing an older checkpoint under the same generation
    is refused. Idempotence: storing the same checkpoint twice is one store. Crash: a store is
    atomic; afterwards either the old or the new checkpoint is there.
    """

    def load(self) -> Checkpoint | None:
        """The stored checkpoint, None if there is none yet. Raises TransientError."""
        ...

    def store(self, checkpoint: Checkpoint, epoch: int) -> None:
        """Keep a checkpoint on behalf of the leadership `epoch`.

        Raises:
            FencedError: a newer leadership exists; nothing was stored.
            FatalError: it lies before the stored one.
            TransientError: the store cannot be reached; it may or may not be stored.
        """
        ...
