"""Builds a pipeline's run from its channel file. The one place that knows them all."""

from __future__ import annotations

from pyspark.sql import SparkSession

from arbiter.port import Arbiter
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
from setl.load.elasticsearch_sink import ElasticsearchSinkSettings
from setl.load.mysql_sink import MysqlSinkSettings
from setl.load.worker import SinkSettings
from setl.pipeline.ends import fence_of, source_of, store_of
from setl.pipeline.job import LoadJob
from setl.pipeline.parts import RunParts
from setl.pipeline.progress import Progress
from setl.pipeline.run import PipelineRun
from setl.pipeline.stalls.observer import Sights
from setl.pipeline.stalls.target_sight import target_sight
from setl.select.batching import BatchSettings
from setl.select.heartbeat import Heartbeat
from setl.select.identity import heartbeat_id
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
    source = source_of(pipeline, file.channel, nid)
    sink = _sink(file, pipeline)
    job = LoadJob(
        spark,
        name=key,
        plan=TransformPlan(codec, router),
        sink=sink,
        rows_per_task=pipeline.rows_per_task,
    )
    parts = RunParts(
        channel=file.channel,
        pipeline=name,
        source=source,
        extractor=Extractor(router, MarkIdentity(channel_mark_id(file)), codec_named(codec)),
        job=job,
        fence=fence_of(pipeline, file.channel),
        store=store_of(pipeline, file.channel, arbiter, nid),
        heartbeat=_heartbeat(pipeline, file.channel),
        heartbeat_id=heartbeat_id(file.channel, name),
        select=SelectLoop(source, _select_settings(pipeline), epoch=epoch, name=key, clock=clock),
        generation=pipeline.generation,
        stop_on_ddl=pipeline.ddl == "stop",
        rows_per_load=pipeline.batch_rows * _LOADS_IN_A_ROW,
        tells_applied=isinstance(pipeline.target, MysqlTarget),
        sights=Sights(pipeline.window, job.activity, target_sight(sink, key)),
    )
    return PipelineRun(parts, nid, epoch, progress, clock)


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
