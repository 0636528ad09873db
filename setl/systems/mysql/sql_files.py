"""The SQL files of `sql/`, statement by statement, since a connection takes one at a time."""

from __future__ import annotations

from typing import Final

from setl.codec.sql.tokens import split_statements
from setl.resources import read_text

SYSTEM_TABLES: Final = ("retl.sql", "fence.sql", "ddl.sql", "conflict.sql", "deadletter.sql")
"""The files of `sql/` that make setl's tables on a server, in the order to run them."""


def resource_statements(name: str) -> list[str]:
    """The statements of a file of `sql/`, such as ``retl.sql``.

    Raises:
        FileNotFoundError: there is no such file.
    """
    return split_statements(read_text("sql", name))


def system_table_statements() -> list[str]:
    """The statements that make all tables of `SYSTEM_TABLES`, in an order that works."""
    return [statement for name in SYSTEM_TABLES for statement in resource_statements(name)]
