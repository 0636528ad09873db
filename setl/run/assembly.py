"""Builds a pipeline's run from its channel file. The one place that knows them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial

from arbiter.arbiter import Arbiter
from arbiter.values import PipelineId
from setl.bulk.source_reader import SourceTables
from setl.channel.file import ChannelFile, Pipeline
from setl.channel.relations.directions import is_two_way, way_back
from setl.channel.relations.mark_ids import channel_mark_id, channel_writers
from setl.channel.routes.routing import Route, Router
from setl.clock import Clock
from setl.extract.extractor import Extractor
from setl.extract.loopback import MarkIdentity
from setl.load.identities import IdentifiedTarget
from setl.model.leadership import Leadership
from setl.model.schema import Column, RowSchema
from setl.run.checkpoints.stores import fence_for_run, store_for_run, store_interval
from setl.run.dead_letters.handling import DeadLetterHandler
from setl.run.etl_work import EtlParts, EtlWork
from setl.run.loads.job import LoadJob
from setl.run.loads.rereading import Rereading
from setl.run.measured.progress import Progress
from setl.run.parts import RunParts
from setl.run.run import PipelineRun
from setl.run.selecting import select_settings, skipped_statements
from setl.run.stalls.observer import Views
from setl.run.table_loads.parts import TableLoadingParts
from setl.run.table_loads.reloads import Reloads
from setl.run.table_loads.requests import StoredLoadRequests
from setl.run.table_loads.table_creation import CreatingParts
from setl.run.targets.acting_keys import ActingKeys
from setl.run.targets.end_version import version_at_end
from setl.run.targets.foreign_versions import ForeignVersions
from setl.run.targets.identities import Identities, WillReload
from setl.run.targets.schema_changes import SchemaChangePolicy
from setl.run.tracing.trace import Tracer
from setl.run.verification.assembly import standing_verification
from setl.select.heartbeat import shows_lag
from setl.select.reader import SelectLoop
from setl.select.source import Source
from setl.systems.port import (
    ActingTarget,
    CreatingTarget,
    DdlReplicationContext,
    OrderedSource,
    TargetSystem,
    TriggeringTarget,
)
from setl.systems.registry import system_of
from setl.systems.replicas import ReplicatedTarget
from setl.systems.unsupported import nothing_to_create
from setl.transform.evaluation import analyse
from setl.transform.rereading import Lookup
from setl.transform.spark_on_demand import SparkOnDemand
from setl.transform.work import TransformPlan, codec_named

_LOADS_IN_A_ROW = 4
"""Batches of full size that one Spark job may load when the pipeline is behind."""


def build_run(
    file: ChannelFile,
    leadership: Leadership,
    *,
    arbiter: Arbiter,
    spark: SparkOnDemand,
    progress: Progress,
    clock: Clock,
    tracer: Tracer | None = None,
) -> PipelineRun:
    """A run of one pipeline of a channel, under one epoch; nothing is connected yet.

    Raises:
        ConfigurationError: the channel has no such pipeline, or it is a relay.
    """
    name, key = leadership.pipeline, leadership.key
    pipeline = file.pipeline(name)
    codec = pipeline.source.codec
    origin, target = system_of(pipeline.source), system_of(pipeline.target)
    router = Router(pipeline, from_home=file.from_home(name), back=way_back(file, pipeline))
    source = origin.stream(pipeline, file.channel, leadership.nid)
    mark = channel_mark_id(file)
    limit = pipeline.dead_letter_limit if pipeline.stores_dead_letters else 0
    sink = target.sink(mark, dead_letter_limit=limit)
    nested = any(table.nested for table in pipeline.tables)
    logged = pipeline.target.holds_documents
    tables = partial(origin.tables, logged=logged)
    rows = origin.rows(logged=logged) if router.rereads else None
    requests = StoredLoadRequests(arbiter, PipelineId(file.channel, name))
    identities, coming = None, Reloads(requests, tables, router)
    if isinstance(target, IdentifiedTarget):
        identities = Identities(target.identities, coming, leadership, clock)
    watch = None
    if isinstance(target, TriggeringTarget):
        back = way_back(file, pipeline)
        watch = target.trigger_watch(router, back and Router(back), pipeline.accept, clock)
    job = LoadJob(
        spark,
        name=key,
        epoch=leadership.epoch,
        plan=TransformPlan(
            codec,
            router,
            isolates=pipeline.stores_dead_letters,
            documents=origin.documents() if nested else None,
            lookup=None if rows is None else Lookup(rows),
        ),
        sink=sink,
        rows_per_task=pipeline.rows_per_task,
        identities=identities,
        versions=ForeignVersions(partial(version_at_end, source)),
        refuse=watch,
    )
    ddl_context = DdlReplicationContext(
        mark, router, is_two_way(file, pipeline), pipeline.source, pipeline.accept
    )
    changes = target.schema_changes(ddl_context) if pipeline.ddl == "pass" else None
    heartbeat = origin.heartbeat()
    decided = target.conflicts() if router.decides else None
    agreeing = partial(target.agreeing_tables, pipeline.source)
    rereading = Rereading(router, tables, agreeing, isolates=pipeline.stores_dead_letters)
    creating = None
    if router.creates:
        creating = _creating(
            spark, tables, target, ddl_context, source, identities=identities, coming=coming
        )
    keys = None
    if isinstance(target, ActingTarget):
        found = target.key_actions(ddl_context, keeps_letters=pipeline.stores_dead_letters)
        keys = ActingKeys(codec_named(codec), found, passes=pipeline.ddl == "pass")
        if isinstance(source, OrderedSource):
            source.keep_order(keys.orders)
    work = EtlParts(
        extractor=Extractor(
            router,
            MarkIdentity(mark, file.otter_info or "", channel_writers(file)),
            codec_named(codec),
            shadow_ddl=pipeline.ddl == "pass",
            agrees=router.decides,
            statements=skipped_statements(
                pipeline, origin, lambda schema, table: bool(router.route(schema, table))
            ),
            maps=router.maps,
        ),
        job=job,
        fence=fence_for_run(pipeline, leadership, arbiter),
        heartbeat_id=heartbeat.id if heartbeat and shows_lag(heartbeat) else None,
        ddl=SchemaChangePolicy(pipeline.ddl, changes, leadership, progress, router.maps),
        rows_per_load=pipeline.batch_rows * _LOADS_IN_A_ROW,
        tables=TableLoadingParts(
            job,
            tables,
            source.latest if origin.has_end else None,
            agreeing,
            router,
            target.holds_rows,
            requests,
            router.entries_to_load(every=pipeline.source.loads_tables),
            pipeline.load_limits,
            back=_back(file, name) if router.decides else "",
            unpassed=None if decided is None else partial(decided.unpassed, key),
            replica=target.farthest_replica if isinstance(target, ReplicatedTarget) else None,
            isolates=pipeline.stores_dead_letters,
        ),
        creating=creating,
        identities=identities,
        letters=_letters(pipeline, job, leadership, progress, clock, router=router),
        reports_applied=target.reports_applied,
        rereading=rereading if router.rereads else None,
        tracer=tracer,
        keys=keys,
    )
    etl = EtlWork(work, leadership, progress, clock)
    background = None
    if file.verification(name) is not None:
        background = standing_verification(
            file,
            leadership,
            arbiter=arbiter,
            spark=spark,
            progress=progress,
            clock=clock,
            latest=source.latest,
            look_at_loads=etl.look_at_loads,
        )
    parts = RunParts(
        source=source,
        work=etl,
        store=store_for_run(pipeline, leadership, arbiter, source),
        heartbeat=heartbeat,
        select=SelectLoop(
            source,
            select_settings(pipeline),
            epoch=leadership.epoch,
            name=key,
            clock=clock,
            turns=keys,
        ),
        generation=pipeline.generation,
        store_every=store_interval(pipeline),
        views=Views(job.activity, target.view(key)),
        background=background,
    )
    return PipelineRun(parts, leadership, progress, clock)


def _back(file: ChannelFile, name: str) -> str:
    """The pipeline of the other direction; a checked file has one where tables have policies."""
    other = next(each.name for each in file.pipelines if each.name != name)
    return f"{file.channel}/{other}"


def _creating(
    spark: SparkOnDemand,
    tables: Callable[[], AbstractContextManager[SourceTables] | None],
    target: TargetSystem,
    ddl_context: DdlReplicationContext,
    source: Source,
    *,
    identities: Identities | None,
    coming: WillReload,
) -> CreatingParts:
    if not isinstance(target, CreatingTarget):
        raise nothing_to_create()
    return CreatingParts(
        target.table_creation(ddl_context),
        tables,
        ddl_context.router,
        partial(_computed, spark),
        partial(version_at_end, source),
        will_reload=coming,
        check=None if identities is None else identities.check,
    )


def _computed(spark: SparkOnDemand, route: Route, schema: RowSchema) -> Sequence[Column]:
    return analyse(spark.session, route, schema).outputs


def _letters(
    pipeline: Pipeline,
    job: LoadJob,
    leadership: Leadership,
    progress: Progress,
    clock: Clock,
    *,
    router: Router,
) -> DeadLetterHandler | None:
    if not pipeline.stores_dead_letters:
        return None
    return DeadLetterHandler(
        system_of(pipeline.target).dead_letters, job, leadership, progress, clock, router=router
    )
