"""Where a pipeline's checkpoint is stored, as its channel file says."""

from __future__ import annotations

import logging
import os
import socket
from contextlib import closing
from typing import TYPE_CHECKING

from arbiter.arbiter import Arbiter
from arbiter.values import PipelineId
from setl.load.sink import Fence
from setl.model.checkpoint import Checkpoint
from setl.model.leadership import Leadership
from setl.run.checkpoints.compared_fence import ComparedFence
from setl.select.checkpoints.arbiter import ArbiterCheckpointStore, ArbiterNotes
from setl.select.checkpoints.file import FileCheckpointStore
from setl.select.checkpoints.folder import checkpoint_folder, container_sign, lost_with_container
from setl.select.checkpoints.lookup import LookupStore, OtherStore
from setl.select.checkpoints.note import Notes, missing
from setl.select.checkpoints.owner import Owner
from setl.select.checkpoints.turn import Turns, TurnStore
from setl.select.source import CheckpointStore, ReplaceableStore, Source
from setl.systems.registry import system_of

if TYPE_CHECKING:
    from setl.channel.file import Pipeline

_LOG = logging.getLogger(__name__)

_TURN_SECONDS = 5.0  # that a run waits for its first turn in a group before it goes on without


def stored_in(pipeline: Pipeline) -> str:
    """Which store keeps a pipeline's checkpoint: ``target``, ``zookeeper``, ``kafka``, ``file``."""
    if pipeline.checkpoint is not None:
        return pipeline.checkpoint
    return "target" if pipeline.target.stores_checkpoints else "zookeeper"


def store_interval(pipeline: Pipeline) -> float:
    """Seconds between two checkpoints of a pipeline; 0 stores one with everything written."""
    return pipeline.checkpoint_interval if stored_in(pipeline) in {"kafka", "file"} else 0.0


def store_of(
    pipeline: Pipeline,
    channel: str,
    arbiter: Arbiter,
    nid: str,
    *,
    turns: Turns | None = None,
) -> ReplaceableStore:
    """Where a pipeline's checkpoint is stored, without a look anywhere else.

    Args:
        pipeline: from a channel file with its references resolved.
        channel: the channel's name.
        arbiter: keeps the checkpoint, or a note where it is.
        nid: the node on whose behalf it stores.
        turns: the group whose member stores it, None where nobody reads or shares.
    """
    owner, ident = owner_of(pipeline, channel, nid), PipelineId(channel, pipeline.name)
    notes, name = ArbiterNotes(arbiter, ident), stored_in(pipeline)
    store: ReplaceableStore | None = None
    if name == "target":
        store = system_of(pipeline.target).checkpoints(owner, notes)
    elif name == "kafka":
        store = system_of(pipeline.source).checkpoints(pipeline, owner, notes, turns)
    elif name == "file":
        store = _in_file(pipeline.checkpoint_file or "", notes, owner)
    return store or ArbiterCheckpointStore(arbiter, ident)


def store_for_run(
    pipeline: Pipeline, leadership: Leadership, arbiter: Arbiter, source: Source
) -> CheckpointStore:
    """The store with which a leadership of a pipeline works; it looks into the others too.

    Args:
        pipeline: from a channel file with its references resolved.
        leadership: on whose behalf.
        arbiter: its session.
        source: what the run reads.
    """
    turns = system_of(pipeline.source).turns(source)
    store: CheckpointStore = store_of(
        pipeline, leadership.channel, arbiter, leadership.nid, turns=turns
    )
    if turns is not None:
        store = TurnStore(store, turns, _TURN_SECONDS)
    if stored_in(pipeline) == "file":
        sign = container_sign()
        if sign:
            _LOG.warning("%s: %s", leadership.key, lost_with_container(sign))
    return LookupStore(
        stored_in(pipeline),
        store,
        other_stores(pipeline, leadership.channel, arbiter, leadership.nid),
        notes=ArbiterNotes(arbiter, PipelineId(leadership.channel, pipeline.name)),
        pipeline=leadership.key,
        epoch=leadership.epoch,
    )


def fence_for_run(pipeline: Pipeline, leadership: Leadership, arbiter: Arbiter) -> Fence:
    """What keeps former leaders out of the target; looks at whether it fits the checkpoint."""
    target, key = system_of(pipeline.target), leadership.key
    fence = target.fence(key)
    if stored_in(pipeline) == "target" or not pipeline.target.stores_fence:
        return fence
    return ComparedFence(
        fence,
        held=lambda: target.stored_state(key).fence,
        stored_by=ArbiterNotes(arbiter, PipelineId(leadership.channel, pipeline.name)).stored_by,
        pipeline=key,
        target=pipeline.target.address,
    )


def other_stores(
    pipeline: Pipeline, channel: str, arbiter: Arbiter, nid: str
) -> tuple[OtherStore, ...]:
    """The stores besides its own in which a pipeline's checkpoint may be, in their order."""
    owner, ident = owner_of(pipeline, channel, nid), PipelineId(channel, pipeline.name)
    notes = ArbiterNotes(arbiter, ident)
    others = (
        _in_target(pipeline, notes, owner),
        OtherStore("zookeeper", ArbiterCheckpointStore(arbiter, ident).load),
        OtherStore("file", lambda: _noted_file(notes, owner), last_resort=True),
        OtherStore("kafka", lambda: _committed(pipeline, notes, owner), last_resort=True),
    )
    return tuple(other for other in others if other and other.name != stored_in(pipeline))


def owner_of(pipeline: Pipeline, channel: str, nid: str) -> Owner:
    """A pipeline on this machine, as node `nid` leads it."""
    return Owner(f"{channel}/{pipeline.name}", nid, socket.gethostname())


def _in_target(pipeline: Pipeline, notes: Notes, owner: Owner) -> OtherStore | None:
    if not pipeline.target.stores_checkpoints:
        return None

    def load() -> Checkpoint | None:
        store = system_of(pipeline.target).checkpoints(owner, notes)
        if store is None:
            return None
        with closing(store):
            return store.load()

    return OtherStore("target", load)


def _in_file(path: str, notes: Notes, owner: Owner) -> FileCheckpointStore:
    # The folder is one of the process, a node or a command, and not of the channel.
    return FileCheckpointStore(path, notes, owner, checkpoint_folder(os.environ))


def _noted_file(notes: Notes, owner: Owner) -> Checkpoint | None:
    """The checkpoint in the file that an earlier `checkpoint: file` has left behind."""
    note = notes.read()
    if note is None or note.store != "file":
        return None
    return _in_file(note.location, notes, owner).load()


def _committed(pipeline: Pipeline, notes: Notes, owner: Owner) -> Checkpoint | None:
    """The checkpoint in the group's commit, a foreign client's too."""
    note = notes.read()
    noted = note is not None and note.store == "kafka"
    store = system_of(pipeline.source).checkpoints(pipeline, owner, notes)
    if store is None:
        if note is not None and noted:
            what, hint = "the source names no such group any more", "Name it again (`sid`)"
            raise missing(note, what, hint, owner.pipeline)
        return None
    try:
        # A ConfigurationError passes: the account may have no right to, which nobody has asked
        # for; and what another pipeline has committed says nothing of this one's target.
        return store.load()
    finally:
        store.close()
