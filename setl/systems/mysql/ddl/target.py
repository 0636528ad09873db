"""A target of schema changes: its server, its routing, and what they make of a statement."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Sequence
from typing import Any, Final

from pymysql.connections import Connection

from setl.channel.routes.routing import Router
from setl.codec.sql.table_ddl import Action, TableDdl
from setl.load.sink import LoadTicket, SchemaChange
from setl.model.session import StatementSession
from setl.systems.mysql.acting_keys import RelatedTables
from setl.systems.mysql.catalog import OWN_SCHEMA
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.creation.dialect import DialectOf
from setl.systems.mysql.ddl.conversions import of_copies
from setl.systems.mysql.ddl.database_defaults import DatabaseDefaults
from setl.systems.mysql.ddl.equivalence_check import EquivalenceCheck
from setl.systems.mysql.ddl.late_created_tables import names_taken
from setl.systems.mysql.ddl.other_objects import without_other_objects
from setl.systems.mysql.ddl.plan import Plan, Routing, Step, plan_ddl, rewritten, under_way
from setl.systems.mysql.ddl.replaced import ReplacedTables
from setl.systems.mysql.ddl.runner import DdlRunner
from setl.systems.mysql.ddl.settings import ServerSettings
from setl.systems.mysql.ddl.shadow_definition import creations
from setl.systems.mysql.ddl.shadow_swaps import refuse_drop_before_swap
from setl.systems.mysql.ddl.source_key import key_at_statement
from setl.systems.mysql.ddl.statements import as_it_came_out, parsed
from setl.systems.mysql.ddl.table_state import Name
from setl.systems.mysql.load.writer import Writer

_LOCK_WAIT: Final = 10

Run = tuple[Step, StatementSession]
"""A statement for the target, and the session in which it was run at the source."""


class DdlTarget:
    """A MySQL or MariaDB that schema changes are replicated to."""

    def __init__(
        self,
        endpoint: MysqlEndpoint,
        mark: int,
        routing: Routing,
        nonce: Callable[[], str],
        *,
        marked_drops: bool,
        source: MysqlEndpoint | None = None,
        accept: Sequence[str] = (),
    ) -> None:
        """Connect to nothing yet.

        Args:
            endpoint: the server.
            mark: the channel's number, which statements carry in a comment (I10).
            routing: the pipeline's tables.
            nonce: see `setl.systems.mysql.stored.marks.mark_info`.
            marked_drops: see `plan_ddl`.
            source: the source's server, None if it cannot be asked.
            accept: see `setl.systems.port.DdlReplicationContext`.
        """
        self.endpoint = endpoint
        self._source = source
        self._accept = accept
        self._mark = mark
        self.routing = routing
        self._nonce = nonce
        self._marked_drops = marked_drops
        self._dialect = DialectOf(endpoint)

    def writer(self) -> Writer:
        """A connection for the ledger."""
        return Writer(self.endpoint, _LOCK_WAIT)

    def runner(self) -> DdlRunner:
        """A connection for the statements."""
        return DdlRunner(self.endpoint, OWN_SCHEMA if self._marked_drops else None)

    @property
    def by_hand(self) -> str:
        """How a person changes the target, so that nothing comes back from there."""
        return " by hand, after SET SESSION sql_log_bin = 0" if self._marked_drops else " by hand"

    def equivalence_check(self) -> EquivalenceCheck:
        """What asks whether a statement gives the target's rows what it gave the source's."""
        return EquivalenceCheck(
            self._source,
            self.by_hand,
            self._accept,
            both_ways=self._marked_drops,
            dialect=self._dialect,
            related=RelatedTables(self.routing) if isinstance(self.routing, Router) else None,
        )

    def database_defaults(
        self,
        ticket: LoadTicket,
        change: SchemaChange,
        connection: Callable[[], Connection[Any]],
        begin: Callable[[], Connection[Any]],
    ) -> DatabaseDefaults | None:
        """What tells the default collations of the source's databases; None if it is not asked."""
        if self._source is None:
            return None
        return DatabaseDefaults(
            self._source,
            self.routing,
            ticket,
            change,
            connection=connection,
            begin=begin,
            by_hand=self.by_hand,
        )

    def server_settings(
        self,
        ticket: LoadTicket,
        change: SchemaChange,
        connection: Callable[[], Connection[Any]],
        begin: Callable[[], Connection[Any]],
    ) -> ServerSettings | None:
        """What tells the settings of the source's server; None if it is not asked."""
        if self._source is None:
            return None
        return ServerSettings(self._source, ticket, change, connection=connection, begin=begin)

    def source_key(
        self, change: SchemaChange, step: Step, key: tuple[str, ...], *, made: bool
    ) -> tuple[str, ...]:
        """See `key_at_statement`; () where the source cannot be asked."""
        if self._source is None or step.source is None:
            return ()
        return key_at_statement(self._source, change, step.source, key, made=made)

    def replaced_tables(
        self, connection: Connection[Any], ticket: LoadTicket
    ) -> ReplacedTables | None:
        """What refuses tables instead of others; None where only one site writes."""
        return ReplacedTables(connection, ticket, self._accept) if self._marked_drops else None

    def of_tables(self, ddl: TableDdl, connection: Connection[Any]) -> TableDdl:
        """A statement without what it does to views and sequences; raises SetlError."""
        return without_other_objects(ddl, self.routing, connection, self._source)

    def refuse_drop_before_swap(self, ddl: TableDdl, shadows: Sequence[str]) -> None:
        """Refuse to drop a table of one of these shadows; raises FatalError."""
        refuse_drop_before_swap(ddl, _names(shadows), self.routing)

    def is_shadow_of(self, shadow: str, tables: Collection[Name]) -> bool:
        """Whether a shadow may replace one of these tables of the source."""
        return not under_way(self.routing, _names([shadow])).isdisjoint(tables)

    def targets_of(self, table: Name) -> Sequence[tuple[Name, bool]]:
        """Where a table of the source goes, each with whether it has all of its columns there."""
        return [(route.target, route.plain) for route in self.routing.route(*table)]

    def holds_tables_of(self, schemas: Collection[str], connection: Connection[Any]) -> bool:
        """Whether there are tables where tables of these databases of the source may go."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES")
            there = [(str(schema), str(table)) for schema, table in cursor.fetchall()]
        return any(self.routing.may_fill(schema, name) for schema in schemas for name in there)

    def plan(self, ddl: TableDdl, shadows: Sequence[str], aside: Container[Name]) -> Plan:
        """What a statement becomes, see `plan_ddl`; raises FatalError."""
        if not ddl.subjects:
            return Plan()
        # A MySQL has no OR REPLACE: as where a drop is marked, the old table gets another name.
        renamed = self._marked_drops or (ddl.replaces and not self._dialect().mariadb)
        return plan_ddl(
            ddl,
            self.routing,
            marked_drops=renamed,
            shadows=_names(shadows),
            aside=aside,
        )

    def conflicting_tables(
        self,
        connection: Connection[Any],
        step: Step,
        session: StatementSession,
        later: Sequence[Name],
        change: SchemaChange,
    ) -> Sequence[Name]:
        """Those created tables that may be removed for a statement to run; see `names_taken`."""
        ddl, original = parsed(step.statement, session), parsed(change.statement, change.session)
        # In two directions, a row may be on its way to the table that would be removed.
        if self._marked_drops or step.reread or ddl is None or original is None:
            return ()
        loaded = {
            target
            for table in original.tables
            if change.unread(table)
            for target, _ in self.targets_of(table)
        }
        ddl = as_it_came_out(ddl, session)
        return () if loaded & set(later) else names_taken(connection, ddl, later)

    def swapped(self, retained: Sequence[tuple[str, StatementSession]], table: Name) -> list[Run]:
        """The statements that were kept of a shadow, for the table that it replaces."""
        runs: list[Run] = []
        for statement, session in retained:
            ddl = parsed(statement, session)
            if ddl is None:
                continue
            if ddl.action is Action.CREATE:
                if not runs:  # a later one says IF NOT EXISTS
                    runs += [(step, session) for step in creations(ddl, table, self.routing)]
                continue
            shadow = (ddl.subjects[0].schema, ddl.subjects[0].table)
            steps = rewritten(ddl, self.routing, {shadow: table})
            runs += [(step._replace(copied=True), of_copies(ddl, session)) for step in steps]
        return runs

    def begin(self, writer: Writer, ticket: LoadTicket) -> None:
        """Open a fenced and marked transaction for the ledger."""
        writer.begin(ticket, self._mark, self._nonce())

    def marked(self, statement: str) -> str:
        """The statement with the channel's mark."""
        return f"/*setl:{self._mark}*/ {statement}"


def _names(dotted: Sequence[str]) -> list[Name]:
    """Names of the record, whose schemas have no dot as a rule."""
    parts = (name.partition(".") for name in dotted)
    return [(schema, name) for schema, _, name in parts]
