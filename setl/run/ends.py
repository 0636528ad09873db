"""A pipeline's two ends and its checkpoint store, as its channel file describes them."""

from __future__ import annotations

import logging
import secrets
import socket

from arbiter.port import Arbiter
from arbiter.values import PipelineId
from setl.channel.file import (
    ChannelFile,
    DtsSource,
    ElasticsearchTarget,
    MysqlSource,
    MysqlTarget,
    Pipeline,
)
from setl.channel.mark_ids import channel_mark_id
from setl.channel.routing import Router
from setl.codec.binlog.runs import MOST_BYTES, MOST_EVENTS
from setl.errors import ConfigurationError
from setl.load.sink import Fence, SchemaChanges
from setl.model.checkpoint import Checkpoint
from setl.operate.check import is_two_way
from setl.run.leading import Leading
from setl.select.checkpoints.arbiter import ArbiterCheckpointStore, ArbiterNotes
from setl.select.checkpoints.container import container_sign, lost_with_container
from setl.select.checkpoints.file import FileCheckpointStore
from setl.select.checkpoints.lookup import LookupStore, OtherStore
from setl.select.checkpoints.note import Notes, missing
from setl.select.checkpoints.owner import Owner
from setl.select.checkpoints.turn import TurnStore
from setl.select.identity import replica_id
from setl.select.source import CheckpointStore, Source
from setl.systems.elasticsearch.ddl import ElasticsearchDdl
from setl.systems.elasticsearch.endpoint import elastic_endpoint
from setl.systems.elasticsearch.load.fence import VersionFence
from setl.systems.kafka.checkpoints import KafkaCheckpointStore
from setl.systems.kafka.source.group import GroupMembership
from setl.systems.kafka.source.subscription import DtsKafkaSource
from setl.systems.mysql.binlog.source import MysqlBinlogSource
from setl.systems.mysql.binlog.stream import StreamLimits
from setl.systems.mysql.checkpoints import MysqlCheckpointStore
from setl.systems.mysql.ddl.passing import MysqlDdl
from setl.systems.mysql.endpoint import mysql_endpoint
from setl.systems.mysql.load.fence import MysqlFence

_LOG = logging.getLogger(__name__)

_SMALL_ROW = 64  # bytes, so that a run holds hardly more rows than a batch is to have
_TURN_SECONDS = 5.0  # that a run waits for its first turn in a group before it goes on without


def source_of(pipeline: Pipeline, channel: str, nid: str) -> Source:
    """What a pipeline reads, as node `nid` reads it; nothing is connected yet."""
    config = pipeline.source
    if isinstance(config, DtsSource):
        if config.partitions is not None:
            raise ConfigurationError(
                f"the pipeline stands for {config.partitions}, one for each partition",
                hint="`setl apply` its channel file again, which deals it out",
                pipeline=f"{channel}/{pipeline.name}",
            )
        return DtsKafkaSource(config)
    server_id = config.server_id or replica_id(channel, pipeline.name, nid)
    # A run goes into one batch whole, and to one task.
    limits = StreamLimits(
        run_events=min(MOST_EVENTS, pipeline.batch_rows),
        run_bytes=min(MOST_BYTES, pipeline.batch_bytes, pipeline.batch_rows * _SMALL_ROW),
    )
    return MysqlBinlogSource(mysql_endpoint(config), server_id, config.start, limits)


def schema_changes_of(
    file: ChannelFile, pipeline: Pipeline, router: Router
) -> SchemaChanges | None:
    """What passes schema changes on to a pipeline's target, None if they are not passed on."""
    source, target = pipeline.source, pipeline.target
    if pipeline.ddl != "pass":
        return None
    if isinstance(target, MysqlTarget):
        return MysqlDdl(
            mysql_endpoint(target),
            channel_mark_id(file),
            router,
            lambda: secrets.token_hex(8),
            marked_drops=is_two_way(file, pipeline),
            source=mysql_endpoint(source) if isinstance(source, MysqlSource) else None,
        )
    if isinstance(target, ElasticsearchTarget):
        return ElasticsearchDdl(elastic_endpoint(target), router)
    return None


def fence_of(pipeline: Pipeline, channel: str) -> Fence:
    """What keeps stale leaders out of a pipeline's target."""
    target = pipeline.target
    if isinstance(target, MysqlTarget):
        key = f"{channel}/{pipeline.name}"
        return MysqlFence(mysql_endpoint(target), key, target.fence_timeout)
    return VersionFence()


def kept_in(pipeline: Pipeline) -> str:
    """Which store keeps a pipeline's checkpoint: ``target``, ``zookeeper``, ``kafka``, ``file``."""
    if pipeline.checkpoint is not None:
        return pipeline.checkpoint
    return "target" if isinstance(pipeline.target, MysqlTarget) else "zookeeper"


def store_interval(pipeline: Pipeline) -> float:
    """Seconds between two checkpoints of a pipeline; 0 stores one with everything written."""
    return pipeline.checkpoint_interval if kept_in(pipeline) in {"kafka", "file"} else 0.0


def store_of(
    pipeline: Pipeline,
    channel: str,
    arbiter: Arbiter,
    nid: str,
    *,
    member: GroupMembership | None = None,
) -> CheckpointStore:
    """Where a pipeline's checkpoint is kept, without a look anywhere else.

    Args:
        pipeline: from a channel file with its references resolved.
        channel: the channel's name.
        arbiter: keeps the checkpoint, or a note where it is.
        nid: the node on whose behalf it stores.
        member: through which to commit to Kafka, None where nobody reads.
    """
    owner, target, source = owner_of(pipeline, channel, nid), pipeline.target, pipeline.source
    ident = PipelineId(channel, pipeline.name)
    name = kept_in(pipeline)
    if name == "target" and isinstance(target, MysqlTarget):
        return MysqlCheckpointStore(mysql_endpoint(target), owner, ArbiterNotes(arbiter, ident))
    if name == "kafka" and isinstance(source, DtsSource):
        return KafkaCheckpointStore(
            source,
            ArbiterNotes(arbiter, ident),
            owner,
            generation=pipeline.generation,
            member=member,
        )
    if name == "file":
        return FileCheckpointStore(
            pipeline.checkpoint_file or "", ArbiterNotes(arbiter, ident), owner
        )
    return ArbiterCheckpointStore(arbiter, ident)


def store_for_run(
    pipeline: Pipeline, leading: Leading, arbiter: Arbiter, source: Source
) -> CheckpointStore:
    """The store with which a leadership of a pipeline works; it looks into the others too.

    Args:
        pipeline: from a channel file with its references resolved.
        leading: the leadership.
        arbiter: its session.
        source: what the run reads.
    """
    group = source.group if isinstance(source, DtsKafkaSource) else None
    store = store_of(pipeline, leading.channel, arbiter, leading.nid, member=group)
    if group is not None:
        store = TurnStore(store, group, _TURN_SECONDS)
    if kept_in(pipeline) == "file":
        sign = container_sign()
        if sign:
            _LOG.warning("%s: %s", leading.name, lost_with_container(sign))
    return LookupStore(
        kept_in(pipeline),
        store,
        other_stores(pipeline, leading.channel, arbiter, leading.nid),
        pipeline=leading.name,
        epoch=leading.epoch,
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
    return tuple(other for other in others if other and other.name != kept_in(pipeline))


def owner_of(pipeline: Pipeline, channel: str, nid: str) -> Owner:
    """A pipeline on this machine, as node `nid` leads it."""
    return Owner(f"{channel}/{pipeline.name}", nid, socket.gethostname())


def _in_target(pipeline: Pipeline, notes: Notes, owner: Owner) -> OtherStore | None:
    target = pipeline.target
    if not isinstance(target, MysqlTarget):
        return None

    def load() -> Checkpoint | None:
        store = MysqlCheckpointStore(mysql_endpoint(target), owner, notes)
        try:
            return store.load()
        finally:
            store.close()

    return OtherStore("target", load)


def _noted_file(notes: Notes, owner: Owner) -> Checkpoint | None:
    """The checkpoint in the file that an earlier `checkpoint: file` has left behind."""
    note = notes.read()
    if note is None or note.store != "file":
        return None
    return FileCheckpointStore(note.place, notes, owner).load()


def _committed(pipeline: Pipeline, notes: Notes, owner: Owner) -> Checkpoint | None:
    """The checkpoint in the group's commit, a foreign client's too."""
    source = pipeline.source
    note = notes.read()
    noted = note is not None and note.store == "kafka"
    if not isinstance(source, DtsSource) or not source.sid:
        if note is not None and noted:
            what, way_out = "the source names no such group any more", "Name it again (`sid`)"
            raise missing(note, what, way_out, owner.pipeline)
        return None
    store = KafkaCheckpointStore(source, notes, owner, generation=pipeline.generation)
    try:
        # A ConfigurationError passes: the account may have no right to, which nobody has asked
        # for; and what another pipeline has committed says nothing of this one's target.
        return store.load()
    except ConfigurationError as error:
        if note is not None and noted:
            what, way_out = f"cannot be read: {error}", "Allow it"
            raise missing(note, what, way_out, owner.pipeline) from error
        raise
    finally:
        store.close()
