"""Removes passwords from statements that are shown."""

from __future__ import annotations

from typing import Final

from setl.codec.sql.tokens import Token, TokenKind, tokenize

# IDENTIFIED [WITH or VIA plugin] BY, AS or USING [PASSWORD[(]] '…'; PASSWORD [(] '…' as an option
# of servers and replication; SET PASSWORD [FOR account] = [PASSWORD(] '…'. What REPLACE and BY
# name in one statement are two.
_BEFORE: Final = frozenset({"BY", "AS", "USING", "REPLACE", "PASSWORD", "MASTER_PASSWORD"})
_ACCOUNTS: Final = frozenset({"IDENTIFIED", "PASSWORD", "MASTER_PASSWORD"})
_FUNCTIONS: Final = frozenset({"PASSWORD", "OLD_PASSWORD"})


def redacted(statement: str) -> str:
    """A statement with ``'***'`` in place of passwords, of which DDL of accounts has some (I19)."""
    tokens = tokenize(statement)
    words = [token.word for token in tokens]
    if _ACCOUNTS.isdisjoint(words):
        return statement
    sets = words[:2] == ["SET", "PASSWORD"]
    for at in reversed(range(len(tokens))):
        token = tokens[at]
        if token.kind is TokenKind.TEXT and _is_password(tokens[:at], sets=sets):
            statement = f"{statement[: token.start]}'***'{statement[token.end :]}"
    return statement


def _is_password(before: list[Token], *, sets: bool) -> bool:
    """Whether a text is one, by what stands in front of it."""
    words = [token.word for token in before[-4:]]
    if words and words[-1] == "(":
        words.pop()
        if words and words[-1] not in _FUNCTIONS:
            words.pop()  # a function of whatever name
            return sets and words[-1:] == ["="]
    if words and words[-1] == "=":
        return sets or words[-2:-1] in (["PASSWORD"], ["MASTER_PASSWORD"])
    return bool(words) and words[-1] in _BEFORE
