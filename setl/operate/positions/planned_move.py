"""What moving a pipeline would change, before somebody decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from arbiter.arbiter import Arbiter
from arbiter.values import PipelineId
from setl.model.checkpoint import Checkpoint
from setl.model.position import KafkaPosition, Position
from setl.operate.positions.reposition import moved_checkpoint
from setl.operate.positions.stored import read_stored
from setl.systems.registry import system_of

if TYPE_CHECKING:
    from setl.channel.file import Pipeline
    from setl.select.start_point import StartPoint


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """What would be changed.

    Attributes:
        found: the position, as the source has it.
        before: what is stored, None if nothing is or it cannot be read.
        after: what would be stored.
        damage: why what is stored cannot be read, "" if it can or nothing is.
    """

    found: Position
    before: Checkpoint | None
    after: Checkpoint
    damage: str

    @property
    def words(self) -> str:
        """From where to where, for people."""
        return f"{checkpoint_words(self.before)} → {checkpoint_words(self.after)}"


def plan_move(
    pipeline: Pipeline, ident: PipelineId, start_point: StartPoint, *, arbiter: Arbiter, nid: str
) -> PlannedMove:
    """Look for a position at the source, and at what is stored; changes nothing.

    Args:
        pipeline: from a channel file with its references resolved.
        ident: its full name.
        start_point: see `SourceSystem.parse_start_point`.
        arbiter: a session.
        nid: as whom to ask the source.

    Raises:
        SetlError: the source does not have the position or does not answer, or the store does not.
    """
    found = system_of(pipeline.source).find_position(pipeline, ident.channel, nid, start_point)
    before = read_stored(pipeline, ident.channel, arbiter)
    after = moved_checkpoint(before.checkpoint, found, pipeline.generation, used=before.generation)
    return PlannedMove(found, before.checkpoint, after, before.damage)


def checkpoint_words(checkpoint: Checkpoint | None) -> str:
    """A checkpoint for people."""
    if checkpoint is None:
        return "no position"
    return f"{checkpoint}, generation {checkpoint.generation}"


def exact_position(position: Position) -> str:
    """A position that was found, as `SourceSystem.parse_start_point` takes it."""
    return str(position.offset) if isinstance(position, KafkaPosition) else str(position)
