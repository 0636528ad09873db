"""What of statements is shown: without passwords, without any text, or no more than an outline."""

from __future__ import annotations

from typing import Final

from setl.codec.sql.names import behind_condition, read_name
from setl.codec.sql.objects import SCHEMAS, object_of
from setl.codec.sql.tokens import Quoting, TokenKind, lexemes, tokenize, with_others

# IDENTIFIED [WITH or VIA plugin] BY, AS or USING [PASSWORD[(]] '…'; PASSWORD [(] '…' as an option
# of servers and replication; SET PASSWORD [FOR account] = [PASSWORD(] '…'. What REPLACE and BY
# name in one statement are two.
_BEFORE: Final = frozenset(
    {"BY", "AS", "USING", "REPLACE", "PASSWORD", "MASTER_PASSWORD", "CONNECTION"}
)
_ACCOUNTS: Final = frozenset({"IDENTIFIED", "PASSWORD", "MASTER_PASSWORD", "CONNECTION"})
_FUNCTIONS: Final = frozenset({"PASSWORD", "OLD_PASSWORD"})


def redacted(statement: str) -> str:
    """A statement with ``'***'`` in place of passwords, of which DDL of accounts has some (I19)."""
    tokens = tokenize(statement)
    words = [token.word for token in tokens]
    if _ACCOUNTS.isdisjoint(words):
        return statement
    sets = words[:2] == ["SET", "PASSWORD"]
    found = (
        token
        for at, token in enumerate(tokens)
        if token.kind is TokenKind.TEXT and _is_password(words[max(0, at - 4) : at], sets=sets)
    )
    return with_others(statement, ((token, "'***'") for token in found))


def without_texts(statement: str, quoting: Quoting = Quoting()) -> str:  # noqa: B008 - a value
    """A statement with ``'***'`` in place of each text, and without its comments.

    Defaults and comments of columns may hold anything, and options of tables passwords. Double
    quotes are around text to those servers that were not told otherwise.

    Args:
        statement: DDL of a table.
        quoting: how its session quotes.
    """
    hidden = {TokenKind.TEXT: "'***'", TokenKind.COMMENT: " "}
    found = (token for token in lexemes(statement, quoting) if token.kind in hidden)
    return with_others(statement, ((token, hidden[token.kind]) for token in found)).strip()


def outline(statement: str, quoting: Quoting = Quoting()) -> tuple[str, str]:  # noqa: B008 - a value
    """What DDL does to what: its verb, the kind and the name of its object.

    Returns:
        The outline, and the schema that the name says; "" if it says none.
    """
    tokens = tokenize(statement, quoting)
    if not tokens:
        return "", ""
    at = object_of(tokens)
    if at >= len(tokens):
        return tokens[0].word, ""
    words = f"{tokens[0].word} {tokens[at].word}"
    named = read_name(tokens, behind_condition(tokens, at + 1))
    if named is None:
        return words, ""
    schema, name = named[0].schema, named[0].name
    if tokens[at].word in SCHEMAS:
        return f"{words} {name}", name
    return f"{words} {schema}.{name}" if schema else f"{words} {name}", schema


def _is_password(words: list[str], *, sets: bool) -> bool:
    """Whether a text is one, by the four words in front of it."""
    if words and words[-1] == "(":
        words.pop()
        if words and words[-1] not in _FUNCTIONS:
            words.pop()  # a function of whatever name
            return sets and words[-1:] == ["="]
    if words and words[-1] == "=":
        return sets or words[-2:-1] in (["PASSWORD"], ["MASTER_PASSWORD"], ["CONNECTION"])
    return bool(words) and words[-1] in _BEFORE
