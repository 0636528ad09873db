"""The tables of a source that a pipeline maps, as they were when they were listed last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final

from setl.bulk.source_reader import SourceTables, TableSize
from setl.channel.routes.routing import Router
from setl.clock import Clock
from setl.errors import FatalError
from setl.model.table_load import TableLoad
from setl.run.table_loads.items import MappedTable, tables_of
from setl.run.targets.joined import NamedRoute

_NEWS_SECONDS: Final = 60.0  # after which the tables are listed again


class ListedTables:
    """What loads of one pipeline know of the source's tables. Used by one thread.

    Attributes:
        mapped: those that the pipeline maps.
    """

    def __init__(
        self,
        tables: Callable[[], AbstractContextManager[SourceTables] | None],
        router: Router,
        pipeline: str,
        clock: Clock,
    ) -> None:
        """Nothing is listed yet.

        Args:
            tables: opens the tables of the source; gives None if nobody can read them.
            router: which tables go where.
            pipeline: as ``channel/pipeline``, for errors.
            clock: for how old the list is.
        """
        self.mapped: list[MappedTable] = []
        self._tables = tables
        self._router = router
        self._pipeline = pipeline
        self._clock = clock
        self._sizes: Mapping[tuple[str, str], TableSize] = {}
        self._listed = 0.0

    def opened(self) -> AbstractContextManager[SourceTables]:
        """The tables of the source, open.

        Raises:
            FatalError: nobody can read them.
        """
        opened = self._tables()
        if opened is None:
            raise FatalError(
                "a topic has no tables to load",
                hint="Name the database of its records: `database:` in the channel file's source",
                pipeline=self._pipeline,
            )
        return opened

    def forget(self) -> None:
        """Know nothing any more."""
        self.mapped = []

    def relist(self) -> None:
        """Ask the source. Raises SetlError."""
        with self.opened() as source:
            self._list(source)

    def list_if_old(self, source: SourceTables) -> None:
        """Ask the source if that is long ago. Raises SetlError."""
        if self._clock.monotonic() - self._listed > _NEWS_SECONDS:
            self._list(source)

    def _list(self, source: SourceTables) -> None:
        self.mapped, self._sizes = [], source.sizes()
        for name in source.names():
            # Rows of nested tables are seen in the documents of the table they belong to.
            routes = tuple(r for r in self._router.route(*name) if not r.nests(*name))
            if routes:
                entries = frozenset(self._router.entries[route.index].name for route in routes)
                self.mapped.append(MappedTable(name, routes, entries))
        self._listed = self._clock.monotonic()

    @property
    def joined(self) -> frozenset[tuple[str, str]]:
        """Targets that rows of several tables go to."""
        times = Counter(route.target for table in self.mapped for route in table.routes)
        return frozenset(target for target, count in times.items() if count > 1)

    def may_be_read(self, name: tuple[str, str]) -> bool:
        """Whether a load that wants a table finds it: it is listed, or nothing is yet."""
        return not self.mapped or any(table.name == name for table in self.mapped)

    def names_of(self, load: TableLoad) -> list[str]:
        """The tables that a load wants, as ``schema.table``."""
        return tables_of(load, self.mapped)

    def of(self, load: TableLoad) -> list[MappedTable]:
        """The tables that a load wants."""
        wanted = set(self.names_of(load))
        return [table for table in self.mapped if table.text in wanted]

    def routes_of(self, load: TableLoad) -> list[NamedRoute]:
        """By which routes the rows of a load go."""
        return [(table.name, route) for table in self.of(load) for route in table.routes]

    def sizes_of(self, load: TableLoad) -> Sequence[TableSize]:
        """How large the tables of a load are, as far as the source tells."""
        return [self._sizes[table.name] for table in self.of(load) if table.name in self._sizes]

    def size_of(self, table: str) -> TableSize | None:
        """How large one table is, by ``schema.table``; None if the source does not tell."""
        schema, _, name = table.partition(".")
        return self._sizes.get((schema, name))

    def are_mapped(self, table: str) -> bool:
        """Whether rows of ``schema.table`` would go anywhere, be it there or not."""
        schema, _, name = table.partition(".")
        return any(not r.nests(schema, name) for r in self._router.route(schema, name))

    def are_wanted(self, load: TableLoad, table: str) -> bool:
        """Whether a load is about ``schema.table``, be it there or not."""
        if load.tables or not self.are_mapped(table):
            return table in (*load.tables, *load.only, *load.again)
        routes = self._router.route(*table.split(".", 1))
        names = {self._router.entries[route.index].name for route in routes}
        return not load.entries or bool(names & set(load.entries))
