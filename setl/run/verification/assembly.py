"""Builds the standing verification of a pipeline from its channel file."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from py4j.protocol import Py4JError

from arbiter.arbiter import Arbiter
from arbiter.values import PipelineId
from setl.bulk.position_waiter import PositionWaiter
from setl.bulk.range_comparison import RangeComparer
from setl.channel.file import ChannelFile, Pipeline
from setl.clock import Clock
from setl.errors import ConfigurationError
from setl.log import fields
from setl.model.leadership import Leadership
from setl.model.position import Position
from setl.run.measured.progress import Progress
from setl.run.table_loads.requests import StoredLoadRequests
from setl.run.targets.shared import writers_beside
from setl.run.verification.compared_source import stream_end
from setl.run.verification.comparers import standing_comparers
from setl.run.verification.opposite import Opposite, opposite_pipelines
from setl.run.verification.store import StoredVerification
from setl.run.verification.verifier import Verifier
from setl.systems.registry import system_of
from setl.transform.spark_on_demand import SparkOnDemand

_log = logging.getLogger(__name__)


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
    jobs = _Jobs(spark, leadership)
    others = opposite_pipelines(file, pipeline)
    opposite = Opposite(file.channel, others, arbiter=arbiter, nid=leadership.nid, clock=clock)
    return Verifier(
        leadership,
        progress,
        clock,
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
        others_writing=partial(writers_beside, arbiter, ident, pipeline),
        cancel=jobs.cancel,
    )


def _comparers(
    jobs: _Jobs, spark: SparkOnDemand, pipeline: Pipeline, waiter: PositionWaiter
) -> list[RangeComparer]:
    jobs.begin()
    return standing_comparers(spark, pipeline, waiter)


class _Jobs:
    """Names the jobs of the thread that verifies, so that they share Spark's tasks fairly."""

    def __init__(self, spark: SparkOnDemand, leadership: Leadership) -> None:
        """Nothing runs yet.

        Args:
            spark: where jobs run.
            leadership: on whose behalf. Another one's jobs go on when this one's are cancelled.
        """
        self._context = spark.context
        self._pool = f"setl verify {leadership.key}"
        self._group = f"{self._pool} {leadership.epoch}"

    def begin(self) -> None:
        """Jobs of this thread belong to the group and the pool from now on."""
        # Never interrupt: see `setl.run.loads.job.LoadJob`.
        self._context.setJobGroup(self._group, "standing verification", interruptOnCancel=False)
        self._context.setLocalProperty("spark.scheduler.pool", self._pool)

    def cancel(self) -> None:
        """Cancel what runs; may block while Spark does not answer, so call it from a thread."""
        try:
            self._context.cancelJobGroup(self._group)
        except (Py4JError, OSError) as error:
            # Nothing runs in a JVM that is gone.
            _log.info("verification not cancelled", extra=fields(error=repr(error)))
