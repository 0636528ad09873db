"""Takes the table and the schema away from columns that DDL names with them.

``ALTER TABLE shop.t ADD shop.t.c INT AS (t.a + 1)`` says of each column which table it is in. A
target's table may have another name, or be in another schema, and the statement names one table
anyway. MariaDB takes ``.c`` for a column, too, see
https://mariadb.com/kb/en/identifier-qualifiers/.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from setl.codec.sql.tokens import Token, TokenKind

# Words in front of a column, which no table can be called without quotes.
_VERBS: Final = frozenset(
    {"ADD", "MODIFY", "CHANGE", "DROP", "ALTER", "COLUMN", "EXISTS", "BY", "FOR"}
)
_OPENING: Final = frozenset({"(", ","}) | _VERBS
# A sequence's schema is no table, though it may be called like one.
_OF_SEQUENCES: Final = frozenset({"NEXTVAL", "LASTVAL", "SETVAL"})
_NUMBER: Final = re.compile(r"\d+(?:[eE]\d+)?")


def without_qualifiers(
    text: str, tokens: Sequence[Token], spans: Collection[tuple[int, int]], called: Collection[str]
) -> str:
    """A statement with the names of its columns alone.

    Args:
        text: the statement.
        tokens: its tokens.
        spans: where names of tables stand in it: the first character, and that behind the last.
        called: the names of its own table.
    """
    own = {name.casefold() for name in called}
    held = [t for t in tokens if not any(start <= t.start < end for start, end in spans)]
    pieces: list[str] = []
    at = 0
    for start, column in _qualified(held, own):
        # Behind a dot, a reserved word is a name without quotes.
        bare = column.kind is TokenKind.WORD
        pieces += [text[at:start], f"`{column.text}`" if bare else column.text]
        at = column.end
    return "".join([*pieces, text[at:]])


def _qualified(tokens: Sequence[Token], own: Collection[str]) -> Iterator[tuple[int, Token]]:
    """Columns with qualifiers, and where these begin; in order."""
    at = 0
    while at < len(tokens):
        chain = _chain(tokens, at)
        if len(chain) > 1 and _is_column(tokens, at, chain, own):
            yield tokens[at].start, chain[-1]
        at += max(1, len(chain))


def _chain(tokens: Sequence[Token], at: int) -> Sequence[Token]:
    """The names with dots between and perhaps before them that begin at a token; () for none."""
    end = at
    if tokens[at].word != ".":
        if not tokens[at].name or (tokens[at].word in _VERBS and _dotted(tokens, at + 1)):
            return ()
        end += 1
    while _dotted(tokens, end):
        end += 2
    return tokens[at:end]


def _dotted(tokens: Sequence[Token], at: int) -> bool:
    """Whether a dot with a name behind it stands at a position."""
    return at + 1 < len(tokens) and tokens[at].word == "." and bool(tokens[at + 1].name)


def _is_column(
    tokens: Sequence[Token], at: int, chain: Sequence[Token], own: Collection[str]
) -> bool:
    before = [token.word for token in tokens[max(0, at - 2) : at]]
    if chain[0].word == ".":
        return before[-1:] != [] and before[-1] in _OPENING and not chain[1].word[:1].isdigit()
    if len(chain) > len("a.b"):
        return True
    if before[-1:] == ["FOR"] or (before[-1:] == ["("] and before[0] in _OF_SEQUENCES):
        return False
    number = chain[0].kind is TokenKind.WORD and _NUMBER.fullmatch(chain[0].text)
    return not number and chain[0].name.casefold() in own
