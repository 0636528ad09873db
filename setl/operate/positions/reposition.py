"""Moving a stopped pipeline to another position of its source."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from arbiter.arbiter import Arbiter
from arbiter.errors import NotFound
from arbiter.requests import Refused
from arbiter.values import ChannelState, Facts, LeaderLock, PipelineId
from setl.errors import ConfigurationError
from setl.model.checkpoint import Checkpoint
from setl.model.position import GENERATION_BITS, KafkaPosition, Position
from setl.operate.positions.stored import read_stored
from setl.run.checkpoints.stores import store_of
from setl.systems.registry import system_of

if TYPE_CHECKING:
    from setl.channel.file import Pipeline
    from setl.select.start_point import StartPoint


@dataclass(frozen=True, slots=True)
class Repositioned:
    """What a move has changed.

    Attributes:
        before: what was stored, None if nothing was or it could not be read.
        after: what is stored now.
        epoch: the leadership that was taken to store it.
    """

    before: Checkpoint | None
    after: Checkpoint
    epoch: int


def objection_to_move(facts: Facts, ident: PipelineId) -> str:
    """Why a pipeline cannot be moved now; "" if it can."""
    channel = facts.channels.get(ident.channel)
    if channel is None:
        return "the channel is gone"
    if channel.state is not ChannelState.STOP:
        return f"the channel is set to {channel.state.value}; `setl stop {channel.name}` stops it"
    leader_lock = facts.leader_locks.get(ident)
    if leader_lock is not None:
        return f"{leader_lock.nid} still leads, {leader_lock.leadership}; wait until it has stopped"
    return ""


def move(
    pipeline: Pipeline, ident: PipelineId, position: Position, *, arbiter: Arbiter, nid: str
) -> Repositioned:
    """Store another position as the checkpoint, as a leader of its own.

    Meanwhile this process holds the leader lock, and the target's fence is raised to its epoch. So
    no node can lead, and one that led before and was only asleep cannot store its own checkpoint
    over this one.

    Args:
        pipeline: from a channel file with its references resolved.
        ident: its full name.
        position: where it is to go on, see `SourceSystem.find_position`.
        arbiter: a session.
        nid: as whom to lead.

    Raises:
        Refused: the channel is not stopped, or a node leads.
        FencedError: the target knows a higher epoch.
        SetlError: the target does not answer, or refuses.
    """
    with _leading(arbiter, ident, nid) as leader_lock:
        system_of(pipeline.target).fence(str(ident)).raise_to(leader_lock.epoch, nid)
        stored = read_stored(pipeline, ident.channel, arbiter)
        after = moved_checkpoint(
            stored.checkpoint, position, pipeline.generation, used=stored.generation
        )
        store = store_of(pipeline, ident.channel, arbiter, nid)
        try:
            if stored.damage:
                store.replace(after, leader_lock.epoch)
            else:
                store.load()
                store.store(after, leader_lock.epoch)
        finally:
            store.close()
        return Repositioned(stored.checkpoint, after, leader_lock.epoch)


def moved_checkpoint(
    before: Checkpoint | None, position: Position, wanted: int, *, used: int = 0
) -> Checkpoint:
    """The checkpoint at another position, newer than all that is stored.

    Args:
        before: what is stored.
        position: the position.
        wanted: the channel file's generation. The next start must not take a higher one there
            for a request to start over: moving has done that.
        used: the highest generation that is known to be in use, also where `before` is lost.

    Raises:
        ConfigurationError: there is no higher generation.
    """
    if before is None and not used:
        return Checkpoint.first(position, wanted)
    before = before or Checkpoint(position, generation=used, requested=wanted)
    moved = before.moved_to(position)
    generation = max(moved.generation, wanted, used + 1)
    if generation >= 1 << GENERATION_BITS:
        raise ConfigurationError(
            f"the pipeline has used up its {1 << GENERATION_BITS} generations",
            hint="Copy the channel under another name, with its tables loaded again",
        )
    requested = max(moved.requested, wanted)
    # Whoever moves it answers for what the target has.
    return replace(moved, generation=generation, requested=requested, targets=())


@contextmanager
def _leading(arbiter: Arbiter, ident: PipelineId, nid: str) -> Generator[LeaderLock]:
    """Hold the leader lock of a stopped pipeline."""
    why = objection_to_move(arbiter.facts(), ident)
    if why:
        raise Refused(why)
    try:
        leader_lock = arbiter.leader_locks.campaign(ident, nid)
    except NotFound as error:
        raise Refused(str(error)) from error
    if leader_lock.session != arbiter.session.session_id():
        raise Refused(f"{leader_lock.nid} leads, {leader_lock.leadership}")
    try:
        # Somebody may have started the channel since it was looked at. From here on, a node
        # that would lead waits until this leader lock is gone, and reads what is stored then.
        state = arbiter.channels.one(ident.channel).state
        if state is not ChannelState.STOP:
            raise Refused(f"the channel is set to {state.value} by now")
        yield leader_lock
    finally:
        arbiter.leader_locks.release(ident, leader_lock)


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
