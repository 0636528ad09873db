"""Compaction by column: of tables with many changes, without decoding a row.

The last change of each key is found among the bytes of all changes of a table at once. What is left
stays bytes (`ColumnRows`) until a target gets it that takes columns, and is decoded by column for
all others. Where that does not say the same as decoding row by row, nothing is taken: the changes
of the whole table go row by row then, which also says what is wrong with them. So a table is either
taken here from its first change to its last, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from setl.channel.routes.routing import Route
from setl.codec.columns.column_rows import MOST_BYTES, ColumnRows
from setl.codec.columns.last_states import last_states
from setl.codec.row_codec import DAMAGED, RowCodec
from setl.errors import ConfigurationError, DataError
from setl.model.schema import RowSchema
from setl.transform.survivors import Survivors
from setl.transform.work import TransformPlan, WorkItem

COLUMN_ROWS: Final = 120
"""Changes of a table of eight columns in a task from which on they are taken by column."""

_MOST_AT_ONCE: Final = 1 << 26  # bytes of a table: they are in memory three times
_FEW_COLUMNS: Final = 8
_MANY_COLUMNS: Final = 16

TableRoute = tuple[int, tuple[str, str]]
"""A route's index, and schema and table of what goes by it."""

KeyOf = Callable[[Route], Callable[[RowSchema], tuple[int, ...]]]
"""Gives what finds the indexes of the key's columns in the rows that go by a route."""


class ByColumn(NamedTuple):
    """What was taken, and what was not.

    Attributes:
        survivors: of each table and route that was taken.
        rows: row changes taken.
        redelivered: of these, changes that were applied before.
        rest: what is to be taken row by row, in the order given.
    """

    survivors: dict[TableRoute, tuple[Route, RowSchema, Survivors]]
    rows: int
    redelivered: int
    rest: list[WorkItem]


def compact_by_column(
    plan: TransformPlan, codec: RowCodec, items: Sequence[WorkItem], key_of: KeyOf
) -> ByColumn:
    """Take the changes of the tables that have many, if they are of the plain kind.

    Args:
        plan: says how many changes are worth it, and where they go.
        codec: of the items.
        items: of one task, in stream order.
        key_of: what identifies rows; may raise for a table without a key.
    """
    if plan.column_rows is None or plan.excluded:
        return ByColumn({}, 0, 0, list(items))
    taken: dict[TableRoute, tuple[Route, RowSchema, Survivors]] = {}
    rows = redelivered = 0
    for table, own in _by_table(items).items():
        route = _plain_route(plan, table)
        if route is None or any(not _is_plain(item, own[0]) for item in own):
            continue
        # Whatever it is, it is found again and named where rows are decoded one by one.
        with suppress(DataError, ConfigurationError, *DAMAGED):
            done = _Table(plan, codec, route, own).compacted(key_of(route), plan.column_rows)
            if done is not None:
                taken[table] = route, done.survivors.schema, done.survivors
                rows += done.rows
                redelivered += done.redelivered
    rest = [item for item in items if not taken.keys() & _tables_of(item)]
    return ByColumn(taken, rows, redelivered, rest)


def _tables_of(item: WorkItem) -> set[TableRoute]:
    return {(index, item.table) for index in item.routes}


def _by_table(items: Sequence[WorkItem]) -> dict[TableRoute, list[WorkItem]]:
    found: dict[TableRoute, list[WorkItem]] = {}
    for item in items:
        for index in item.routes:
            found.setdefault((index, item.table), []).append(item)
    return found


def _is_plain(item: WorkItem, first: WorkItem) -> bool:
    """Whether an item holds undecoded changes of the same table as the first, for one route."""
    undecoded = item.decoded is None and item.table_rows is None and len(item.routes) == 1
    return undecoded and item.context == first.context


def _plain_route(plan: TransformPlan, table: TableRoute) -> Route | None:
    """The route, if of what goes by it the last change of each row is all that is needed."""
    index, name = table
    if not name[1]:
        return None
    route = next((r for r in plan.router.route(*name) if r.index == index), None)
    if route is None or route.documents or route.processor:
        return None
    return None if route.rereads or route.skips_unchanged else route


def _takes_columns(plan: TransformPlan, route: Route) -> bool:
    """Whether what is left of a route's changes is wanted as columns, not as rows."""
    return plan.takes_columns and not (route.expressions or route.where)


class _Compacted(NamedTuple):
    survivors: Survivors
    rows: int
    redelivered: int


class _Table(NamedTuple):
    """The changes of one table that go by one route."""

    plan: TransformPlan
    codec: RowCodec
    route: Route
    items: Sequence[WorkItem]

    def compacted(
        self, key_of: Callable[[RowSchema], tuple[int, ...]], least_rows: int
    ) -> _Compacted | None:
        """The last change of each key; None if it is to be found row by row.

        Raises:
            DataError, ConfigurationError, or one of `DAMAGED`: likewise.
        """
        codec, first = self.codec, self.items[0]
        size = sum(len(item.payload) for item in self.items)
        if not 0 < size <= _MOST_AT_ONCE:
            return None
        form = codec.row_form(first.payload, first.context)
        if form is None:
            return None
        # Where there are more columns, fewer rows save as much as the calls cost.
        columns = min(max(len(form.schema.columns), _FEW_COLUMNS), _MANY_COLUMNS)
        least_rows = least_rows * _FEW_COLUMNS // columns
        if least_rows > 1 and codec.likely_rows(first.payload, first.context, size) < least_rows:
            return None
        key = key_of(form.schema)
        found = codec.find_rows(form, [(item.version, item.payload) for item in self.items])
        # Compressed events are longer than they seemed.
        if len(found.starts) < least_rows or len(found.data) > MOST_BYTES:
            return None
        left = last_states(found, key)
        known = found.values if len(left.upserts) == found.values.count else None
        rows = ColumnRows(found, found.starts[left.upserts], values=known)
        rows.values.convert()
        versions = found.versions
        upserts = rows if _takes_columns(self.plan, self.route) else rows.decoded()
        of_upserts = versions[found.events[left.upserts]]
        of_deletes = versions[found.events[left.deletes]]
        through = self.plan.applied_through
        redelivered = 0
        if versions[0] <= through:
            redelivered = int((versions[found.events[left.changes]] <= through).sum())
        survivors = Survivors(
            form.schema,
            key,
            upserts=upserts,
            upsert_versions=of_upserts.tolist(),
            deletes=ColumnRows(found, found.starts[left.deletes]).keys(key),
            delete_versions=of_deletes.tolist(),
        )
        return _Compacted(survivors, len(left.changes), redelivered)
