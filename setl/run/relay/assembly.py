"""Builds a relay's run from its channel file."""

from __future__ import annotations

from arbiter.arbiter import Arbiter
from setl.channel.file import ChannelFile, Pipeline
from setl.channel.routes.routing import Router
from setl.clock import Clock
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.model.checkpoint import Checkpoint
from setl.model.leadership import Leadership
from setl.relay.formats import serializer_of
from setl.relay.interceptor import Interceptor
from setl.relay.partitioning import Partitioner
from setl.relay.ports import RelayedTables
from setl.relay.resume import Tails
from setl.relay.sequence import Sequencer
from setl.run.checkpoints.stores import store_of
from setl.run.measured.progress import Progress
from setl.run.relay.work import RelayWork, SequencerFactory
from setl.run.run import PipelineRun
from setl.run.selecting import select_settings, skipped_statements
from setl.select.heartbeat import shows_lag
from setl.select.reader import SelectLoop
from setl.systems.port import Relaying, SourceSystem, no_log
from setl.systems.registry import system_of

_STORE_SECONDS = 5.0
"""Between two checkpoints. What is in the topic decides what is written, so a checkpoint only
saves reading; ZooKeeper need not hear of every batch."""


def build_relay_run(
    file: ChannelFile,
    leadership: Leadership,
    /,
    *,
    arbiter: Arbiter,
    progress: Progress,
    clock: Clock,
) -> PipelineRun:
    """A run of one relay of a channel, under one epoch; nothing is connected yet.

    Raises:
        ConfigurationError: the channel has no such pipeline, or it is no relay.
    """
    name, key = leadership.pipeline, leadership.key
    pipeline = file.pipeline(name)
    origin, relaying = system_of(pipeline.source), system_of(pipeline.target).relaying(key)
    tables = origin.relayed_tables()
    if tables is None:
        raise no_log(key)
    source = origin.stream(pipeline, file.channel, leadership.nid)
    heartbeat = origin.heartbeat()
    work = RelayWork(
        leadership,
        progress,
        clock,
        log=relaying.log,
        sequencer=_sequencers(pipeline, relaying, origin, tables, clock),
        exact=relaying.exact,
        spread=relaying.partition_by != "order",
        heartbeat=relaying.heartbeat,
        rows=pipeline.batch_rows,
        codec=BinlogRowCodec(),
        heartbeat_id=heartbeat.id if heartbeat and shows_lag(heartbeat) else 0,
    )
    return PipelineRun(
        leadership,
        progress,
        clock,
        source=source,
        work=work,
        store=store_of(pipeline, file.channel, arbiter, leadership.nid),
        heartbeat=heartbeat,
        select=SelectLoop(
            source, select_settings(pipeline), epoch=leadership.epoch, name=key, clock=clock
        ),
        generation=pipeline.generation,
        store_every=_STORE_SECONDS,
    )


def _sequencers(
    pipeline: Pipeline,
    relaying: Relaying,
    origin: SourceSystem,
    tables: RelayedTables,
    clock: Clock,
) -> SequencerFactory:
    router = Router(pipeline)
    statements = skipped_statements(
        pipeline, origin, lambda schema, table: bool(router.route(schema, table))
    )
    interceptor = Interceptor(router, statements, own_tables=relaying.format.has_own_tables)

    def make(checkpoint: Checkpoint, tails: Tails) -> Sequencer:
        # What is learned of tables is of a position in the binlog, so a new start learns again.
        return Sequencer(
            checkpoint,
            tails,
            interceptor=interceptor,
            partitioner=Partitioner(relaying.partition_by, len(tails)),
            codec=BinlogRowCodec(),
            serializer=serializer_of(relaying.format, tables, clock),
        )

    return make
