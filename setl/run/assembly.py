"""Builds a pipeline's run from its channel file. The one place that knows them all."""

from __future__ import annotations

from functools import partial

from pyspark.sql import SparkSession

from arbiter.port import Arbiter
from setl.channel.file import (
    ChannelFile,
    ElasticsearchTarget,
    MysqlTarget,
    Pipeline,
    database_of,
)
from setl.channel.mark_ids import channel_mark_id, channel_writers
from setl.channel.routing import Router
from setl.clock import Clock
from setl.errors import ConfigurationError
from setl.extract.extractor import Extractor
from setl.extract.loopback import MarkIdentity
from setl.load.worker import SinkSettings
from setl.run.dead_letter_store import dead_letters_of
from setl.run.dead_letters import DeadLetterDesk
from setl.run.ends import (
    fence_of,
    schema_changes_of,
    source_of,
    store_for_run,
    store_interval,
)
from setl.run.etl_work import EtlParts, EtlWork
from setl.run.job import LoadJob
from setl.run.leading import Leading
from setl.run.parts import RunParts
from setl.run.progress import Progress
from setl.run.run import PipelineRun
from setl.run.schema_changes import SchemaChangePolicy
from setl.run.selecting import heartbeat_of, select_settings
from setl.run.stalls.observer import Sights
from setl.run.stalls.target_sight import target_sight
from setl.select.identity import heartbeat_id
from setl.select.reader import SelectLoop
from setl.systems.elasticsearch.endpoint import elastic_endpoint
from setl.systems.elasticsearch.load.sink import ElasticsearchSinkSettings
from setl.systems.mysql.documents import MysqlDocuments
from setl.systems.mysql.endpoint import mysql_endpoint
from setl.systems.mysql.load.sink import MysqlSinkSettings
from setl.transform.documents import DocumentSource
from setl.transform.work import TransformPlan, codec_for, codec_named

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
    pipeline = file.pipeline(name)
    key = f"{file.channel}/{name}"
    codec = codec_for(pipeline.source)
    router = Router(pipeline, from_home=file.from_home(name))
    source = source_of(pipeline, file.channel, nid)
    sink = _sink(file, pipeline)
    job = LoadJob(
        spark,
        name=key,
        plan=TransformPlan(
            codec,
            router,
            isolates=pipeline.keeps_dead_letters,
            documents=_document_source(pipeline),
        ),
        sink=sink,
        rows_per_task=pipeline.rows_per_task,
    )
    leading = Leading(file.channel, name, nid, epoch)
    heartbeat = heartbeat_of(pipeline, file.channel)
    work = EtlParts(
        extractor=Extractor(
            router,
            MarkIdentity(channel_mark_id(file), file.otter_info or "", channel_writers(file)),
            codec_named(codec),
            shadow_ddl=pipeline.ddl == "pass",
            agrees=router.decides,
        ),
        job=job,
        fence=fence_of(pipeline, file.channel),
        heartbeat_id=heartbeat_id(file.channel, name) if heartbeat else None,
        ddl=SchemaChangePolicy(
            pipeline.ddl, schema_changes_of(file, pipeline, router), leading, progress
        ),
        rows_per_load=pipeline.batch_rows * _LOADS_IN_A_ROW,
        letters=_letters(pipeline, job, leading, progress, clock),
        tells_applied=isinstance(pipeline.target, MysqlTarget),
    )
    parts = RunParts(
        channel=file.channel,
        pipeline=name,
        source=source,
        work=EtlWork(work, leading, progress, clock),
        store=store_for_run(pipeline, leading, arbiter, source),
        heartbeat=heartbeat,
        select=SelectLoop(source, select_settings(pipeline), epoch=epoch, name=key, clock=clock),
        generation=pipeline.generation,
        store_every=store_interval(pipeline),
        sights=Sights(job.activity, target_sight(sink, key)),
    )
    return PipelineRun(parts, leading, progress, clock)


def _letters(
    pipeline: Pipeline, job: LoadJob, leading: Leading, progress: Progress, clock: Clock
) -> DeadLetterDesk | None:
    if not pipeline.keeps_dead_letters:
        return None
    return DeadLetterDesk(partial(dead_letters_of, pipeline), job, leading, progress, clock)


def _document_source(pipeline: Pipeline) -> DocumentSource | None:
    """Where documents with nested rows are looked up; None if there are none."""
    database = database_of(pipeline.source)
    if database is None or not any(table.nested for table in pipeline.tables):
        return None
    return MysqlDocuments(mysql_endpoint(database))


def _sink(file: ChannelFile, pipeline: Pipeline) -> SinkSettings:
    target = pipeline.target
    limit = pipeline.dead_letter_limit if pipeline.keeps_dead_letters else 0
    if isinstance(target, MysqlTarget):
        return MysqlSinkSettings(
            mysql_endpoint(target), channel_mark_id(file), dead_letter_limit=limit
        )
    if isinstance(target, ElasticsearchTarget):
        return ElasticsearchSinkSettings(elastic_endpoint(target), dead_letter_limit=limit)
    raise ConfigurationError(
        f"nothing is loaded into Kafka: {pipeline.name} is a relay",
        hint="`setl relay` runs it",
        pipeline=f"{file.channel}/{pipeline.name}",
    )
