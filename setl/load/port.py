"""The ports of Load: writing one task's share of a batch, and taking a target over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from setl.model.change import TargetChanges


@dataclass(frozen=True, slots=True)
class LoadTicket:
    """On whose behalf a task writes. Travels with the data, never in a global.

    Attributes:
        channel: the channel's name.
        pipeline: the pipeline's name.
        nid: the node.
        epoch: its leadership of the pipeline.
        batch_id: the batch.
        slot: number of this task among those that write the batch at the same time, from 0.
        through: version (see `document_version`) of the end of what is loaded; a sink that can
            keeps it with the rows, so that a later leader can tell what it applies again.
    """

    channel: str
    pipeline: str
    nid: str
    epoch: int
    batch_id: int
    slot: int
    through: int = 0

    @property
    def pipeline_key(self) -> str:
        """``channel/pipeline``, what the tables of ``retl`` call a pipeline."""
        return f"{self.channel}/{self.pipeline}"


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a sink did with one task's share.

    Attributes:
        upserts: rows or documents written.
        deletes: deletes sent.
        stale: writes the target refused because it holds something newer (Elasticsearch 409).
        seconds: time spent in the target.
    """

    upserts: int = 0
    deletes: int = 0
    stale: int = 0
    seconds: float = 0.0


class Sink(Protocol):
    """Writes changes into one target. Lives in a Spark worker and outlives tasks.

    Order: the caller loads batches one after another; within a batch the sinks of several
    tasks write at the same time, each with keys of its own. Idempotence: applying the same
    changes again, or an older stretch followed by all that came after it, ends in the same
    state. Crash: in MySQL all of one call is there or nothing; in Elasticsearch a part may
    be, and applying it again completes it.
    """

    def apply(self, ticket: LoadTicket, changes: Sequence[TargetChanges]) -> Loaded:
        """Write, and return only when the target has it for good.

        Raises:
            FencedError: a newer leadership exists; nothing was written by this call.
            TransientError: it may work when the batch is tried again.
            DataError: the target refuses a row or document for good; says which and why.
            ConfigurationError: a table, column, index or privilege is missing.
        """
        ...

    def close(self) -> None:
        """Drop the connection. Safe to call twice."""
        ...


class Fence(Protocol):
    """Keeps older leaderships from writing into a target (I2)."""

    def end_writers(self, epoch: int) -> None:
        """End what still writes on behalf of `epoch`, for a leader whose session may be over.

        The fence would hold those writers too, once a successor has raised it. This ends them
        before, so that nothing is written by a node that knows it must not write any more (I3),
        however long its cancelled tasks take to end. May be called more than once, from any
        thread; does nothing for a target that has no connections to end.

        Raises:
            TransientError: the target does not answer, within the limit for connecting.
        """
        ...

    def raise_to(self, epoch: int, nid: str) -> None:
        """Make `epoch` the only one that may write; called before the first entry is selected.

        Returns when no transaction of an older epoch is open or can begin. Calling it again
        with the same epoch changes nothing. After a crash in the middle either the old or
        the new epoch holds; both are safe, since the old leader is gone or still alone.

        Raises:
            FencedError: the target already knows a higher epoch.
            TransientError: the target cannot be reached or stale transactions do not end.
            ConfigurationError: the fence table or a privilege is missing.
        """
        ...
