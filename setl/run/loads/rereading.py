"""Loads of rows that are read at the source, where one of them conflicts with another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from setl.bulk.source_reader import SourceTables
from setl.channel.routes.routing import Router
from setl.extract.extractor import RoutedRows
from setl.load.sink import LoadTicket
from setl.model.loaded import Loaded
from setl.run.loads.catching_up import load_catching_up
from setl.run.targets.joined import NamedRoute, with_targets_of_their_own


@dataclass(frozen=True, slots=True)
class Rereading:
    """Runs loads in which rows of other moments may go, as `LoadTicket.catching_up` has it.

    Which tables these are is asked when it matters, and for each reload. A unique key that the
    source does not have may be made at any time, and no row may go for that one.

    Attributes:
        router: which tables go where.
        tables: opens the tables of the source; gives None if nobody can read them.
        agreeing: see `TargetSystem.agreeing_tables`.
        isolates: whether a row that another one conflicts with is put aside, so that no
            error tells of it.
    """

    router: Router
    tables: Callable[[], AbstractContextManager[SourceTables] | None]
    agreeing: Callable[[Sequence[NamedRoute]], frozenset[str]]
    isolates: bool = False

    def load(
        self,
        rows: Sequence[RoutedRows],
        ticket: LoadTicket,
        load: Callable[[LoadTicket], Loaded],
    ) -> Loaded:
        """Load rows; may call `load` twice, and raises what it raises."""
        named = {
            (entry.schema, entry.table, route.index): ((entry.schema, entry.table), route)
            for entry, routes in rows
            for route in routes
            if route.rereads
        }
        return load_catching_up(
            ticket,
            load,
            lambda: self._agreeing([*named.values()]),
            at_once=bool(named) and self.isolates,
        )

    def _agreeing(self, named: Sequence[NamedRoute]) -> frozenset[str]:
        opened = self.tables() if named else None
        if opened is None:
            return frozenset()
        with opened as there:
            alone = with_targets_of_their_own(named, there.names(), self.router)
        return self.agreeing(alone)
