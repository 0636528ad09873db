"""Splits the SQL files of `sql/` into statements, since a connection takes one at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from setl.resources import read_text

SYSTEM_TABLES: Final = ("retl.sql", "fence.sql", "ddl.sql", "conflict.sql", "deadletter.sql")
"""The files of `sql/` that make setl's tables on a server, in the order to run them."""

# What must not be cut, in the order it is tried: comments (``--`` counts only before white
# space, as MySQL has it), then text and identifiers in quotes with both ways to escape one.
_TOKEN = re.compile(
    r"""
    (?P<comment> --(?=\s|\Z)[^\n]* | \#[^\n]* | /\*(?!!).*?\*/ )
  | (?P<quoted> '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | `(?:[^`]|``)*` )
  | (?P<end> ; )
  | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)


def split_statements(text: str) -> list[str]:
    """The statements of an SQL text, without comments, closing semicolons and blank lines.

    Executable comments (``/*! … */``) stay. There is no ``DELIMITER``: the text must not
    define stored programs.
    """
    return [s for s in map(_tidy, _pieces(text)) if s]


def resource_statements(name: str) -> list[str]:
    """The statements of a file of `sql/`, such as ``retl.sql``.

    Raises:
        FileNotFoundError: there is no such file.
    """
    return split_statements(read_text("sql", name))


def system_table_statements() -> list[str]:
    """The statements that make all tables of `SYSTEM_TABLES`, in an order that works."""
    return [statement for name in SYSTEM_TABLES for statement in resource_statements(name)]


def _pieces(text: str) -> Iterator[str]:
    piece: list[str] = []
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "end":
            yield "".join(piece)
            piece = []
        else:
            # A comment separates words as a space does.
            piece.append(" " if token.lastgroup == "comment" else token.group())
    yield "".join(piece)


def _tidy(statement: str) -> str:
    lines = (line.rstrip() for line in statement.strip().splitlines())
    return "\n".join(line for line in lines if line)
