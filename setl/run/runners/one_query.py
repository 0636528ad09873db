"""A small load with expressions: Spark evaluates them, and the same task loads everything."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame

from setl.load.sink import LoadTicket, SinkSettings
from setl.run.runners.tasks import TaskReport, load, transform
from setl.run.runners.work import LoadWork, TableRoute
from setl.transform.expressions import ExpressionBranch
from setl.transform.work import TransformPlan


class OneQuery:
    """The `LoadRunner` of small loads with expressions that no prepared query is for."""

    def __init__(self, branches: Mapping[TableRoute, ExpressionBranch], sink: SinkSettings) -> None:
        """Nothing is run yet.

        Args:
            branches: the branch of each route with expressions; others may be added.
            sink: where to.
        """
        self._branches = branches
        self._sink = sink

    def run(
        self, plan: TransformPlan, work: LoadWork, ticket: LoadTicket, tasks: int
    ) -> list[TaskReport] | None:
        """See `LoadRunner.run`."""
        if tasks > 1 or not work.by_branch:
            return None
        sink, ready, blob = self._sink, work.ready, pickle.dumps(work.plain, protocol=5)

        def collect_and_load(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            partitions = [
                partition
                for batch in batches
                for partition in batch.column("partition").to_pylist()
            ]
            plain = transform(plan, blob)
            report = pickle.dumps(load(sink, ticket, 0, [*ready, *partitions, *plain]), protocol=5)
            yield pa.RecordBatch.from_arrays([pa.array([report], pa.binary())], names=["report"])

        branches = [(self._branches[at], items) for at, items in work.by_branch.items()]
        frames = [branch.partitions(plan, [items], 1) for branch, items in branches]
        whole = reduce(DataFrame.union, frames).coalesce(1)
        collected = whole.mapInArrow(collect_and_load, "report binary").collect()
        return [pickle.loads(row[0]) for row in collected]  # noqa: S301 - made by our own task
