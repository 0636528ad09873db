"""What a load has to do, and how it is cut for the tasks that transform it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

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

    @property
    def reads_tables(self) -> bool:
        """Whether tasks read the rows from tables; all of them, or none."""
        return any(
            item.table_rows is not None
            for items in (self.plain, *self.by_branch.values())
            for item in items[:1]
        )

    def add(self, item: WorkItem, plain: tuple[int, ...], evaluated: Iterable[TableRoute]) -> None:
        """Add an entry.

        Args:
            item: the entry; its routes are not looked at.
            plain: indexes of its routes that need no Spark SQL.
            evaluated: its other routes.
        """
        if plain:
            self.plain.append(item._replace(routes=plain))
        for table_route in evaluated:
            self.by_branch.setdefault(table_route, []).append(
                item._replace(routes=(table_route[0],))
            )


_WORTH_A_PIECE: Final = 1024 * 1024  # bytes: 500 rows of 2 KB, of which fewer cost more by column
_MOST_PIECES: Final = 4


def insert_partitions(items: list[WorkItem], count: int) -> list[list[WorkItem]]:
    """Cut items into at most `count` stretches of about the same number of bytes, in order."""
    if count == 1:
        return [items]
    size = max(1, sum(len(item.payload) for item in items) / count)
    ends = [size * number for number in range(1, count)]
    result: list[list[WorkItem]] = [[]]
    seen = passed = 0
    for item in items:
        if result[-1] and passed < len(ends) and seen >= ends[passed]:
            result.append([])
            passed = bisect_right(ends, seen)
        result[-1].append(item)
        seen += len(item.payload)
    return result


def pieces(items: list[WorkItem]) -> list[list[WorkItem]]:
    """Cut the items of one task, in order.

    So one piece can be transformed while the one before it is written.
    """
    total = sum(len(item.payload) for item in items)
    return insert_partitions(items, max(1, min(_MOST_PIECES, total // _WORTH_A_PIECE)))
