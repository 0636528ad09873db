"""Reads the stored checkpoint of a pipeline from any store, without leading."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from arbiter.arbiter import Arbiter
from arbiter.errors import Invalid
from arbiter.values import PipelineId
from setl.errors import FatalError, SetlError
from setl.model.checkpoint import Checkpoint
from setl.run.checkpoints.stores import other_stores, store_of, stored_in
from setl.select.checkpoints.arbiter import ArbiterNotes
from setl.select.checkpoints.lookup import look_up
from setl.select.checkpoints.note import epoch_of, read_note
from setl.systems.port import StoringTarget
from setl.systems.registry import system_of
from setl.systems.stored_state import StoredState

if TYPE_CHECKING:
    from setl.channel.file import ChannelFile, Pipeline


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored checkpoint and where it was found.

    Attributes:
        stored_in: the configured store: ``target``, ``zookeeper``, ``kafka`` or ``file``.
        found_in: the store that the checkpoint was found in, "" if none has one. It is another
            than the configured one until a run has taken it over from there.
        checkpoint: what is stored, None if nothing is, or nothing that can be read.
        by: epoch of the leadership that stored it, None if unknown.
        at: when, seconds since 1970 UTC; None if unknown.
        fence: epoch in the target's fence; None without a fence, or if it was never raised.
        fenced_by: node that raised the fence, "" if none did.
        damage: why what is stored cannot be read, "" if it can or nothing is.
        generation: the highest that is known to be in use, also without a checkpoint; 0 if none.
    """

    stored_in: str
    found_in: str = ""
    checkpoint: Checkpoint | None = None
    by: int | None = None
    at: float | None = None
    fence: int | None = None
    fenced_by: str = ""
    damage: str = ""
    generation: int = 0


def opened_states(
    pipeline: Pipeline, channel: str
) -> AbstractContextManager[Callable[[], StoredState]]:
    """What `read_stored` asks the target with, for who reads again and again."""
    target, key = system_of(pipeline.target), str(PipelineId(channel, pipeline.name))
    if isinstance(target, StoringTarget):
        return target.stored_states(key)
    return nullcontext(partial(target.stored_state, key))


def read_stored(
    pipeline: Pipeline,
    channel: str,
    arbiter: Arbiter,
    ask: Callable[[], StoredState] | None = None,
) -> Stored:
    """The stored checkpoint of a pipeline, as a run that began now would find it.

    Args:
        pipeline: from a channel file with its references resolved.
        channel: the channel's name.
        arbiter: keeps the checkpoint, or a note where it is.
        ask: see `opened_states`; None to connect for this look alone.

    Raises:
        TransientError: a store cannot be reached.
        ConfigurationError: a store refuses the account, or lacks a table.
    """
    ident = PipelineId(channel, pipeline.name)
    found = ask() if ask else system_of(pipeline.target).stored_state(str(ident))
    name = stored_in(pipeline)
    stored = Stored(name, fence=found.fence, fenced_by=found.fenced_by)
    if found.checkpoint is not None and name == "target":
        stored = _in_target(stored, found)
    elif name == "zookeeper":
        stored = _beside_leader_lock(stored, arbiter, ident)
    else:
        stored = _in_noted_store(stored, pipeline, arbiter, ident)
    return stored if stored.damage else _looked_up(stored, pipeline, arbiter, ident)


def _in_target(stored: Stored, found: StoredState) -> Stored:
    stored = replace(stored, by=found.stored_by, at=found.stored_at)
    return _with_checkpoint(stored, lambda: json.loads(found.checkpoint or "null"))


def _beside_leader_lock(stored: Stored, arbiter: Arbiter, ident: PipelineId) -> Stored:
    try:
        found = arbiter.positions.read(ident)
    except Invalid as error:
        return replace(stored, damage=str(error))
    if found is None:
        return stored
    value: dict[str, Any] = found[0]
    try:
        note = read_note(value)
    except FatalError as error:
        return replace(stored, damage=str(error))
    stored = replace(stored, by=epoch_of(value) or None)
    if note is not None:
        return replace(stored, generation=note.generation)
    return _with_checkpoint(stored, lambda: value["checkpoint"])


def _in_noted_store(
    stored: Stored, pipeline: Pipeline, arbiter: Arbiter, ident: PipelineId
) -> Stored:
    """In Kafka, in a file or in no row of the target; where it should be, the note says."""
    try:
        note = ArbiterNotes(arbiter, ident).read()
    except FatalError as error:
        return replace(stored, damage=str(error))
    if note is not None:
        stored = replace(stored, by=note.epoch, generation=note.generation)
    store = store_of(pipeline, ident.channel, arbiter, "")
    try:
        checkpoint = store.load()
    except FatalError as error:
        return replace(stored, damage=str(error))
    finally:
        store.close()
    return stored if checkpoint is None else _found(stored, stored.stored_in, checkpoint)


def _looked_up(stored: Stored, pipeline: Pipeline, arbiter: Arbiter, ident: PipelineId) -> Stored:
    """Look into the other stores as a run does."""
    try:
        others = other_stores(pipeline, ident.channel, arbiter, "")
        notes = ArbiterNotes(arbiter, ident)
        chosen = look_up(stored.stored_in, stored.checkpoint, others, notes, str(ident))
    except FatalError as error:
        return replace(stored, damage=str(error))
    return stored if chosen is None else _found(stored, chosen.store, chosen.checkpoint)


def _found(stored: Stored, name: str, checkpoint: Checkpoint) -> Stored:
    generation = max(stored.generation, checkpoint.generation)
    return replace(stored, found_in=name, checkpoint=checkpoint, generation=generation)


def _with_checkpoint(stored: Stored, read: Callable[[], Any]) -> Stored:
    try:
        value = read()
        if value is None:
            return stored
        return _found(stored, stored.stored_in, Checkpoint.from_json(value))
    except (FatalError, ValueError, TypeError, KeyError, AttributeError) as error:
        return replace(stored, damage=f"what is stored is no checkpoint: {error}")


def without_used_starts(file: ChannelFile, arbiter: Arbiter) -> ChannelFile:
    """The channel as runs that began now would use it, for checks.

    A server purges the file that `start` names sooner or later; a pipeline with a checkpoint has
    no need of it. Where the checkpoint cannot be looked at, `start` stays.

    Args:
        file: the channel, its references resolved.
        arbiter: keeps checkpoints, or notes where they are.
    """
    pipelines = [_without(pipeline, file.channel, arbiter) for pipeline in file.pipelines]
    return file.model_copy(update={"pipelines": pipelines})


def _without(pipeline: Pipeline, channel: str, arbiter: Arbiter) -> Pipeline:
    anywhere = pipeline.source.from_anywhere()
    if anywhere == pipeline.source:
        return pipeline
    try:
        if read_stored(pipeline, channel, arbiter).checkpoint is None:
            return pipeline
    except SetlError:  # the check itself says what is wrong with the target
        return pipeline
    return pipeline.model_copy(update={"source": anywhere})
