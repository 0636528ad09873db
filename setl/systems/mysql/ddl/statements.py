"""What the statement of a schema change is about."""

from __future__ import annotations

from setl.codec.sql.redaction import redacted
from setl.codec.sql.statement import parse_statement, quoting_of
from setl.codec.sql.table_ddl import TableDdl, parse_table_ddl
from setl.codec.sql.tokens import tokenize
from setl.errors import FatalError
from setl.load.sink import SchemaChange
from setl.model.session import StatementSession
from setl.systems.mysql.ddl.plan import Routing


def parsed(statement: str, session: StatementSession) -> TableDdl | None:
    """A statement as its session understood it; None if it is not about tables."""
    return parse_table_ddl(statement, session.schema, quoting_of(session))


def refuse_schema(change: SchemaChange, routing: Routing) -> None:
    """Refuse a statement that is about no table, and takes tables with it.

    Raises:
        FatalError: it drops a schema of which tables are mapped.
    """
    words = [token.word for token in tokenize(change.statement, quoting_of(change.session))[:2]]
    if words not in (["DROP", "DATABASE"], ["DROP", "SCHEMA"]):
        return
    said = parse_statement(change.statement, change.session.schema, quoting_of(change.session))
    for schema, _ in said.tables:
        if routing.maps(schema):
            raise FatalError(
                f"this schema change cannot be passed on: tables of {schema} are mapped, and which"
                f" of them there were is not known: {redacted(change.statement)[:300]}",
                hint="Drop their tables (of an index: delete their documents) at the target by"
                " hand, then let the pipeline pass it with"
                " `ddl: ignore`",
            )
