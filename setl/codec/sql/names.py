"""The reader of names: of schemas, tables and columns, quoted or not, qualified or not.

Where only a name can stand, nothing else needs to be distinguished. What stands around names and is
read the same way everywhere is here too: lists, and IF [NOT] EXISTS.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from setl.codec.sql.tokens import Token, TokenKind

_CONDITION: Final = frozenset({"IF", "NOT", "EXISTS"})


class QualifiedName(NamedTuple):
    """A name as it stands in a statement.

    Attributes:
        schema: the part before the dot, "" if there is none.
        name: the name itself.
        start: index of the first character of the whole.
        end: index behind its last one.
    """

    schema: str
    name: str
    start: int
    end: int


def name_of(token: Token) -> str:
    """The name that a token is, where only a name can stand; "" if it is none.

    There double quotes are around a name also if nothing tells of ANSI_QUOTES.
    """
    if token.kind is TokenKind.TEXT and token.text[0] == '"':
        return token.inside.replace('""', '"')
    return token.name


def read_name(tokens: Sequence[Token], at: int) -> tuple[QualifiedName, int] | None:
    """Read a name that may be qualified; MariaDB takes ``.t`` for ``t``.

    Args:
        tokens: of a statement.
        at: index of the token where it begins.

    Returns:
        The name, and the index of the first token behind it; None if no name is there.
    """
    first, schema = at, ""
    if at < len(tokens) and tokens[at].word == ".":
        at += 1
    elif at + 1 < len(tokens) and tokens[at + 1].word == ".":
        schema, at = name_of(tokens[at]), at + 2
        if not schema:
            return None
    if at >= len(tokens) or not name_of(tokens[at]):
        return None
    last = tokens[at]
    return QualifiedName(schema, name_of(last), tokens[first].start, last.end), at + 1


def listed(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """What stands between the commas outside parentheses, in order; nothing of an empty text."""
    depth, first = 0, 0
    for at, token in enumerate(tokens):
        depth += (token.word == "(") - (token.word == ")")
        if token.word == "," and not depth:
            if at > first:
                yield tokens[first:at]
            first = at + 1
    if first < len(tokens):
        yield tokens[first:]


def behind_condition(tokens: Sequence[Token], at: int) -> int:
    """Index of the first token behind IF EXISTS or IF NOT EXISTS, which may begin at `at`."""
    while at < len(tokens) and tokens[at].word in _CONDITION:
        at += 1
    return at
