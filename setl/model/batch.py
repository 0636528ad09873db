"""Batches: what Select hands on, and how each of them ended."""

from __future__ import annotations

from dataclasses import dataclass

from setl.errors import SetlError
from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry, EntryKind


@dataclass(frozen=True, slots=True)
class Batch:
    """A stretch of the source stream.

    Attributes:
        id: counts from 1 under each epoch.
        epoch: the leadership that selected it.
        entries: the stretch, in source order.
        checkpoint: where the pipeline stands once the batch is applied.
        rows: number of row changes in it, an estimate for binlog sources.
        size: bytes of all payloads.
        opened: monotonic time at which its first entry came, 0 if that is not known.
        closed: monotonic time at which it was closed.
        acts: whether actions of foreign keys run with it, see `setl.select.key_turns`.
    """

    id: int
    epoch: int
    entries: list[Entry]
    checkpoint: Checkpoint
    rows: int
    size: int
    opened: float = 0.0
    closed: float = 0.0
    acts: bool = False

    @property
    def stands_alone(self) -> bool:
        """Whether it is applied alone, and the checkpoint is stored before it and behind it."""
        return self.acts or any(entry.kind is EntryKind.DDL for entry in self.entries[:1])


@dataclass(frozen=True, slots=True)
class BatchTermin:
    """The outcome of a batch: an ack, or with an error a rollback of everything unacked (I6).

    Attributes:
        batch_id: which batch.
        epoch: under which leadership; a termin of another epoch is refused.
        error: why it has to be rolled back; None is an ack.
    """

    batch_id: int
    epoch: int
    error: SetlError | None = None

    @property
    def acked(self) -> bool:
        """Whether the batch was applied."""
        return self.error is None
