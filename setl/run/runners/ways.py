"""How a load is run: the first way of a table that takes loads of its kind.

| way | takes | gains |
|---|---|---|
| `ItemByItem` | ranges of tables, which tasks read | no row passes the driver |
| `OneTask` | small loads | one job that was made before, no shuffle |
| `PreparedQueries` | small loads with expressions | the query was made before |
| `OneQuery` | the same, where none can be made before | one task for all |
| `InsertPartitions` | new rows alone | one job; a piece is read while one is written |
| `TableByTable` | several tables of about the same size | one job |
| `ShuffleByKey` | everything | tasks decode and write side by side, whatever the keys |

Whether a load is small says who runs it, by the number of tasks.
"""

from __future__ import annotations

from collections.abc import Mapping

from setl.load.sink import LoadTicket, SinkSettings
from setl.run.runners.insert_partitions import InsertPartitions
from setl.run.runners.item_by_item import ItemByItem
from setl.run.runners.one_query import OneQuery
from setl.run.runners.one_task import OneTask
from setl.run.runners.prepared_queries import PreparedQueries
from setl.run.runners.runner import LoadRunner, LoadState
from setl.run.runners.shuffle_by_key import ShuffleByKey
from setl.run.runners.table_by_table import TableByTable
from setl.run.runners.tasks import TaskReport
from setl.run.runners.work import LoadWork, TableRoute
from setl.transform.expressions import ExpressionBranch
from setl.transform.spark_on_demand import SparkOnDemand
from setl.transform.work import TransformPlan, codec_named


class Ways:
    """All ways to run loads of one pipeline."""

    def __init__(
        self,
        spark: SparkOnDemand,
        plan: TransformPlan,
        branches: Mapping[TableRoute, ExpressionBranch],
        sink: SinkSettings,
        state: LoadState,
    ) -> None:
        """Nothing is run yet.

        Args:
            spark: where to run it.
            plan: the pipeline's; each load brings its own `applied_through` and `excluded`.
            branches: the branch of each route with expressions; others may be added.
            sink: where to.
            state: is reported when tasks may write.
        """
        context = spark.context
        self._table: tuple[LoadRunner, ...] = (
            ItemByItem(context, branches, sink, state),
            OneTask(context, plan, sink),
            PreparedQueries(spark, plan, branches, sink),
            OneQuery(branches, sink),
            InsertPartitions(context, codec_named(plan.codec), sink, state),
            TableByTable(context, sink, state),
            ShuffleByKey(context, branches, sink, state),
        )

    def run(
        self, plan: TransformPlan, work: LoadWork, ticket: LoadTicket, tasks: int
    ) -> list[TaskReport]:
        """Run a load; see `LoadRunner.run`."""
        for way in self._table:
            reports = way.run(plan, work, ticket, tasks)
            if reports is not None:
                return reports
        raise RuntimeError("no way takes a load")
