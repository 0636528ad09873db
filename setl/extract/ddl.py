"""The mark of a DDL statement.

DDL has no transaction and so no row of the mark table. A statement that setl passes on carries
its mark in a comment instead (I10): ``/*setl:17*/ ALTER TABLE shop.orders …``.

Servers log most statements as they were sent, comments included. But some they write anew, without
the comment: ``DROP TABLE``, ``CREATE VIEW``, ``CREATE TRIGGER`` and ``CREATE TABLE … SELECT``. Of
these only the first is ever passed on, and where another pipeline reads it, the table is renamed
first: the RENAME carries the mark, and a DROP of a name that no pipeline maps concerns nobody (see
`setl.config.shadow_tables.DROPPED_PREFIX`).
"""

from __future__ import annotations

import re

from setl.extract.loopback import MarkIdentity

# Text in quotes is matched first, so that a comment inside a column's COMMENT is no mark.
_LEXEMES = re.compile(
    r"""
      '(?:[^'\\]|\\.|'')*'
    | "(?:[^"\\]|\\.|"")*"
    | `(?:[^`]|``)*`
    | (?P<comment> /\*.*?\*/ | \#[^\n]* | --(?=\s)[^\n]* )
    """,
    re.VERBOSE | re.DOTALL,
)
_MARK = re.compile(r"/\*\s*setl:(\d+)\s*\*/", re.IGNORECASE)


def is_own_ddl(identity: MarkIdentity, statement: str) -> bool:
    """Whether a comment of the statement names this channel."""
    if identity.mark_id is None or "setl:" not in statement.lower():
        return False
    for lexeme in _LEXEMES.finditer(statement):
        mark = _MARK.fullmatch(lexeme["comment"] or "")
        if mark is not None and int(mark[1]) == identity.mark_id:
            return True
    return False
