"""Whether all rows of a target are about to be loaded."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from setl.bulk.source_reader import SourceTables
from setl.channel.routes.routing import Router
from setl.model.load_request import LoadRequest, RequestState
from setl.model.table_load import TableLoad
from setl.model.target_name import target_name
from setl.run.table_loads import choice as load_choice
from setl.run.table_loads.requests import StoredLoadRequests


@dataclass(frozen=True, slots=True)
class Reloads:
    """Tells it from the requests to load tables, and from the load that is under way.

    Attributes:
        requests: what operators and the channel file ask for.
        tables: opens the tables of the source; gives None if nobody can read them.
        router: which tables go where.
    """

    requests: StoredLoadRequests
    tables: Callable[[], AbstractContextManager[SourceTables] | None]
    router: Router

    def __call__(self, name: str, load: TableLoad | None, *, exists: bool) -> bool:
        """Whether every table of the source that goes to a target is yet to be read as a whole.

        Args:
            name: the target, ``schema.table`` or an index.
            load: the load of tables that is under way, or the last one.
            exists: whether there is something under that name, so that it may have rows.

        Raises:
            SetlError: the requests or the source cannot be asked.
        """
        asked = [r for r in self.requests.unanswered() if not (r.into_empty and exists)]
        wide = [r for r in asked if r.state is RequestState.WAITING and not r.narrowed]
        begun = load is not None and load.reads and load.goes_on and not load.narrowed
        mine = [r for r in asked if load is not None and load_choice.carries_out(load, r)]
        if not begun or any(request not in wide for request in mine):
            load = None  # nothing more comes by it
        waiting = [request for request in wide if request not in mine]
        if any(not (request.tables or request.entries) for request in waiting):
            return True
        opened = self.tables() if waiting or load is not None else None
        if opened is None:
            return False
        with opened as source:
            coming = [table for table in source.names() if self._entries(table, name)]
        return bool(coming) and all(self._is_planned(t, name, load, waiting) for t in coming)

    def _is_planned(
        self,
        table: tuple[str, str],
        name: str,
        load: TableLoad | None,
        waiting: list[LoadRequest],
    ) -> bool:
        entries = self._entries(table, name)
        if load is not None and _wants(load, table, entries) and _is_ahead(load, ".".join(table)):
            return True
        return any(_wants(request, table, entries) for request in waiting)

    def _entries(self, table: tuple[str, str], name: str) -> set[str]:
        """Entries of the channel file by which a table's rows go to a target."""
        return {
            self.router.entries[route.index].name
            for route in self.router.route(*table)
            if target_name(route.target) == name and not route.nests(*table)
        }


def _wants(what: LoadRequest | TableLoad, table: tuple[str, str], entries: set[str]) -> bool:
    if not (what.tables or what.entries):
        return True
    return ".".join(table) in what.tables or bool(entries & set(what.entries))


def _is_ahead(load: TableLoad, table: str) -> bool:
    """Whether a load has not read any row of a table that it wants, or reads it once more."""
    in_pass = not load.only or table in load.only
    return table in load.again or (in_pass and table > load.table)
