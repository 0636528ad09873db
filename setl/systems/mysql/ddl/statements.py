"""What the statement of a schema change is about, and what it came to at its source."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from setl.codec.binlog.refused import past
from setl.codec.sql.statement import parse_statement, quoting_of
from setl.codec.sql.table_ddl import Action, Role, TableDdl
from setl.codec.sql.tokens import tokenize
from setl.errors import FatalError
from setl.load.sink import SchemaChange
from setl.model.position import BinlogPosition, Position
from setl.model.session import StatementSession
from setl.systems.mysql.ddl.advice import not_replicated
from setl.systems.mysql.ddl.plan import Routing

# Somebody ended the statement, or its server: the new table may be there.
_ENDED: Final = frozenset({1028, 1053, 1077, 1152, 1158, 1159, 1160, 1161, 1184, 1317, 1927, 1969})
# Engines that take part in MySQL's atomic DDL.
_ATOMIC: Final = frozenset({"INNODB", "NDB", "NDBCLUSTER"})


def refuse_other(change: SchemaChange, routing: Routing) -> None:
    """Refuse a statement that changes tables, and does not tell which, or what it takes of them."""
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
    error = not_replicated(why, change.statement, f"{hint} by hand. {_past(change.position)}")
    error.at(position=change.position)
    return error


def _past(position: Position | None) -> str:
    if isinstance(position, BinlogPosition):
        return f"Then {past(position)}"
    return "Then let the pipeline pass it with `ddl: ignore`"


def as_it_came_out(ddl: TableDdl, session: StatementSession) -> TableDdl:
    """The statement that does what a statement did.

    DROP for a table that could not be replaced; CREATE TABLE IF NOT EXISTS without the condition
    if it has made the table. Of statements that fail, both families log none, or what these did,
    but one: MariaDB drops the old table of a CREATE OR REPLACE TABLE before it makes the new one,
    and logs the statement with its error if that fails then. A replica has no table then either.
    """
    if session.error and session.error not in _ENDED and ddl.replaces:
        names = tuple(name for name in ddl.names if name.role is Role.SUBJECT)
        return replace(ddl, action=Action.DROP, names=names, conditional=True, replaces=False)
    made = session.mariadb or session.committed or ddl.rows_follow
    if ddl.action is Action.CREATE and made:
        return replace(ddl, conditional=False)
    return ddl


def did_nothing(ddl: TableDdl, session: StatementSession) -> bool:
    """Whether a statement found its table there, and left it as it was.

    MySQL logs CREATE TABLE IF NOT EXISTS also of a table that is there; InnoDB's part in a
    statement shows in the event, and there is none then. MariaDB does not log it.
    """
    if ddl.action is not Action.CREATE or not ddl.conditional or session.mariadb is not False:
        return False
    return not session.committed and not ddl.rows_follow and _engine(ddl) in {*_ATOMIC, ""}


def _engine(ddl: TableDdl) -> str:
    """The engine that a CREATE TABLE names, in upper case; "" for none."""
    depth, words = 0, [token.word or token.name.upper() for token in ddl.tokens]
    for at, word in enumerate(words[:-1]):
        depth += (word == "(") - (word == ")")
        if not depth and word == "ENGINE":
            return words[at + 1] if words[at + 1] != "=" else "".join(words[at + 2 : at + 3])
    return ""
