"""Finds defaults that take numbers of a sequence of MariaDB.

A row is logged with the number that it got, so the default matters to nobody who only writes such
rows. Grammar: https://mariadb.com/kb/en/sequence-functions/, and of Oracle's mode ``s.NEXTVAL``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from setl.codec.sql.names import read_name
from setl.codec.sql.tokens import Token, TokenKind

_CALLS: Final = frozenset({"NEXTVAL", "LASTVAL", "SETVAL"})
_PHRASES: Final = frozenset({"NEXT", "PREVIOUS"})
_SUFFIXES: Final = frozenset({"NEXTVAL", "CURRVAL"})


class SequenceDefault(NamedTuple):
    """A default that takes numbers of sequences.

    Attributes:
        start: index of its first token, DEFAULT.
        end: index behind its last one.
        sequences: schema and name of each sequence, the schema "" where none is written.
    """

    start: int
    end: int
    sequences: tuple[tuple[str, str], ...]


def sequence_defaults(tokens: Sequence[Token]) -> Iterator[SequenceDefault]:
    """Those among the tokens of a definition or a statement, in order."""
    for at, token in enumerate(tokens):
        if token.kind is TokenKind.WORD and token.word == "DEFAULT":
            end = _end(tokens, at + 1)
            sequences = tuple(_sequences(tokens[at + 1 : end]))
            if sequences:
                yield SequenceDefault(at, end, sequences)


def _end(tokens: Sequence[Token], at: int) -> int:
    """Index behind the value that begins at `at`: one in parentheses, a call, or a name."""
    if _word(tokens, at) in _PHRASES and _word(tokens, at + 1) == "VALUE":
        named = read_name(tokens, at + 3)
        return named[1] if named else at + 3
    if _word(tokens, at) != "(":
        at += 1
        while _word(tokens, at) == ".":
            at += 2
    if _word(tokens, at) != "(":
        return at
    depth = 0
    while at < len(tokens):
        depth += (tokens[at].word == "(") - (tokens[at].word == ")")
        at += 1
        if not depth:
            break
    return at


def _sequences(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    for at in range(len(tokens)):
        word, name = _word(tokens, at), None
        if word in _CALLS and _word(tokens, at + 1) == "(":
            name = read_name(tokens, at + 2)
        elif word in _PHRASES and _word(tokens, at + 1) == "VALUE":
            name = read_name(tokens, at + 3)
        elif word in _SUFFIXES and at >= 2 and _word(tokens, at - 1) == ".":
            qualified = at >= 4 and _word(tokens, at - 3) == "."
            name = read_name(tokens[: at - 1], at - (4 if qualified else 2))
        if name is not None:
            yield name[0].schema, name[0].name


def _word(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].word if at < len(tokens) else ""
