"""Generated columns whose values depend on the session that writes a row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from setl.codec.sql.tokens import TokenKind, tokenize
from setl.model.schema import Kind, RowSchema
from setl.systems.mysql.catalog import unescaped
from setl.systems.mysql.session_functions import BY_SETTINGS, BY_TIME_ZONE, OF_DAYS

_GENERATED: Final = """
SELECT COLUMN_NAME, GENERATION_EXPRESSION FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND GENERATION_EXPRESSION <> ''
ORDER BY ORDINAL_POSITION"""

Ask = Callable[[str, Sequence[object]], Sequence[Sequence[Any]]]
"""Asks a server."""


def dependent_columns(ask: Ask, described: RowSchema) -> dict[str, str]:
    """What the columns of a table depend on, by name in lower case.

    TIMESTAMP columns are among them, on whose values the others depend.

    Args:
        ask: asks the server of the table; what it raises passes through.
        described: the table.
    """
    found = {c.name.lower(): "the time zone" for c in described.columns if c.kind is Kind.TIMESTAMP}
    if not any(column.materialized for column in described.columns):
        return found
    for column, expression in ask(_GENERATED, (described.schema, described.table)):
        reason = dependence(str(expression), found, times_of(described))
        if reason:
            found[str(column).lower()] = reason
    return found


def times_of(described: RowSchema) -> frozenset[str]:
    """The TIME columns of a table, in lower case."""
    return frozenset(c.name.lower() for c in described.columns if c.kind is Kind.TIME)


def dependence(expression: str, columns: Mapping[str, str], times: Collection[str] = ()) -> str:
    """What of a session an expression depends on, "" for nothing that is known here.

    Args:
        expression: as information_schema has it, names of columns in backticks.
        columns: by name in lower case, those that depend on something themselves.
        times: the TIME columns, in lower case: a date of one is that of the day.
    """
    found, of_time, of_day = "", False, False
    for token in tokenize(unescaped(expression)):
        if token.kind is TokenKind.NAME and token.name.lower() in columns:
            found = found or columns[token.name.lower()]
        elif token.word in BY_TIME_ZONE:
            found = found or "the time zone"
        elif token.word in BY_SETTINGS:
            return f"settings ({token.word})"
        of_time = of_time or (token.kind is TokenKind.NAME and token.name.lower() in times)
        of_day = of_day or token.word in OF_DAYS
    return found or ("the day" if of_time and of_day else "")
