"""Expressions in a table's definition, for a table with other names or of another product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from setl.codec.sql.tokens import Token, TokenKind, tokenize, with_others
from setl.systems.mysql.identifiers import quote

# What gives the same value in MySQL and MariaDB. Functions on text that go by a collation give
# what the collation's age says, and are not here. Nor is MD5, which in MySQL 9.7 a component has,
# so that no table may use it.
_SAME_VALUE: Final = frozenset({
    "AND", "OR", "NOT", "XOR", "IS", "NULL", "IN", "BETWEEN", "TRUE", "FALSE", "DIV", "MOD",
    "CASE", "WHEN", "THEN", "ELSE", "END", "IF", "IFNULL", "COALESCE", "NULLIF", "ABS", "FLOOR",
    "CEILING", "ROUND", "SIGN", "CONCAT", "LEFT", "RIGHT", "SUBSTR", "LENGTH", "OCTET_LENGTH",
    "CHAR_LENGTH", "HEX", "YEAR", "MONTH", "DAYOFMONTH", "HOUR", "MINUTE", "SECOND",
    "TO_DAYS", "GREATEST", "LEAST",
})  # fmt: skip
# What may differ a little from one to the other: good for a condition that rows of the source
# fulfil anyway, and for the values of those who write at the target themselves.
_ALIKE: Final = _SAME_VALUE | frozenset({
    "LIKE", "UPPER", "LOWER", "UCASE", "LCASE", "TRIM", "REPLACE", "JSON_VALID", "UUID", "NOW",
    "CURDATE", "CURTIME", "CURRENT_DATE", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "JSON_ARRAY",
    "JSON_OBJECT", "INTERVAL", "DAY", "LOCATE",
})  # fmt: skip


def renamed(text: str, names: Mapping[str, str]) -> str | None:
    """An expression with the target's names of its columns; None if it has others.

    Args:
        text: as SHOW CREATE TABLE writes it, names in backticks.
        names: the target's name for each name in lower case that reaches the target.
    """
    found = [token for token in tokenize(text) if token.kind is TokenKind.NAME]
    if any(token.name.lower() not in names for token in found):
        return None
    return with_others(text, ((token, quote(names[token.name.lower()])) for token in found))


def is_portable(text: str, *, exact: bool) -> bool:
    """Whether an expression means the same to MySQL and to MariaDB.

    Args:
        text: as SHOW CREATE TABLE writes it.
        exact: whether it has to give the same value for every row.
    """
    known = _SAME_VALUE if exact else _ALIKE
    tokens = tokenize(text)
    # MariaDB writes down what stands behind the name of a character set, but leaves backslashes
    # out, and goes by that: _utf8mb4'a\\b' ends with a backspace then, and _utf8mb4'é' is 'xC3xA9'.
    literals = list(_named_literals(text))
    plain = all(t.isascii() and t.isprintable() and not set(t) & {"\\", "'"} for t in literals)
    words = all(_is_known(t, known) for t in tokens) and "." not in _between_names(tokens)
    # A quotient has more digits in MariaDB.
    divides = exact and any(t.word == "/" for t in tokens)
    return words and plain and not divides


def is_legible(text: str) -> bool:
    """Whether a literal in an expression is surely the one that the server shows.

    MySQL names the character set of each literal, and shows ? for each byte of a character beyond
    the Basic Multilingual Plane, and for most bytes that are not UTF-8.

    Args:
        text: as SHOW CREATE TABLE writes it.
    """
    return not any("?" in literal for literal in _named_literals(text))


def _named_literals(text: str) -> Iterator[str]:
    """What stands in the quotes of literals whose character set is named."""
    for name, literal in pairwise(tokenize(text)):
        if literal.kind is TokenKind.TEXT and name.word.startswith("_"):
            yield literal.text[1:-1]


def _is_known(token: Token, known: frozenset[str]) -> bool:
    if token.kind is not TokenKind.WORD:
        return True
    word = token.word
    return word in known or word[0].isdigit() or word in ("_UTF8MB4", "_UTF8MB3", "_LATIN1", "N")


def _between_names(tokens: list[Token]) -> str:
    """The signs that stand right behind a quoted name."""
    return "".join(
        b.word for a, b in pairwise(tokens) if a.kind is TokenKind.NAME and b.kind is TokenKind.SIGN
    )
