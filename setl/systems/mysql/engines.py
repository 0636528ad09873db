"""Whether tables can be written to inside a transaction: their storage engine says so.

Rows in a table without transactions stay when a load is rolled back or fenced off. In the binlog
they stand outside the marked transaction, so the pipeline back takes them for a client's own.
"""

from __future__ import annotations

from collections.abc import Sequence

from setl.systems.mysql.identifiers import qualified

# The server itself says which of its engines have transactions; one that it does not know has none.
WITHOUT_TRANSACTIONS = """
SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE FROM information_schema.TABLES
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND (ENGINE IS NULL OR ENGINE NOT IN
      (SELECT ENGINE FROM information_schema.ENGINES WHERE TRANSACTIONS = 'YES'))"""
"""Asks for one table, by schema and name: a row with its engine if that has no transactions.

The engine is NULL for a view, behind which there may be any.
"""

WHY_TRANSACTIONS = (
    "rows written there stay when their transaction is rolled back, and come back in a two-way"
    " channel"
)
"""Why it is refused, the end of a sentence that begins with the table."""


def refusal(schema: str, table: str, engine: str | None) -> tuple[str, str]:
    """Why rows are not written to what `WITHOUT_TRANSACTIONS` names, and what to do."""
    if engine is None:
        # Rows that it does not show cannot be deleted, and would be there twice.
        what = "the target is a view, which tells nothing of its tables' keys, engines and rows"
        return what, "Name the table behind it with `to`"
    what = f"the target is a {engine} table, which has no transactions: {WHY_TRANSACTIONS}"
    return what, f"ALTER TABLE {qualified(schema, table)} ENGINE = InnoDB;"


def tables_without_transactions(names: Sequence[tuple[str, str]]) -> tuple[str, list[str]]:
    """A statement with its values: asks for those of these tables that have no transactions.

    Its rows are (schema, table, engine). A view is among them; its engine is NULL. The server
    refuses it if a table is missing, or may not be read.

    Inside a transaction the answer holds until its end: the tables are opened by the same
    statement, and the server lets nobody alter a table that a transaction has opened.

    Args:
        names: of at least one table, by schema and name.
    """
    parts: list[str] = []
    values: list[str] = []
    for name in names:
        opened = qualified(*name).replace("%", "%%")
        parts.append(f"{WITHOUT_TRANSACTIONS} AND NOT EXISTS (SELECT 1 FROM {opened} WHERE FALSE)")
        values += name
    return " UNION ALL ".join(parts), values
