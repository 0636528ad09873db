"""Generated columns whose values depend on the session that writes a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from setl.codec.sql.tokens import TokenKind, tokenize
from setl.model.schema import Kind, RowSchema
from setl.systems.mysql.catalog import unescaped

_GENERATED: Final = """
SELECT COLUMN_NAME, GENERATION_EXPRESSION FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND GENERATION_EXPRESSION <> ''
ORDER BY ORDINAL_POSITION"""
_BY_TIME_ZONE: Final = frozenset({"UNIX_TIMESTAMP", "FROM_UNIXTIME", "CONVERT_TZ"})
"""Functions that convert between UTC and the session's time zone."""
_BY_SETTINGS: Final = frozenset({
    "DAYNAME", "MONTHNAME", "DATE_FORMAT", "TIME_FORMAT", "STR_TO_DATE",  # lc_time_names
    "WEEK", "YEARWEEK",  # default_week_format
    "FORMAT",
    "REGEXP", "RLIKE", "REGEXP_REPLACE", "REGEXP_SUBSTR", "REGEXP_INSTR", "REGEXP_LIKE",
    "DATABASE", "SCHEMA", "USER", "CURRENT_USER", "SESSION_USER", "SYSTEM_USER",
})  # fmt: skip
"""Functions whose result depends on other settings of the session."""

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
        reason = dependence(str(expression), found)
        if reason:
            found[str(column).lower()] = reason
    return found


def dependence(expression: str, columns: Mapping[str, str]) -> str:
    """What of a session an expression depends on, "" for nothing that is known here.

    Args:
        expression: as information_schema has it, names of columns in backticks.
        columns: by name in lower case, those that depend on something themselves.
    """
    found = ""
    for token in tokenize(unescaped(expression)):
        if token.kind is TokenKind.NAME and token.name.lower() in columns:
            found = found or columns[token.name.lower()]
        elif token.word in _BY_TIME_ZONE:
            found = found or "the time zone"
        elif token.word in _BY_SETTINGS:
            return f"settings ({token.word})"
    return found
