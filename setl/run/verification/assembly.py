"""Builds the standing verification of a pipeline from its channel file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from arbiter.arbiter import Arbiter
from arbiter.values import PipelineId
from setl.bulk.position_waiter import PositionWaiter
from setl.bulk.range_comparison import RangeComparer
from setl.channel.file import ChannelFile, Pipeline
from setl.clock import Clock
from setl.errors import ConfigurationError
from setl.model.leadership import Leadership
from setl.model.position import Position
from setl.run.measured.progress import Progress
from setl.run.table_loads.requests import StoredLoadRequests
from setl.run.targets.shared import writers_beside
from setl.run.verification.compared_source import stream_end
from setl.run.verification.comparers import standing_comparers
from setl.run.verification.opposite import Opposite, opposite_pipelines
from setl.run.verification.parts import VerifyingParts
from setl.run.verification.spark_jobs import VerificationJobs
from setl.run.verification.store import StoredVerification
from setl.run.verification.verifier import Verifier
from setl.systems.registry import system_of
from setl.transform.spark_on_demand import SparkOnDemand


def standing_verification(
    file: ChannelFile,
    leadership: Leadership,
    *,
    arbiter: Arbiter,
    spark: SparkOnDemand,
    progress: Progress,
    clock: Clock,
    latest: Callable[[], Position],
    look_at_loads: Callable[[], None],
) -> Verifier:
    """The standing verification of one leadership; nothing is connected yet.

    Args:
        file: the channel; its file asks for it.
        leadership: of which pipeline.
        arbiter: a session.
        spark: where jobs run.
        progress: is told how it does, and tells how the run does.
        clock: for all times.
        latest: asks for the end of the source's stream, see `Source.latest`.
        look_at_loads: tells the run that there are new requests to load rows.

    Raises:
        ConfigurationError: the channel has no such pipeline, or the file does not ask for it.
    """
    name = leadership.pipeline
    pipeline, settings = file.pipeline(name), file.verification(name)
    if settings is None:
        raise ConfigurationError(f"{leadership.key} is not to be verified")
    origin, ident = system_of(pipeline.source), PipelineId(file.channel, name)
    jobs = VerificationJobs(spark, leadership)
    others = opposite_pipelines(file, pipeline)
    opposite = Opposite(file.channel, others, arbiter=arbiter, nid=leadership.nid, clock=clock)
    parts = VerifyingParts(
        settings=settings,
        limits=pipeline.load_limits,
        comparers=partial(_comparers, jobs, spark, pipeline),
        end=partial(stream_end, pipeline, latest),
        passed=origin.passed,
        tables=partial(origin.tables, logged=pipeline.target.holds_documents),
        requests=StoredLoadRequests(arbiter, ident),
        look_at_loads=look_at_loads,
        store=StoredVerification(arbiter, ident),
        opposite=opposite.wait if others else None,
        background=partial(writers_beside, arbiter, ident, pipeline),
        cancel=jobs.cancel,
    )
    return Verifier(parts, leadership, progress, clock)


def _comparers(
    jobs: VerificationJobs, spark: SparkOnDemand, pipeline: Pipeline, waiter: PositionWaiter
) -> list[RangeComparer]:
    jobs.begin()
    return standing_comparers(spark, pipeline, waiter)
