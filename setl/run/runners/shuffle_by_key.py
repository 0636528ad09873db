"""A large load: transform side by side, deal the rows out by key, then load side by side.

In a Spark job each, and the shares come through the driver in between. They are small after
compaction, so this takes less time than a shuffle, which goes through files; and while rows are
decoded nothing can be written yet, whatever goes wrong with a task.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark import RDD, SparkContext

from setl.load.sink import LoadTicket, SinkSettings
from setl.run.runners.runner import LoadState, Phase
from setl.run.runners.tasks import TaskReport, load, shuffle_partition
from setl.run.runners.work import LoadWork, TableRoute, insert_partitions
from setl.run.spark.shared_memory import Hand, handing_over
from setl.transform.expressions import ExpressionBranch
from setl.transform.packing import packed
from setl.transform.partition import Shuffled
from setl.transform.work import TransformPlan


class ShuffleByKey:
    """The `LoadRunner` of large loads."""

    def __init__(
        self,
        context: SparkContext,
        branches: Mapping[TableRoute, ExpressionBranch],
        sink: SinkSettings,
        state: LoadState,
    ) -> None:
        """Nothing is run yet.

        Args:
            context: where to run it.
            branches: the branch of each route with expressions; others may be added.
            sink: where to.
            state: is reported when its tasks begin to write.
        """
        self._context = context
        self._branches = branches
        self._sink = sink
        self._state = state

    def run(
        self, plan: TransformPlan, work: LoadWork, ticket: LoadTicket, tasks: int
    ) -> list[TaskReport]:
        """See `LoadRunner.run`."""
        self._state.phase = Phase.TRANSFORM
        by_slot: dict[int, list[bytes]] = {}
        sink = self._sink
        with handing_over(self._context) as hand:
            for slot, partition in self._shuffled(plan, work, tasks, hand):
                by_slot.setdefault(slot, []).append(hand(partition))
            self._state.refuse_if_cancelled()
            self._state.phase = Phase.LOAD
            loading = self._context.parallelize(list(by_slot.items()), len(by_slot))
            return loading.map(lambda part: load(sink, ticket, *part)).collect()

    def _shuffled(self, plan: TransformPlan, work: LoadWork, tasks: int, hand: Hand) -> Shuffled:
        partitions: list[RDD[tuple[int, bytes]]] = []
        if work.plain:
            cut = insert_partitions(work.plain, tasks)
            blobs = [hand(packed(insert_partition)) for insert_partition in cut]
            partitions.append(
                self._context.parallelize(blobs, len(blobs)).flatMap(
                    lambda items: shuffle_partition(plan, items, tasks)
                )
            )
        for table_route, items in work.by_branch.items():
            frame = self._branches[table_route].partitions(
                plan, insert_partitions(items, tasks), tasks
            )
            partitions.append(frame.rdd.map(lambda row: (int(row[0]), bytes(row[1]))))
        return (
            partitions[0] if len(partitions) == 1 else self._context.union(partitions)
        ).collect()
