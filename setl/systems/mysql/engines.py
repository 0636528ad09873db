"""Whether tables can be written to inside a transaction: their storage engine says so.

Rows in a table without transactions stay when a load is rolled back or fenced off. In the binlog
they stand outside the marked transaction, so the pipeline back takes them for a client's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from setl.systems.mysql.identifiers import qualified

# The server itself says which of its engines have transactions; one that it does not know has none.
WITHOUT_TRANSACTIONS = """
SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE FROM information_schema.TABLES
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND ENGINE NOT IN
      (SELECT ENGINE FROM information_schema.ENGINES WHERE TRANSACTIONS = 'YES')"""
"""Asks for one table, by schema and name: a row with its engine if that has no transactions."""

WHY_TRANSACTIONS = (
    "rows written there stay when their transaction is rolled back, and come back in a two-way"
    " channel"
)
"""Why it is refused, the end of a sentence that begins with the table."""


def without_transactions(
    connection: Connection[Any], names: Sequence[tuple[str, str]]
) -> tuple[str, str, str] | None:
    """The first of these tables that has no transactions, as (schema, table, engine), or None.

    Inside a transaction the answer holds until its end: the tables are opened by the same
    statement, and the server lets nobody alter a table that a transaction has opened.

    Raises:
        pymysql.MySQLError: a table is missing, or may not be read.
    """
    if not names:
        return None
    parts: list[str] = []
    values: list[str] = []
    for name in names:
        opened = qualified(*name).replace("%", "%%")
        parts.append(f"{WITHOUT_TRANSACTIONS} AND NOT EXISTS (SELECT 1 FROM {opened} WHERE FALSE)")
        values += name
    with connection.cursor(Cursor) as cursor:
        cursor.execute(" UNION ALL ".join(parts), values)
        row = cursor.fetchone()
    return None if row is None else (str(row[0]), str(row[1]), str(row[2]))
