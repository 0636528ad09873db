"""Decides which tables and statements a relay replicates."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

from setl.codec.sql.statement import tables_of
from setl.extract.ddl import refuse_temporary
from setl.extract.extractor import SYSTEM_SCHEMA, Routing
from setl.extract.statements import SkippedStatements
from setl.model.entry import Entry

# As for routes: names of tables are a pool without bound, and can always be looked up again.
_MAX_TABLES: Final = 10_000


class Forwarding(Enum):
    """What a relay does with the rows of a table."""

    ROWS = "rows"
    """They pass: the table is mapped, or one of setl's own on which a subscriber acts."""

    MARK = "mark"
    """They pass if other rows of their transaction do, and ahead of those."""

    HEARTBEAT = "heartbeat"
    """They end here: a heartbeat measures the way to whoever reads it, and that is the relay."""

    NOTHING = "nothing"
    """They do not pass."""


class TableForwarding(NamedTuple):
    """What a relay does with the rows of a table, and which others they keep their order with.

    Attributes:
        forwarding: what it does.
        group: name of the table group, None if there is none.
    """

    forwarding: Forwarding
    group: str | None = None


_SYSTEM: Final = {
    "retl_mark": TableForwarding(Forwarding.MARK),
    "retl_buffer": TableForwarding(Forwarding.ROWS),
    "xdual": TableForwarding(Forwarding.HEARTBEAT),
    "setl_recent": TableForwarding(Forwarding.ROWS),
}
_HEARTBEATS: Final = {"xdual": _SYSTEM["xdual"]}
_NOTHING: Final = TableForwarding(Forwarding.NOTHING)


class _Tables(dict[tuple[str, str], TableForwarding]):
    """The answer for each table, looked up once for each name."""

    def __init__(self, routing: Routing, system: Mapping[str, TableForwarding]) -> None:
        super().__init__()
        self._routing = routing
        self._system = system

    def __missing__(self, name: tuple[str, str]) -> TableForwarding:
        if len(self) >= _MAX_TABLES:
            self.clear()
        schema, table = name
        if schema.lower() == SYSTEM_SCHEMA:
            found = self._system.get(table.lower(), _NOTHING)
        else:
            routes = self._routing.route(schema, table)
            found = TableForwarding(Forwarding.ROWS, routes[0].group) if routes else _NOTHING
        self[name] = found
        return found


class Interceptor:
    """Decides what passes.

    Nothing is dropped because a channel wrote it itself: who subscribes may belong to any
    channel or none, and has the marks to tell.
    """

    def __init__(
        self,
        routing: Routing,
        statements: SkippedStatements | None = None,
        *,
        own_tables: bool = True,
    ) -> None:
        """Ask `routing` which tables are mapped; where to makes no difference here.

        Args:
            routing: knows.
            statements: decides about row changes that were logged as statements; None refuses all.
            own_tables: whether subscribers act on rows of setl's own tables, such as marks. Others
                would take these for rows of a table of theirs.
        """
        self._tables = _Tables(routing, _SYSTEM if own_tables else _HEARTBEATS)
        self._routing = routing
        self._statements = statements or SkippedStatements(lambda _, __: True)

    def table(self, schema: str, table: str) -> TableForwarding:
        """What to do with the rows of a table."""
        return self._tables[schema, table]

    def skipped_statement(self, entry: Entry) -> str:
        """See `SkippedStatements.skips`; whoever subscribes gets no statement of rows."""
        return self._statements.skips(entry)

    def ddl(self, entry: Entry) -> bool:
        """Whether a DDL statement passes: of a mapped table, or of one that nothing tells."""
        self._statements.changed(entry)
        tables = tables_of(entry) or ((entry.schema, ""),)
        concerns = any(self._concerns(schema, table) for schema, table in tables)
        if concerns:
            refuse_temporary(entry)
        return concerns

    def _concerns(self, schema: str, table: str) -> bool:
        if schema.lower() == SYSTEM_SCHEMA:
            return False
        if not table or self._tables[schema, table] is not _NOTHING:
            return True
        # Who subscribes may want to do to a table what was done to its shadow.
        return self._routing.shadow(schema, table) is not None
