"""What the statement of a schema change is about."""

from __future__ import annotations

from setl.codec.binlog.refused import past
from setl.codec.sql.redaction import redacted
from setl.codec.sql.statement import parse_statement, quoting_of
from setl.codec.sql.table_ddl import TableDdl, parse_table_ddl
from setl.codec.sql.tokens import tokenize
from setl.errors import FatalError
from setl.load.sink import SchemaChange
from setl.model.position import BinlogPosition, Position
from setl.model.session import StatementSession
from setl.systems.mysql.ddl.plan import Routing


def parsed(statement: str, session: StatementSession) -> TableDdl | None:
    """A statement as its session understood it; None if it is not about tables."""
    return parse_table_ddl(statement, session.schema, quoting_of(session))


def refuse_other(change: SchemaChange, routing: Routing) -> None:
    """Refuse a statement that changes tables, and does not tell which, or what it takes of them.

    Args:
        change: one of which `parsed` makes nothing.
        routing: the pipeline's tables.

    Raises:
        FatalError: it may be about mapped tables.
    """
    quoting = quoting_of(change.session)
    said = parse_statement(change.statement, change.session.schema, quoting)
    if any(table and _concerns(routing, schema, table) for schema, table in said.tables):
        raise _refused(
            change,
            "it changes tables, and the names of mapped tables may be among them, which cannot be"
            " read from it",
            "Do what it did to mapped tables at the target",
        )
    for schema in dropped_databases(change):
        if routing.maps(schema):
            raise _refused(
                change,
                f"tables of {schema} are mapped, and which of them there were is not known",
                "Drop their tables (of an index: delete their documents) at the target",
            )


def dropped_databases(change: SchemaChange) -> list[str]:
    """The databases that a statement drops; none of any other."""
    quoting = quoting_of(change.session)
    words = [token.word for token in tokenize(change.statement, quoting)[:2]]
    if words not in (["DROP", "DATABASE"], ["DROP", "SCHEMA"]):
        return []
    said = parse_statement(change.statement, change.session.schema, quoting)
    return [schema for schema, _ in said.tables]


def _concerns(routing: Routing, schema: str, table: str) -> bool:
    return bool(routing.route(schema, table)) or routing.shadow(schema, table) is not None


def _refused(change: SchemaChange, why: str, hint: str) -> FatalError:
    shown = redacted(change.statement)[:300]
    return FatalError(
        f"this schema change cannot be replicated: {why}: {shown}",
        hint=f"{hint} by hand. {_past(change.position)}",
        position=change.position,
    )


def _past(position: Position | None) -> str:
    if isinstance(position, BinlogPosition):
        return f"Then {past(position)}"
    return "Then let the pipeline pass it with `ddl: ignore`"
