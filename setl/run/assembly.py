"""Builds a pipeline's run from its channel file. The one place that knows them all."""

from __future__ import annotations

from functools import partial

from arbiter.arbiter import Arbiter
from arbiter.values import PipelineId
from setl.channel.file import ChannelFile
from setl.channel.relations.directions import is_two_way, way_back
from setl.channel.relations.mark_ids import channel_mark_id, channel_writers
from setl.channel.routes.routing import Router
from setl.clock import Clock
from setl.extract.extractor import Extractor
from setl.extract.loopback import MarkIdentity
from setl.load.identities import IdentifiedTarget
from setl.model.leadership import Leadership
from setl.run.checkpoints.stores import fence_for_run, store_for_run, store_interval
from setl.run.dead_letters import DeadLetterHandler
from setl.run.etl_work import EtlWork
from setl.run.loads.catching_up import CatchingUp
from setl.run.loads.job import LoadJob
from setl.run.measured.progress import Progress
from setl.run.run import PipelineRun
from setl.run.selecting import select_settings, skipped_statements
from setl.run.stalls.observer import Views
from setl.run.table_loads.loading import TableLoading
from setl.run.table_loads.reloads import Reloads
from setl.run.table_loads.requests import StoredLoadRequests
from setl.run.table_loads.table_creation import TableCreating
from setl.run.targets.acting_keys import ActingKeys
from setl.run.targets.end_version import version_at_end
from setl.run.targets.foreign_versions import ForeignVersions
from setl.run.targets.identities import Identities
from setl.run.targets.schema_changes import SchemaChangePolicy
from setl.run.tracing.trace import Tracer
from setl.run.verification.assembly import standing_verification
from setl.run.verification.verifier import Verifier
from setl.select.heartbeat import shows_lag
from setl.select.reader import SelectLoop
from setl.systems.port import (
    ActingTarget,
    CreatingTarget,
    DdlReplicationContext,
    OrderedSource,
    TriggeringTarget,
    nothing_to_create,
)
from setl.systems.registry import system_of
from setl.systems.replicas import ReplicatedTarget
from setl.transform.column_compaction import COLUMN_ROWS
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
    return _Assembly(file, leadership, arbiter, spark=spark, progress=progress, clock=clock).run(
        tracer
    )


class _Assembly:
    """What the parts of a run share, and the parts in the order in which rows come to them."""

    def __init__(
        self,
        file: ChannelFile,
        leadership: Leadership,
        arbiter: Arbiter,
        *,
        spark: SparkOnDemand,
        progress: Progress,
        clock: Clock,
    ) -> None:
        self.file, self.leadership, self.arbiter = file, leadership, arbiter
        self.spark, self.progress, self.clock = spark, progress, clock
        name = leadership.pipeline
        self.pipeline = pipeline = file.pipeline(name)
        self.origin, self.target = system_of(pipeline.source), system_of(pipeline.target)
        self.back = way_back(file, pipeline)
        self.router = Router(pipeline, from_home=file.from_home(name), back=self.back)
        self.codec = codec_named(pipeline.source.codec)
        self.mark = channel_mark_id(file)
        self.isolates, self.replicates = pipeline.stores_dead_letters, pipeline.ddl == "pass"
        self.source = self.origin.stream(pipeline, file.channel, leadership.nid)
        self.tables = partial(self.origin.tables, logged=pipeline.target.holds_documents)
        self.catching_up = CatchingUp(
            self.router,
            self.tables,
            partial(self.target.agreeing_tables, pipeline.source),
            isolates=self.isolates,
        )
        self.requests = StoredLoadRequests(arbiter, PipelineId(file.channel, name))
        self.reloads = Reloads(self.requests, self.tables, self.router)
        self.identities = None
        if isinstance(self.target, IdentifiedTarget):
            self.identities = Identities(self.target.identities, self.reloads, leadership, clock)
        self.ddl_context = DdlReplicationContext(
            self.mark, self.router, is_two_way(file, pipeline), pipeline.source, pipeline.accept
        )

    def run(self, tracer: Tracer | None) -> PipelineRun:
        """The run, from its source to its target."""
        pipeline, leadership, heartbeat = self.pipeline, self.leadership, self.origin.heartbeat()
        job, keys = self.job(), self.keys()
        lag_row = heartbeat.id if heartbeat and shows_lag(heartbeat) else None
        work = self.work(job, keys, lag_row, tracer)
        return PipelineRun(
            leadership,
            self.progress,
            self.clock,
            source=self.source,
            work=work,
            store=store_for_run(pipeline, leadership, self.arbiter, self.source),
            heartbeat=heartbeat,
            select=SelectLoop(
                self.source,
                select_settings(pipeline),
                epoch=leadership.epoch,
                name=leadership.key,
                clock=self.clock,
                turns=keys,
            ),
            generation=pipeline.generation,
            store_every=store_interval(pipeline),
            views=Views(job.activity, self.target.view(leadership.key)),
            verifier=self.verification(work),
        )

    def keys(self) -> ActingKeys | None:
        """The foreign keys whose actions are carried out: they say where batches end."""
        if not isinstance(self.target, ActingTarget):
            return None
        found = self.target.key_actions(self.ddl_context, keeps_letters=self.isolates)
        keys = ActingKeys(self.codec, found, passes=self.replicates)
        if isinstance(self.source, OrderedSource):
            self.source.keep_order(keys.orders)
        return keys

    def job(self) -> LoadJob:
        """Transform and Load."""
        pipeline, logged = self.pipeline, self.pipeline.target.holds_documents
        rows = self.origin.rows(logged=logged) if self.router.rereads else None
        nested = any(table.nested for table in pipeline.tables)
        refuse = None
        if isinstance(self.target, TriggeringTarget):
            back = self.back and Router(self.back)
            refuse = self.target.trigger_watch(self.router, back, pipeline.accept, self.clock)
        sink = self.target.sink(
            self.mark, dead_letter_limit=pipeline.dead_letter_limit if self.isolates else 0
        )
        return LoadJob(
            self.spark,
            name=self.leadership.key,
            epoch=self.leadership.epoch,
            plan=TransformPlan(
                pipeline.source.codec,
                self.router,
                isolates=self.isolates,
                documents=self.origin.documents() if nested else None,
                lookup=None if rows is None else Lookup(rows),
                column_rows=COLUMN_ROWS,
                takes_columns=sink.takes_columns,
            ),
            sink=sink,
            rows_per_task=pipeline.rows_per_task,
            identities=self.identities,
            versions=ForeignVersions(partial(version_at_end, self.source)),
            refuse=refuse,
        )

    def work(
        self, job: LoadJob, keys: ActingKeys | None, lag_row: int | None, tracer: Tracer | None
    ) -> EtlWork:
        """Extract, the job, and all that comes between two loads of it."""
        pipeline, leadership, progress = self.pipeline, self.leadership, self.progress
        router, target = self.router, self.target
        letters = None
        if self.isolates:
            letters = DeadLetterHandler(
                target.dead_letters, job, leadership, progress, self.clock, router=router
            )
        changes = target.schema_changes(self.ddl_context) if self.replicates else None
        return EtlWork(
            leadership,
            progress,
            self.clock,
            extractor=self.extractor(),
            job=job,
            catching_up=self.catching_up,
            fence=fence_for_run(pipeline, leadership, self.arbiter),
            heartbeat_id=lag_row,
            ddl=SchemaChangePolicy(pipeline.ddl, changes, leadership, progress, router.maps),
            rows_per_load=pipeline.batch_rows * _LOADS_IN_A_ROW,
            tables=self.table_loading(job),
            creating=self.table_creation(),
            identities=self.identities,
            letters=letters,
            reports_applied=target.reports_applied,
            tracer=tracer,
            keys=keys,
        )

    def extractor(self) -> Extractor:
        """What drops entries that are not to be applied."""
        file, router = self.file, self.router
        return Extractor(
            router,
            MarkIdentity(self.mark, file.otter_info or "", channel_writers(file)),
            self.codec,
            shadow_ddl=self.replicates,
            agrees=router.decides,
            statements=skipped_statements(
                self.pipeline, self.origin, lambda schema, table: bool(router.route(schema, table))
            ),
            maps=router.maps,
            maps_name=router.maps_name,
        )

    def table_loading(self, job: LoadJob) -> TableLoading:
        """The load of whole tables, alongside the stream."""
        pipeline, target, router = self.pipeline, self.target, self.router
        back, unpassed = "", None
        if router.decides:  # a checked file has a pipeline of the other direction then
            other = next(p.name for p in self.file.pipelines if p.name != pipeline.name)
            back = f"{self.file.channel}/{other}"
            conflicts = target.conflicts()
            unpassed = (
                None if conflicts is None else partial(conflicts.unpassed, self.leadership.key)
            )
        return TableLoading(
            job,
            self.leadership,
            self.progress,
            self.clock,
            router=router,
            tables=self.tables,
            latest=self.source.latest if self.origin.has_end else None,
            catching_up=self.catching_up,
            holds_rows=target.holds_rows,
            requests=self.requests,
            wanted=router.entries_to_load(every=pipeline.source.loads_tables),
            limits=pipeline.load_limits,
            back=back,
            unpassed=unpassed,
            replica=target.farthest_replica if isinstance(target, ReplicatedTarget) else None,
        )

    def table_creation(self) -> TableCreating | None:
        """What creates target tables, if the channel file asks for it."""
        if not self.router.creates:
            return None
        if not isinstance(self.target, CreatingTarget):
            raise nothing_to_create()
        return TableCreating(
            creation=self.target.table_creation(self.ddl_context),
            tables=self.tables,
            router=self.router,
            computed=lambda route, schema: analyse(self.spark.session, route, schema).outputs,
            end=partial(version_at_end, self.source),
            will_reload=self.reloads,
            leadership=self.leadership,
            check=None if self.identities is None else self.identities.check,
            at_changes=not (self.replicates and self.target.runs_statements),
        )

    def verification(self, work: EtlWork) -> Verifier | None:
        """What compares tables while the run goes on, if the channel file asks for it."""
        if self.file.verification(self.pipeline.name) is None:
            return None
        return standing_verification(
            self.file,
            self.leadership,
            arbiter=self.arbiter,
            spark=self.spark,
            progress=self.progress,
            clock=self.clock,
            latest=self.source.latest,
            look_at_loads=work.look_at_loads,
        )
