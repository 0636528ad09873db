"""Builds a pipeline's run from its channel file. The one place that knows them all."""

from __future__ import annotations

from pyspark.sql import SparkSession

from arbiter.port import Arbiter
from arbiter.values import PipelineId
from setl.clock import Clock
from setl.config.channel import (
    ChannelFile,
    DtsSource,
    MysqlSource,
    MysqlTarget,
    Pipeline,
)
from setl.config.connections import elastic_endpoint, mysql_endpoint
from setl.config.marks import channel_mark_id
from setl.config.routing import Router
from setl.errors import ConfigurationError
from setl.extract.extractor import Extractor
from setl.extract.loopback import MarkIdentity
from setl.load.elasticsearch_fence import VersionFence
from setl.load.elasticsearch_sink import ElasticsearchSinkSettings
from setl.load.mysql_fence import MysqlFence
from setl.load.mysql_sink import MysqlSinkSettings
from setl.load.port import Fence
from setl.load.worker import SinkSettings
from setl.pipeline.job import LoadJob
from setl.pipeline.progress import Progress
from setl.pipeline.run import PipelineRun, RunParts
from setl.select.batching import BatchSettings
from setl.select.checkpoint_arbiter import ArbiterCheckpointStore
from setl.select.checkpoint_mysql import MysqlCheckpointStore
from setl.select.heartbeat import Heartbeat
from setl.select.identity import heartbeat_id, replica_id
from setl.select.kafka_dts import DtsKafkaSource
from setl.select.mysql_binlog import MysqlBinlogSource
from setl.select.port import CheckpointStore, Source
from setl.select.reader import SelectLoop, SelectSettings
from setl.transform.work import TransformPlan, codec_named

_LOADS_IN_A_ROW = 4
"""Batches of full size that one Spark job may load when the pipeline is behind."""


def build_run(
    file: ChannelFile,
    name: str,
    *,
    nid: str,
    epoch: int,
    arbiter: Arbiter,
    spark: SparkSession,
    progress: Progress,
    clock: Clock,
) -> PipelineRun:
    """A run of one pipeline of a channel, under one epoch; nothing is connected yet.

    Raises:
        ConfigurationError: the channel has no such pipeline.
    """
    pipeline = next((p for p in file.pipelines if p.name == name), None)
    if pipeline is None:
        raise ConfigurationError(f"channel {file.channel} has no pipeline {name}")
    key = f"{file.channel}/{name}"
    codec = "binlog" if isinstance(pipeline.source, MysqlSource) else "dts"
    router = Router(pipeline)
    source = _source(pipeline, file.channel, nid)
    parts = RunParts(
        channel=file.channel,
        pipeline=name,
        source=source,
        extractor=Extractor(router, MarkIdentity(channel_mark_id(file)), codec_named(codec)),
        job=LoadJob(
            spark,
            name=key,
            plan=TransformPlan(codec, router),
            sink=_sink(file, pipeline),
            rows_per_task=pipeline.rows_per_task,
            generation=pipeline.generation,
        ),
        fence=_fence(pipeline, key),
        store=_store(pipeline, file.channel, arbiter, nid),
        heartbeat=_heartbeat(pipeline, file.channel),
        heartbeat_id=heartbeat_id(file.channel, name),
        select=SelectLoop(source, _select_settings(pipeline), epoch=epoch, name=key, clock=clock),
        generation=pipeline.generation,
        stop_on_ddl=pipeline.ddl == "stop",
        rows_per_load=pipeline.batch_rows * _LOADS_IN_A_ROW,
    )
    return PipelineRun(parts, nid, epoch, progress, clock)


def _source(pipeline: Pipeline, channel: str, nid: str) -> Source:
    config = pipeline.source
    if isinstance(config, DtsSource):
        return DtsKafkaSource(config)
    server_id = config.server_id or replica_id(channel, pipeline.name, nid)
    return MysqlBinlogSource(mysql_endpoint(config), server_id, config.start)


def _heartbeat(pipeline: Pipeline, channel: str) -> Heartbeat | None:
    config = pipeline.source
    if isinstance(config, DtsSource) or not config.heartbeat:
        return None
    return Heartbeat(
        mysql_endpoint(config),
        heartbeat_id(channel, pipeline.name),
        interval=config.heartbeat,
        name=f"{channel}/{pipeline.name}",
    )


def _select_settings(pipeline: Pipeline) -> SelectSettings:
    batch = BatchSettings(pipeline.batch_rows, pipeline.batch_bytes, pipeline.batch_wait)
    return SelectSettings(batch=batch, window=pipeline.window)


def _sink(file: ChannelFile, pipeline: Pipeline) -> SinkSettings:
    target = pipeline.target
    if isinstance(target, MysqlTarget):
        return MysqlSinkSettings(mysql_endpoint(target), channel_mark_id(file))
    return ElasticsearchSinkSettings(elastic_endpoint(target))


def _fence(pipeline: Pipeline, key: str) -> Fence:
    target = pipeline.target
    if isinstance(target, MysqlTarget):
        return MysqlFence(mysql_endpoint(target), key, target.fence_timeout)
    return VersionFence()


def _store(pipeline: Pipeline, channel: str, arbiter: Arbiter, nid: str) -> CheckpointStore:
    target = pipeline.target
    if isinstance(target, MysqlTarget) and pipeline.checkpoint != "zookeeper":
        return MysqlCheckpointStore(mysql_endpoint(target), f"{channel}/{pipeline.name}", nid=nid)
    return ArbiterCheckpointStore(arbiter, PipelineId(channel, pipeline.name))
