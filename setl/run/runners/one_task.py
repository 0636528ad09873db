"""A small load without expressions: one task does everything, without a shuffle."""

from __future__ import annotations

import pickle

from pyspark import SparkContext

from setl.load.sink import LoadTicket, SinkSettings
from setl.run.load_work import LoadWork
from setl.run.tasks import TaskReport, deal_stretch, load
from setl.transform.work import TransformPlan


class OneTask:
    """The `LoadRunner` of small loads."""

    def __init__(self, context: SparkContext, sink: SinkSettings) -> None:
        """Nothing is run yet."""
        self._context = context
        self._sink = sink

    def run(
        self,
        plan: TransformPlan,
        work: LoadWork,
        ticket: LoadTicket,
        tasks: int,  # noqa: ARG002
    ) -> list[TaskReport]:
        """See `LoadRunner.run`."""
        sink, ready = self._sink, work.ready

        def transform_and_load(items: bytes) -> TaskReport:
            dealt = deal_stretch(plan, items, 1)
            return load(sink, ticket, 0, [*ready, *(share for _, share in dealt)])

        shares = [pickle.dumps(work.plain, protocol=5)]
        return self._context.parallelize(shares, 1).map(transform_and_load).collect()
