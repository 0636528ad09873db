"""What a load has to do, and how it is cut for the tasks that transform it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

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


def stretches(items: list[WorkItem], count: int) -> list[list[WorkItem]]:
    """Cut items into at most `count` stretches of about the same number of bytes, in order."""
    if count == 1:
        return [items]
    total = sum(len(item.payload) for item in items)
    limit = max(1, math.ceil(total / count))
    result: list[list[WorkItem]] = [[]]
    size = 0
    for item in items:
        if size >= limit and len(result) < count:
            result.append([])
            size = 0
        result[-1].append(item)
        size += len(item.payload)
    return result
