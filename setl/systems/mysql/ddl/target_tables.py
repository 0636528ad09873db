"""Asks the target what the translation of a statement has to know of its table."""

from __future__ import annotations

from typing import Any, Final

from pymysql.connections import Connection

from setl.codec.sql.table_ddl import Action, TableDdl
from setl.systems.mysql.ddl.database_defaults import default_collation
from setl.systems.mysql.ddl.equivalence import key_of
from setl.systems.mysql.ddl.translating import TargetTable

_KEYED: Final = (
    "SELECT DISTINCT c.COLUMN_NAME FROM information_schema.STATISTICS s"
    " JOIN information_schema.COLUMNS c ON c.TABLE_SCHEMA = s.TABLE_SCHEMA"
    " AND c.TABLE_NAME = s.TABLE_NAME AND c.COLUMN_NAME = s.COLUMN_NAME"
    " WHERE s.TABLE_SCHEMA = %s AND s.TABLE_NAME = %s AND s.NON_UNIQUE = 0"
    " AND c.COLLATION_NAME IS NOT NULL"
)
_DEFAULT: Final = (
    "SELECT TABLE_COLLATION FROM information_schema.TABLES"
    " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
)


def target_table(target: Connection[Any], ddl: TableDdl, name: tuple[str, str]) -> TargetTable:
    """The table that a statement is about; pymysql's errors pass through."""
    if ddl.action is Action.CREATE:
        return TargetTable(default_collation(target, name[0]))
    with target.cursor() as cursor:
        cursor.execute(_DEFAULT, name)
        row = cursor.fetchone()
        cursor.execute(_KEYED, name)
        keyed = frozenset(str(column).lower() for (column,) in cursor.fetchall())
        primary = key_of(target, name)
    return TargetTable(str(row[0]) if row and row[0] else "", keyed, primary)
