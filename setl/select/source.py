"""The ports of Select: where entries come from, and where checkpoints are stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry
from setl.model.position import Position

PassesBy = Callable[[Sequence[Entry]], bool]
"""Takes entries that a pipeline only has to know of; False if they are to be read as others are."""


def absorbs_nothing(_: Sequence[Entry]) -> bool:
    """A `PassesBy` for whoever reads everything."""
    return False


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why a stream does not go on although there is more in it.

    Attributes:
        what: what it waits for, since when, and how much waits with it.
        hint: what a person can do.
        seconds: for how long it has waited, at least.
        transaction: whether it is the end of a transaction; else the server does not deliver.
    """

    what: str
    hint: str
    seconds: float
    transaction: bool


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
            PositionLostError: the configured position does not exist; names what does.
        """
        ...

    def locate(self, checkpoint: Checkpoint) -> Checkpoint:
        """Where to go on from a stored checkpoint, at the servers that answer now.

        Servers behind an address can be replaced while nobody reads, and a position of the same
        name may be another position then. This compares the position with what the checkpoint knows
        of it, before `open`, and finds it again if that can be done without a gap. A source
        that is open has to be closed before: one server may serve one reader of a name only.

        Order: a checkpoint that moved has a higher generation, so what follows is newer than
        all before, though its positions may be lower. Idempotence: nothing is changed at the
        source; asked again, it says the same, with the same generation. Crash: the caller
        stores a moved checkpoint before it opens the source. If it dies in between, the next
        leader gets the same from the old checkpoint; if after, the stored one is of the server
        that answers, and comes back as it is.

        Returns:
            `checkpoint` itself where it still holds; else one made by `Checkpoint.moved_to`,
            from which everything not applied follows, and perhaps a part of what is.

        Raises:
            TransientError: the source cannot be reached.
            PositionLostError: what follows the checkpoint is not there, or it is unknown
                where; says why, and the hints.
            FatalError: the checkpoint is of another kind of source.
            ConfigurationError: the source refuses the account.
        """
        ...

    def open(self, position: Position) -> None:
        """Go to a transaction boundary; `read` goes on from there. May be called again.

        Raises:
            TransientError: the source cannot be reached. (Or it was replaced since `locate`;
                as far as opening does not show that, `read` raises it before any entry.)
            PositionLostError: the source no longer has this position.
            ConfigurationError: the source refuses the account or logs in another format.
        """
        ...

    def read(
        self, limit: int, timeout: float, absorbs: PassesBy = absorbs_nothing
    ) -> Sequence[Entry]:
        """Wait up to `timeout` seconds for entries, then return at most about `limit` of them.

        Returns early with what there is; an empty sequence means that the stream is idle, or that
        all was absorbed. After an error the source must be opened again.

        Args:
            limit: about as many entries at most.
            timeout: seconds to wait.
            absorbs: a source that receives entries in a thread of its own may offer them to this
                first, in that thread, while `read` waits and nothing else does; then no other
                thread has to wake up for them. It does not block.

        Raises:
            TransientError: the connection was lost, or the source was replaced: the checkpoint
                has to be located again.
            PositionLostError: what comes next was removed before it was read.
            FatalError: the stream holds something that cannot be replicated.
        """
        ...

    def latest(self) -> Position:
        """The end of the stream as of now, on a connection of its own: thread-safe.

        What nobody is shown before an open transaction ends is part of the stream.
        """
        ...

    def sizes(self) -> Sequence[tuple[int, int]]:
        """The binlog files that there are, their numbers and sizes, likewise; none of a topic."""
        ...

    def behind(self) -> int | None:
        """Records between what was read last and the end of the stream, as the last answer told.

        Asks nobody, so it costs nothing: thread-safe. None if the source does not tell, or has
        not been read since it was opened.
        """
        ...

    def close(self) -> None:
        """End reading: drop connections and threads; `open` may follow.

        Safe to call twice, from any thread.
        """
        ...

    def release(self) -> None:
        """Close, and give up what is kept from one `open` to the next. Safe to call twice."""
        ...

    def waiting_for(self) -> str:
        """What it waits for before it can deliver anything, "" normally; from any thread."""
        ...

    def blocked(self) -> Blocked | None:
        """Why nothing comes for some time although there is more; None normally.

        From any thread. Asks nobody.
        """
        ...

    def shared(self) -> bool:
        """Whether it is read on a connection that other pipelines read, too; from any thread."""
        ...


class CheckpointStore(Protocol):
    """Where a pipeline's checkpoint is stored.

    Order: a store never goes backwards; storing an older checkpoint under the same generation
    is refused. Idempotence: storing the same checkpoint twice is one store. Crash: a store is
    atomic; afterwards either the old or the new checkpoint is there.
    """

    def load(self) -> Checkpoint | None:
        """The stored checkpoint, None if there is none yet. Raises TransientError."""
        ...

    def age(self) -> float | None:
        """Seconds since what `load` found last was stored, as of then; None if nobody knows."""
        ...

    def store(self, checkpoint: Checkpoint, epoch: int) -> None:
        """Keep a checkpoint on behalf of the leadership `epoch`.

        Raises:
            FencedError: a newer leadership exists; nothing was stored.
            FatalError: it lies before the stored one.
            TransientError: the store cannot be reached; it may or may not be stored.
        """
        ...

    def close(self) -> None:
        """Drop connections; the next call opens others. Safe to call twice."""
        ...


class ReplaceableStore(CheckpointStore, Protocol):
    """A store whose content can be replaced, whatever state it is in."""

    def replace(self, checkpoint: Checkpoint, epoch: int) -> None:
        """Store over whatever is there, which may not be readable; raises what `store` raises."""
        ...
