"""Tells whether the target has a table, and rows in it."""

from __future__ import annotations

from typing import Any, Final

import pymysql
from pymysql.connections import Connection

from setl.systems.mysql.connection import error_number
from setl.systems.mysql.ddl.plan import Name
from setl.systems.mysql.identifiers import qualified

MISSING_TABLE: Final = frozenset({1051, 1146})


def has_rows(connection: Connection[Any], name: Name) -> bool | None:
    """Whether a table has rows; None if there is no such table. pymysql's errors pass through."""
    with connection.cursor() as cursor:
        try:
            cursor.execute(f"SELECT 1 FROM {qualified(*name)} LIMIT 1")
        except pymysql.MySQLError as error:
            if error_number(error) in MISSING_TABLE:
                return None
            raise
        return cursor.fetchone() is not None
