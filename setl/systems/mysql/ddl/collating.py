"""Adds to a schema change the collation that its server would choose.

``CHARACTER SET utf8mb4`` alone means utf8mb4_0900_ai_ci to MySQL, utf8mb4_general_ci to MariaDB up
to 11.5, and something else to younger ones or where a setting says so. Keys compare by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from setl.codec.sql.names import name_of
from setl.codec.sql.statement import quoting_of
from setl.codec.sql.tokens import Token, text_of, tokenize
from setl.model.session import StatementSession

_CHARSET: Final = "utf8mb4"
_GENERAL: Final = 45
# The default collations that a session can have, by their ids.
_NAMES: Final = {
    _GENERAL: "utf8mb4_general_ci",
    46: "utf8mb4_bin",
    224: "utf8mb4_unicode_ci",
    246: "utf8mb4_unicode_520_ci",
    255: "utf8mb4_0900_ai_ci",
    2304: "utf8mb4_uca1400_ai_ci",
}
_OPTIONS: Final = frozenset({"COLLATE", "CHARSET", "CHARACTER", "LIKE"})
_CONVERSIONS: Final = frozenset({"CAST", "CONVERT", "JSON_VALUE"})


def collated(statement: str, session: StatementSession) -> str:
    """A statement with the collation behind each utf8mb4 that has none."""
    name = _NAMES.get(_default_of(session), "")
    if not name or _CHARSET not in statement.lower():
        return statement
    tokens = tokenize(statement, quoting_of(session))
    for at in reversed(range(len(tokens))):
        if _is_charset(tokens, at) and not _has_collation(tokens, at):
            end = tokens[at].end
            statement = f"{statement[:end]} COLLATE {name}{statement[end:]}"
    return statement


def with_default(statement: str, session: StatementSession, collation: str) -> str:
    """A CREATE TABLE with the collation that it takes from its schema where it names none.

    Args:
        statement: CREATE TABLE with a list of columns; anything else stays as it is.
        session: the session that ran it.
        collation: that of the schema.
    """
    tokens = tokenize(statement, quoting_of(session))
    depth, listed, before = 0, None, ""
    for token in tokens:
        depth += (token.word == "(") - (token.word == ")")
        bracketed, before = token.word == "LIKE" and before == "(", token.word
        if depth and not (bracketed and depth == 1):
            continue
        if token.word in _OPTIONS:
            return statement
        if listed is None and token.word == ")":
            listed = token
        if token.word == "PARTITION":
            break
    if listed is None:
        return statement
    return f"{statement[: listed.end]} COLLATE {collation}{statement[listed.end :]}"


def _default_of(session: StatementSession) -> int:
    """Id of the collation that utf8mb4 alone means in a session, 0 if it is not known."""
    if session.mariadb is None:
        return 0
    if session.mariadb:
        return dict(session.collations).get(_GENERAL, _GENERAL)
    return session.utf8mb4 or _GENERAL  # MySQL 5.7 has no choice


def _is_charset(tokens: Sequence[Token], at: int) -> bool:
    """Whether a token is a utf8mb4 behind CHARSET or CHARACTER SET."""
    said = text_of(tokens[at]) or name_of(tokens[at])
    if said.lower() != _CHARSET:
        return False
    before = [t.word for t in tokens[max(0, at - 3) : at] if t.word != "="]
    return before[-1:] == ["CHARSET"] or before[-2:] == ["CHARACTER", "SET"]


def _has_collation(tokens: Sequence[Token], at: int) -> bool:
    """Whether the definition or options around a character set name a collation, or cannot."""
    for step, opens, closes in ((-1, ")", "("), (1, "(", ")")):
        here, depth = at + step, 0
        while 0 <= here < len(tokens):
            word = tokens[here].word
            if not depth and word == closes:
                if step < 0 and here and tokens[here - 1].word in _CONVERSIONS:
                    return True
                break
            if not depth and word == ",":
                break
            if not depth and word == "COLLATE":
                return True
            depth += (word == opens) - (word == closes)
            here += step
    return False
