"""Entries as work for tasks: by the routes of their tables, and few items instead of many.

An entry of one row costs the driver, and the task that gets it, as much as one of a hundred rows.
Where transactions are small or change several tables in turn, a load has nearly as many entries
as rows. Tasks treat each table by itself, so there the entries of one table are joined, over
whatever else lies between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from setl.channel.routes.routing import Route
from setl.codec.row_codec import RowCodec
from setl.extract.extractor import RoutedRows
from setl.model.entry import Entry
from setl.model.position import BinlogPosition, Position
from setl.run.runners.work import LoadWork, TableRoute
from setl.transform.work import TransformPlan, WorkItem, codec_named

# Enough that items no longer count, and little enough that they are distributed evenly.
_MOST_BYTES: Final = 64 * 1024

VersionOf = Callable[[Position], int]


class SortedRoutes(NamedTuple):
    """The routes of a table.

    Attributes:
        plain: indexes of those that need no Spark SQL.
        evaluated: those with expressions.
    """

    plain: tuple[int, ...]
    evaluated: list[TableRoute]


class Sorting:
    """Sorts out entries for the loads of one pipeline."""

    def __init__(self, plan: TransformPlan, evaluated: Callable[[TableRoute, Route], None]) -> None:
        """Sort out by a plan.

        Args:
            plan: of the pipeline.
            evaluated: called with each route with expressions that a table goes by.
        """
        self._codec = codec_named(plan.codec)
        # What both sites write is looked at in the order in which it was written, with what they
        # tell each other about it, which is another table.
        self._in_order = plan.router.decides
        self._evaluated = evaluated

    def routes(self, name: tuple[str, str], routes: Iterable[Route]) -> SortedRoutes:
        """Sort the routes of a table."""
        plain: list[int] = []
        evaluated: list[TableRoute] = []
        for route in routes:
            if route.expressions or route.where:
                table_route = (route.index, *name)
                self._evaluated(table_route, route)
                evaluated.append(table_route)
            else:
                plain.append(route.index)
        return SortedRoutes(tuple(plain), evaluated)

    def work(self, rows: Sequence[RoutedRows], version_of: VersionOf) -> LoadWork:
        """The work of a load; entries of one table stay in source order.

        Args:
            rows: the entries, in source order.
            version_of: gives the version of a position, see `LoadTicket.version_of`.
        """
        work = LoadWork()
        codec, in_order = self._codec, self._in_order
        joins = codec.joins
        tables: dict[tuple[str, str], _Together] = {}
        for entry, routes in rows:
            name = (entry.schema, entry.table)
            together = tables.get(name)
            if together is None:
                together = tables[name] = _Together(codec, name, self.routes(name, routes), entry)
            joinable = not in_order and joins(entry.payload, entry.position.offset)
            if joinable and together.takes(entry):
                continue
            if together.payloads:
                work.add(together.item(version_of), *together.routes)
            together.begin(entry)
            if not joinable:
                work.add(together.item(version_of), *together.routes)
        for together in tables.values():
            if together.payloads:
                work.add(together.item(version_of), *together.routes)
        return work


class _Together:
    """Entries of one table that are being joined; none between two items."""

    __slots__ = (
        "_codec",
        "_context",
        "_name",
        "_position",
        "_room",
        "_stream",
        "payloads",
        "routes",
    )

    def __init__(
        self, codec: RowCodec, name: tuple[str, str], routes: SortedRoutes, first: Entry
    ) -> None:
        """Nothing is joined yet, not even the first entry."""
        self._codec = codec
        # One object for each table: it is pickled once then, and not with each item.
        self._name = name
        self.routes = routes
        self.payloads: list[tuple[int, bytes]] = []
        self._room = -1  # nothing can be joined to nothing
        self._context = first.context
        self._position = first.position
        self._stream = ""

    def takes(self, entry: Entry) -> bool:
        """Join an entry to those that are there; False, and nothing is done, if it may not be."""
        position, payload = entry.position, entry.payload
        size = len(payload)
        if (
            size > self._room
            or entry.context is not self._context
            or _stream(position) != self._stream
        ):
            return False
        self.payloads.append((position.offset, payload))
        self._room -= size
        self._position = position
        return True

    def begin(self, entry: Entry) -> None:
        """Begin with an entry; there is none."""
        self._position, self._context = entry.position, entry.context
        self._stream = _stream(entry.position)
        self.payloads.append((entry.position.offset, entry.payload))
        self._room = max(0, _MOST_BYTES - len(entry.payload))

    def item(self, version_of: VersionOf) -> WorkItem:
        """What was joined, as one item; then there is nothing."""
        payloads, self.payloads, self._room = self.payloads, [], -1
        payload = payloads[0][1] if len(payloads) == 1 else self._codec.join(payloads)
        return WorkItem((), version_of(self._position), self._context, payload, self._name)


def _stream(position: Position) -> str:
    """In what its offset counts."""
    return position.file if isinstance(position, BinlogPosition) else position.topic
