"""What a load has to do, and how it is cut for the tasks that transform it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from setl.channel.mark_ids import MAX_SLOTS
from setl.transform.work import WorkItem

TableRoute = tuple[int, str, str]
"""A route's index, and the schema and table that go by it."""


@dataclass(frozen=True, slots=True)
class LoadWork:
    """Entries as work items, in source order.

    Attributes:
        plain: for routes that need no Spark SQL.
        by_branch: for each route with expressions.
        ready: pickled shares that need no Transform.
    """

    plain: list[WorkItem] = field(default_factory=list[WorkItem])
    by_branch: dict[TableRoute, list[WorkItem]] = field(
        default_factory=dict[TableRoute, list[WorkItem]]
    )
    ready: list[bytes] = field(default_factory=list[bytes])

    def add(self, item: WorkItem, plain: tuple[int, ...], evaluated: Iterable[TableRoute]) -> None:
        """Add an entry.

        Args:
            item: the entry; its routes are not looked at.
            plain: indexes of its routes that need no Spark SQL.
            evaluated: its other routes.
        """
        if plain:
            self.plain.append(item._replace(routes=plain))
        for place in evaluated:
            self.by_branch.setdefault(place, []).append(item._replace(routes=(place[0],)))


_WORTH_A_WAVE: Final = 256 * 1024  # bytes; a statement holds about as much
_MOST_WAVES: Final = 4


def stretches(items: list[WorkItem], count: int) -> list[list[WorkItem]]:
    """Cut items into at most `count` stretches of about the same number of bytes, in order."""
    return _cut(items, [1.0] * count)


def staggered(items: list[WorkItem], tasks: int) -> list[list[WorkItem]]:
    """Cut items into stretches, in order, of which `tasks` are worked on at any time.

    A large load has several for each task. The first ones differ in length, so that not all
    tasks transform first, while the target waits, and then wait for the target together.
    """
    total = sum(len(item.payload) for item in items)
    waves = min(_MOST_WAVES, total // (tasks * _WORTH_A_WAVE), MAX_SLOTS // tasks)
    if waves <= 1:
        return stretches(items, tasks)
    first = [(i + 1) / tasks for i in range(tasks)]
    return _cut(items, first + [1.0] * (tasks * (waves - 1)))


def _cut(items: list[WorkItem], shares: Sequence[float]) -> list[list[WorkItem]]:
    """Cut items by these shares of their bytes, into fewer stretches where items are large."""
    if len(shares) == 1:
        return [items]
    a_share = sum(len(item.payload) for item in items) / sum(shares)
    ends = [a_share * upto for upto in accumulate(shares)][:-1]
    result: list[list[WorkItem]] = [[]]
    size = passed = 0
    for item in items:
        if result[-1] and passed < len(ends) and size >= ends[passed]:
            result.append([])
            passed = bisect_right(ends, size)
        result[-1].append(item)
        size += len(item.payload)
    return result
