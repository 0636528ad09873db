"""A large load of several tables: each task transforms and loads whole tables.

What `ShuffleByKey` does with the changes of one key, this does with those of one table: all of them
meet in one task, which keeps the last of each key and writes it. So nothing has to be distributed
in between: survivors pass through no second process, and the load is one Spark job instead of two.

What may be in each other's way stays together, whatever is said of it elsewhere: all that goes to
one target, by whichever entry and from whichever table, and all tables of a group. Within a task
they are what they are in a load of one task. Between tasks nothing is in order, as ever: tables
that are in no group may be seen ahead of each other.

A task may write before another one finds that it cannot read its rows, as in `InsertPartitions`.
The load is not acknowledged then, and what was written comes again.

Loads in which a few tables have most of the bytes are shuffled by key: tasks would wait for one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Final

from pyspark import SparkContext

from setl.load.sink import LoadTicket, SinkSettings
from setl.run.runners.runner import LoadState, Phase
from setl.run.runners.tasks import TaskReport, load, transform
from setl.run.runners.work import LoadWork
from setl.run.spark.shared_memory import handing_over
from setl.transform.packing import packed
from setl.transform.work import TransformPlan, WorkItem

MOST_UNEVEN: Final = 1.4
"""How many times its even share one task may have. To deal rows out costs about as much more."""


class TableByTable:
    """The `LoadRunner` of large loads of several tables."""

    def __init__(self, context: SparkContext, sink: SinkSettings, state: LoadState) -> None:
        """Nothing is run yet.

        Args:
            context: where to run it.
            sink: where to.
            state: is reported when tasks may write.
        """
        self._context = context
        self._sink = sink
        self._state = state

    def run(
        self, plan: TransformPlan, work: LoadWork, ticket: LoadTicket, tasks: int
    ) -> list[TaskReport] | None:
        """See `LoadRunner.run`."""
        shuffled = by_task(plan, work, tasks)
        if not shuffled:
            return None
        self._state.phase = Phase.BOTH
        sink = self._sink

        def load_tables(slot: int, mine: Iterable[bytes]) -> Iterator[TaskReport]:
            for items in mine:
                yield load(sink, ticket, slot, transform(plan, items))

        with handing_over(self._context) as hand:
            blobs = [hand(packed(items)) for items in shuffled]
            tables = self._context.parallelize(blobs, len(blobs))
            return tables.mapPartitionsWithIndex(load_tables).collect()


def by_task(plan: TransformPlan, work: LoadWork, tasks: int) -> list[list[WorkItem]]:
    """The items of each task, in order; none at all if they have to be shuffled by key.

    That is also so where rows are decided about in one order, or are read at their source, which
    takes as long as it takes there.
    """
    if work.by_branch or work.ready or plan.router.decides:
        return []
    together = _Together()
    sizes: dict[tuple[str, str], int] = {}
    seen: set[tuple[tuple[str, str], tuple[int, ...]]] = set()
    for item in work.plain:
        table, routes = item.table, item.routes
        if (table, routes) not in seen:
            seen.add((table, routes))
            ways = [way for way in plan.router.route(*table) if way.index in routes]
            if len(ways) < len(routes) or any(way.rereads or way.documents for way in ways):
                return []
            for way in ways:
                together.join(("from", table), ("to", way.target))
                if way.group is not None:
                    together.join(("from", table), ("group", way.group))
        sizes[table] = sizes.get(table, 0) + len(item.payload)
    parts: dict[Hashable, int] = {}
    for table, size in sizes.items():
        part = together.of(("from", table))
        parts[part] = parts.get(part, 0) + size
    loads = [0] * tasks
    homes: dict[Hashable, int] = {}
    for part, size in sorted(parts.items(), key=lambda pair: -pair[1]):
        homes[part] = home = loads.index(min(loads))
        loads[home] += size
    if max(loads) * tasks > MOST_UNEVEN * sum(loads):
        return []
    shuffled: list[list[WorkItem]] = [[] for _ in loads]
    for item in work.plain:
        shuffled[homes[together.of(("from", item.table))]].append(item)
    return [items for items in shuffled if items]


class _Together:
    """What belongs to one part: a forest in which each part is a tree."""

    def __init__(self) -> None:
        self._above: dict[Hashable, Hashable] = {}

    def of(self, one: Hashable) -> Hashable:
        """The part that something belongs to."""
        while (above := self._above.get(one, one)) != one:
            one = above
        return one

    def join(self, one: Hashable, other: Hashable) -> None:
        """Make one part of two."""
        self._above[self.of(one)] = self.of(other)
