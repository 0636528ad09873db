"""A small load without expressions: one task does everything, without a shuffle."""

from __future__ import annotations

import pickle
from typing import Any, Final

from pyspark import RDD, SparkContext

from setl.load.sink import LoadTicket, SinkSettings
from setl.run.runners.tasks import TaskReport, load, transform
from setl.run.runners.work import LoadWork
from setl.run.spark.job_property import Instructions, instructing, instructions_of_job, takes_rows
from setl.run.spark.one_partition import collect_one
from setl.transform.work import TransformPlan

MOST_BYTES: Final = 128 * 1024
"""Size of a load above which it is no property of a job; for one, calls count for little."""


class OneTask:
    """The `LoadRunner` of small loads."""

    def __init__(self, context: SparkContext, plan: TransformPlan, sink: SinkSettings) -> None:
        """Nothing is run yet.

        Args:
            context: where to run it.
            plan: the pipeline's; each load brings its own `applied_through` and `excluded`.
            sink: where to.
        """
        self._context = context
        self._plan = plan
        self._sink = sink
        self._allowed = takes_rows(context)
        self._prepared: RDD[TaskReport] | None = None

    def run(
        self, plan: TransformPlan, work: LoadWork, ticket: LoadTicket, tasks: int
    ) -> list[TaskReport] | None:
        """See `LoadRunner.run`."""
        if tasks > 1 or work.by_branch:
            return None
        sink, ready = self._sink, work.ready
        plain = pickle.dumps(work.plain, protocol=5)
        if sum(map(len, (plain, *ready))) <= MOST_BYTES and self._allowed:
            own = Instructions(plan.applied_through, plan.excluded, ticket, plain, ready)
            with instructing(self._context, own):
                return collect_one(self._again_and_again())

        def transform_and_load(items: bytes) -> TaskReport:
            return _transform_and_load(plan, sink, ticket, items, ready)

        return collect_one(self._context.parallelize([plain], 1).map(transform_and_load))

    def _again_and_again(self) -> RDD[TaskReport]:
        """What runs any load, as its instructions say."""
        if self._prepared is None:
            plan, sink = self._plan, self._sink

            def follow_instructions(_: Any) -> TaskReport:
                own = instructions_of_job()
                return _transform_and_load(own.plan(plan), sink, own.ticket, own.plain, own.ready)

            self._prepared = self._context.parallelize([0], 1).map(follow_instructions)
        return self._prepared


def _transform_and_load(
    plan: TransformPlan, sink: SinkSettings, ticket: LoadTicket, items: bytes, ready: list[bytes]
) -> TaskReport:
    return load(sink, ticket, 0, [*ready, *transform(plan, items)])
