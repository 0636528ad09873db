"""SQL text as tokens that know where they stand, so that names in it can be replaced in place.

Only what tells names from everything else: words, quoted names, text, and single characters.
Comments are passed over; of comments that a server executes (``/*! … */``, ``/*M! … */``) only
the marks are. Lexical rules: https://dev.mysql.com/doc/refman/8.4/en/lexical-structure.html.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from typing import NamedTuple


class TokenKind(Enum):
    """What a token is."""

    WORD = "word"  # a keyword, a bare name or a number
    NAME = "name"  # in backticks, or in double quotes under ANSI_QUOTES
    TEXT = "text"
    SIGN = "sign"  # any other character


class Token(NamedTuple):
    """One token.

    Attributes:
        kind: what it is.
        text: as it stands there, quotes included.
        start: index of its first character.
        end: index behind its last one.
    """

    kind: TokenKind
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """A keyword or bare name in upper case, a sign as it is; "" for what is quoted."""
        return self.text.upper() if self.kind in _BARE else ""

    @property
    def name(self) -> str:
        """The name that it is, without quotes; "" if it is text or a sign."""
        if self.kind is TokenKind.NAME:
            quote = self.text[0]
            return self.text[1:-1].replace(quote * 2, quote)
        return self.text if self.kind is TokenKind.WORD else ""


_BARE = frozenset({TokenKind.WORD, TokenKind.SIGN})
_KINDS = {kind.value: kind for kind in TokenKind}


class Quoting(NamedTuple):
    """What of ``sql_mode`` decides where a quoted thing ends, and what it is.

    Attributes:
        ansi: ANSI_QUOTES: double quotes are around names, not text.
        no_backslash: NO_BACKSLASH_ESCAPES: a backslash in text is a character like any other.
    """

    ansi: bool = False
    no_backslash: bool = False


@cache
def _pattern(quoting: Quoting) -> re.Pattern[str]:
    escaped = "" if quoting.no_backslash else r"|\\."
    plain = r"\\" if not quoting.no_backslash else ""
    single = rf"'(?:[^'{plain}]|''{escaped})*'"
    double = rf'"(?:[^"{plain}]|""{escaped})*"'
    names = ["`(?:[^`]|``)*`"]
    texts = [single]
    if quoting.ansi:
        names.append('"(?:[^"]|"")*"')
    else:
        texts.append(double)
    return re.compile(
        rf"""
          (?P<comment> /\*(?!M?!).*?\*/ | --(?=\s|\Z)[^\n]* | \#[^\n]* )
        | (?P<executed> /\*M?!\d* | \*/ )
        | (?P<name> {"|".join(names)} )
        | (?P<text> {"|".join(texts)} )
        | (?P<word> [\w$\u0080-\uffff]+ )
        | (?P<sign> \S )
        """,
        re.VERBOSE | re.DOTALL,
    )


def tokenize(text: str, quoting: Quoting = Quoting()) -> list[Token]:  # noqa: B008 - a value
    """The tokens of a statement that a server has accepted, in order."""
    return [
        Token(_KINDS[kind], found.group(), found.start(), found.end())
        for found in _pattern(quoting).finditer(text)
        if (kind := found.lastgroup or "") in _KINDS
    ]
