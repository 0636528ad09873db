"""Creates target tables that are missing, before rows go to them (`create: true`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

from setl.bulk.source_reader import SourceTables
from setl.channel.routes.routing import Route, Router
from setl.errors import ConfigurationError
from setl.load.creation import Description, LoadEnd, NewTable, TableCreation
from setl.load.sink import LoadTicket
from setl.log import fields
from setl.model.leadership import Leadership
from setl.model.schema import Column, RowSchema
from setl.model.target_name import target_name
from setl.run.table_loads.choice import PlannedLoad
from setl.run.targets.identities import WillReload

_log = logging.getLogger(__name__)

_SHOWN = 2000  # characters of a statement in the log


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCreating:
    """The creation of tables of one leadership. Used by the run's thread.

    Attributes:
        creation: creates them.
        tables: opens the tables of the source; gives None if nobody can read them.
        router: which tables go where.
        computed: the columns that a route's expressions fill.
        end: see `version_at_end`.
        will_reload: whether all rows of a target that is gone are about to be loaded.
        leadership: on whose behalf.
        check: refuses targets that are not those that rows were written to before.
        at_changes: whether tables that are new at the source are created when the stream comes to
            a schema change; else the change itself makes them.
    """

    creation: TableCreation
    tables: Callable[[], AbstractContextManager[SourceTables] | None]
    router: Router
    computed: Callable[[Route, RowSchema], Sequence[Column]]
    end: Callable[[LoadTicket], int]
    will_reload: WillReload
    leadership: Leadership
    check: Callable[[Collection[tuple[str, str]]], None] | None = None
    at_changes: bool = True

    def begin(self, ticket: LoadTicket, load: PlannedLoad, *, asks_end: bool = False) -> None:
        """Create what is missing for the tables that the source has now.

        Args:
            ticket: on whose behalf.
            load: which rows are about to be loaded as a whole.
            asks_end: whether the end of the stream is asked for, as is needed where schema
                changes are replicated; see `TableCreation.create`.

        Raises:
            SetlError: as `TableCreation.create`, or the source does not answer.
        """
        opened = self.tables()
        if opened is None:
            raise ConfigurationError(
                "tables cannot be created: the server that they come from is not known",
                hint="Name it: `database:` in the source of the channel file",
                pipeline=self.leadership.key,
            )
        with opened as source:
            tables = [
                NewTable(name, route, loaded=load.takes(name))
                for name in source.names()
                for route in self.router.route(*name)
                if route.create and not route.nests(*name)
            ]
            if self.check is not None:
                self.check({table.route.target for table in tables})
            describe = partial(self._described, source)
            latest = partial(self._end, ticket) if asks_end else None

            def will_reload(target: tuple[str, str]) -> bool:
                return self.will_reload(target_name(target), load.load, exists=False)

            ran = self.creation.create(ticket, tables, describe, latest, will_reload)
        self._report("target table created", ran)
        if not load.is_planned:
            self.complete(ticket)

    def complete(self, ticket: LoadTicket) -> None:
        """Add what comes after the rows.

        Raises:
            SetlError: as `TableCreation.complete`.
        """
        self._report("keys added to a target table", self.creation.complete(ticket))

    def _report(self, message: str, ran: Sequence[str]) -> None:
        for statement in ran:
            position = fields(**self.leadership.fields, ran=statement[:_SHOWN])
            _log.info(message, extra=position)

    def _described(self, source: SourceTables, table: NewTable) -> Description | None:
        route = table.route
        if route.documents is not None:
            schema = source.documents(route.documents).schema
        else:
            (reader,) = source.readers([table.name])
            if reader is None:
                return None
            schema = reader.schema
        return Description(schema, self.computed(route, schema) if route.expressions else ())

    def _end(self, ticket: LoadTicket) -> LoadEnd:
        return LoadEnd(ticket.generation, self.end(ticket))
