"""Looks up the keys of a target's table that has not all of the source's."""

from __future__ import annotations

from typing import Any, Final

from pymysql.connections import Connection

from setl.codec.sql.statement import quoting_of
from setl.codec.sql.table_ddl import parse_table_ddl
from setl.model.session import StatementSession
from setl.systems.mysql.ddl.left_out import without_missing
from setl.systems.mysql.ddl.plan import Step

_KEYS: Final = (
    "SELECT INDEX_NAME FROM information_schema.STATISTICS"
    " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    " UNION SELECT CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS"
    " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
)


def with_existing_keys(connection: Connection[Any], step: Step, session: StatementSession) -> Step:
    """A step without what it does to keys that its table has not; pymysql's errors pass through."""
    ddl = parse_table_ddl(step.statement, "", quoting_of(session))
    if ddl is None:
        return step
    with connection.cursor() as cursor:
        cursor.execute(_KEYS, step.tables[0] * 2)
        keys = frozenset(str(name).lower() for (name,) in cursor.fetchall())
    found = without_missing(ddl, keys)
    text = "" if found.ddl is None else found.ddl.text
    return step._replace(statement=text, notes=(*step.notes, *found.notes))
