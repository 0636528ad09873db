"""A load of ranges of tables: each item in a task of its own, from reading to writing.

Items have no key in common, so nothing has to be distributed: no row goes through the driver.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark import SparkContext, TaskContext

from setl.load.sink import LoadTicket, SinkSettings
from setl.run.runners.range_task import load_range
from setl.run.runners.runner import LoadState
from setl.run.runners.tasks import NOTHING, TaskReport, load
from setl.run.runners.work import LoadWork, TableRoute
from setl.transform.expressions import ExpressionBranch
from setl.transform.work import TransformPlan


class ItemByItem:
    """The `LoadRunner` of rows that tasks read from tables."""

    def __init__(
        self,
        context: SparkContext,
        branches: Mapping[TableRoute, ExpressionBranch],
        sink: SinkSettings,
        state: LoadState,
    ) -> None:
        """Nothing is run yet; see `ShuffleByKey`."""
        self._context = context
        self._branches = branches
        self._sink = sink
        self._state = state

    def run(
        self, plan: TransformPlan, work: LoadWork, ticket: LoadTicket, tasks: int
    ) -> list[TaskReport] | None:
        """See `LoadRunner.run`; a task takes several items, one after another, if there are more.

        The routes of an item are loaded one after another.
        """
        if not work.reads_tables:
            return None
        reports: list[TaskReport] = []
        sink = self._sink
        if work.plain:
            blobs = [pickle.dumps(item, protocol=5) for item in work.plain]

            def transform_and_load(slot: int, mine: Iterable[bytes]) -> Iterator[TaskReport]:
                for blob in mine:
                    yield load_range(sink, plan, ticket, slot, blob)

            items = self._context.parallelize(blobs, min(tasks, len(blobs)))
            reports += items.mapPartitionsWithIndex(transform_and_load).collect()
        for table_route, branch_items in work.by_branch.items():
            self._state.refuse_if_cancelled()

            def load_partitions(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                task = TaskContext.get()
                slot = 0 if task is None else task.partitionId()
                partitions = [
                    partition
                    for batch in batches
                    for partition in batch.column("partition").to_pylist()
                ]
                report = load(sink, ticket, slot, partitions) if partitions else TaskReport(NOTHING)
                blob = pickle.dumps(report, protocol=5)
                yield pa.RecordBatch.from_arrays([pa.array([blob], pa.binary())], names=["report"])

            cut = [branch_items[i::tasks] for i in range(min(tasks, len(branch_items)))]
            frame = self._branches[table_route].partitions(plan, cut, 1)
            collected = frame.mapInArrow(load_partitions, "report binary").collect()
            reports += [pickle.loads(row[0]) for row in collected]  # noqa: S301 - our own task's
        return reports
