"""Loads in which rows of other moments may go, where one of them conflicts with another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from setl.bulk.source_reader import SourceTables
from setl.channel.routes.routing import Router
from setl.errors import CollisionError
from setl.extract.extractor import RoutedRows
from setl.load.sink import LoadTicket
from setl.model.loaded import Loaded
from setl.run.targets.joined import NamedRoute, with_targets_of_their_own


@dataclass(frozen=True, slots=True)
class CatchingUp:
    """Runs a load, and once more with `LoadTicket.catching_up` if a row conflicts with another.

    Rows of other moments are those of tables that are loaded as a whole, and those that are read at
    the source. Of which of these tables rows may go is asked when it matters, and each time: unique
    keys may be dropped at the source and made at the target at any time.

    Attributes:
        router: which tables go where.
        tables: opens the tables of the source; gives None if nobody can read them.
        agreeing: see `TargetSystem.agreeing_tables`.
        isolates: whether a row that another one conflicts with is put aside, so that no error
            tells of it.
    """

    router: Router
    tables: Callable[[], AbstractContextManager[SourceTables] | None]
    agreeing: Callable[[Sequence[NamedRoute]], frozenset[str]]
    isolates: bool = False

    def load(
        self,
        run: Callable[[LoadTicket], Loaded],
        ticket: LoadTicket,
        loading: Sequence[NamedRoute],
        rows: Sequence[RoutedRows] = (),
    ) -> Loaded:
        """Run a load.

        Args:
            run: runs it; may be called twice, and what it raises is raised.
            ticket: its ticket.
            loading: the tables in it that are loaded as a whole now, see `TableLoading.alone`.
            rows: its rows if they come from the stream.
        """
        reread = _reread(rows) if self.router.rereads else ()
        if not (loading or reread):
            return run(ticket)
        if not self.isolates:
            try:
                return run(ticket)
            except CollisionError:
                tables = self._agreeing(loading, reread)
                if not tables:
                    raise
        else:
            tables = self._agreeing(loading, reread)
        return run(replace(ticket, catching_up=tables))

    def _agreeing(
        self, loading: Sequence[NamedRoute], reread: Sequence[NamedRoute]
    ) -> frozenset[str]:
        opened = self.tables() if reread else None
        if opened is not None:
            with opened as source:
                alone = with_targets_of_their_own(reread, source.names(), self.router)
            loading = [*loading, *alone]
        return self.agreeing(loading) if loading else frozenset()


def _reread(rows: Sequence[RoutedRows]) -> Sequence[NamedRoute]:
    """The tables of rows that are read at the source, with their routes."""
    named = {
        (entry.schema, entry.table, route.index): ((entry.schema, entry.table), route)
        for entry, routes in rows
        for route in routes
        if route.rereads
    }
    return [*named.values()]
