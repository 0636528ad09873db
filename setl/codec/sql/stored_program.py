"""What the body of a trigger, a procedure, a function or an event writes.

Read from its tokens, and rather too much than too little: a table that a multi-table UPDATE only
reads counts as written. A server runs no dynamic SQL in what a trigger calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from setl.codec.sql.tokens import Quoting, Token, tokenize

Name = tuple[str, str]
"""A schema and a name in it, as they are spelled there."""

_MODIFIERS: Final = frozenset(
    {"LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "QUICK", "IGNORE", "INTO", "FROM"}
)
_INSERTING: Final = _MODIFIERS | {"INSERT", "REPLACE"}
_BEFORE_TABLE: Final = frozenset({",", "JOIN", "STRAIGHT_JOIN", "FROM", "USING"})
_OF_VIEW: Final = frozenset({"JOIN", "STRAIGHT_JOIN", "FROM"})
_NO_STATEMENT: Final = frozenset({"KEY", "FOR", "ON", "."})
"""What stands before an UPDATE or a DELETE that begins no statement."""


@dataclass(frozen=True, slots=True)
class Writes:
    """What a body writes.

    Attributes:
        tables: the tables.
        values: columns of NEW that it sets, in lower case.
        calls: procedures that it calls, and functions, those of the server among them.
        stored: those of `calls` that are not functions of the server.
    """

    tables: frozenset[Name] = frozenset()
    values: frozenset[str] = frozenset()
    calls: frozenset[Name] = frozenset()
    stored: frozenset[Name] = frozenset()


def writes_of(body: str, schema: str, sql_mode: str = "") -> Writes:
    """What the body of a stored program writes.

    Args:
        body: its text, as information_schema has it.
        schema: that names without one are in.
        sql_mode: under which it was made.
    """
    modes = sql_mode.upper().split(",")
    tokens = tokenize(body, Quoting("ANSI_QUOTES" in modes, "NO_BACKSLASH_ESCAPES" in modes))
    tables: set[Name] = set()
    values: set[str] = set()
    stored: set[Name] = set()
    calls: set[Name] = set()
    for at, token in enumerate(tokens):
        before = tokens[at - 1].word if at else ""
        after = tokens[at + 1].word if at + 1 < len(tokens) else ""
        if token.word in {"INSERT", "REPLACE"} and after != "(":
            tables.update(_first(tokens, at + 1, schema))
        elif token.word == "UPDATE" and before not in _NO_STATEMENT:
            tables.update(_listed(tokens, at + 1, "SET", schema))
        elif token.word == "DELETE" and before not in _NO_STATEMENT:
            tables.update(_listed(tokens, at + 1, "WHERE", schema))
        elif token.word == "CALL":
            stored.update(_name(tokens, at + 1, schema))
            values.update(_passed(tokens, at + 1))
        elif token.word == "NEW" and after == ".":
            behind = tokens[at + 3].word if at + 3 < len(tokens) else ""
            if before in {"SET", ",", ":"} and behind in {"=", ":"}:
                values.add(tokens[at + 2].name.lower())
        elif token.word == "INTO" and before not in _INSERTING:
            values.update(_into(tokens, at + 1))
        elif after == "(" and token.name:
            if before == "." and at > 1:
                stored.update(_name(tokens, at - 2, schema))
            else:
                calls.update(_name(tokens, at, schema))
    return Writes(
        frozenset(tables), frozenset(values), frozenset(calls | stored), frozenset(stored)
    )


def tables_of_view(definition: str) -> frozenset[Name]:
    """The tables and views behind a view, as the server writes its text: each with its schema."""
    tokens = tokenize(definition)
    found: set[Name] = set()
    for at, token in enumerate(tokens):
        if token.word in _OF_VIEW:
            position = at + 1
            while position < len(tokens) and tokens[position].word == "(":
                position += 1
            found.update(name for name in _name(tokens, position, "") if name[0])
    return frozenset(found)


def _name(tokens: Sequence[Token], at: int, schema: str) -> Iterator[Name]:
    """The name that begins at a token, if one does."""
    first = tokens[at].name if at < len(tokens) else ""
    if not first:
        return
    if at + 2 < len(tokens) and tokens[at + 1].word == "." and tokens[at + 2].name:
        yield first, tokens[at + 2].name
    else:
        yield schema, first


def _first(tokens: Sequence[Token], at: int, schema: str) -> Iterator[Name]:
    while at < len(tokens) and tokens[at].word in _MODIFIERS:
        at += 1
    return _name(tokens, at, schema)


def _listed(tokens: Sequence[Token], at: int, end: str, schema: str) -> Iterator[Name]:
    """The tables of a statement up to a word that ends their list."""
    while at < len(tokens) and tokens[at].word in _MODIFIERS:
        at += 1
    yield from _name(tokens, at, schema)
    while at < len(tokens) and tokens[at].word not in {end, ";"}:
        if tokens[at].word in _BEFORE_TABLE:
            yield from _name(tokens, at + 1, schema)
        at += 1


def _into(tokens: Sequence[Token], at: int) -> Iterator[str]:
    """Columns of NEW in the list of variables behind INTO."""
    while at < len(tokens):
        words = [token.word for token in tokens[at : at + 2]]
        if words == ["NEW", "."]:
            yield from (token.name.lower() for token in tokens[at + 2 : at + 3])
            at += 3
        else:
            at += 2 if words[:1] == ["@"] else 1
        if at >= len(tokens) or tokens[at].word != ",":
            return
        at += 1


def _passed(tokens: Sequence[Token], at: int) -> Iterator[str]:
    """Columns of NEW that are arguments of a call by themselves, and so may be set by it."""
    while at < len(tokens) and tokens[at].word != ";":
        words = [token.word for token in tokens[at : at + 5]]
        if words[1:3] == ["NEW", "."] and words[0] in {"(", ","} and words[4:] in ([","], [")"]):
            yield tokens[at + 3].name.lower()
        at += 1
