"""The lexer of SQL text: tokens that know where they stand, so that names can be replaced in place.

Only what tells names from everything else: words, quoted names, text, and single characters.
Nothing else in setl takes SQL apart, since whoever does it a second time gets comments or quotes
wrong. Lexical rules: https://dev.mysql.com/doc/refman/9.7/en/lexical-structure.html and
https://mariadb.com/kb/en/comment-syntax/.

Comments that a server executes (``/*! … */``, MariaDB's ``/*M! … */``) are read for what is in
them. A server takes the ``!`` out of one that it did not execute, before it logs the statement:
what has it still was executed, whatever its version number says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache
from typing import NamedTuple


class TokenKind(Enum):
    """What a token is."""

    WORD = "word"  # a keyword, a bare name or a number
    NAME = "name"  # in backticks, or in double quotes under ANSI_QUOTES
    TEXT = "text"
    SIGN = "sign"  # any other character
    COMMENT = "comment"  # that means nothing to a server
    EXECUTED = "executed"  # where a comment begins or ends that a server executes


class Token(NamedTuple):
    """One token.

    Attributes:
        kind: what it is.
        text: as it stands there, quotes included.
        start: index of its first character.
        end: index behind its last one.
        closed: False for quotes and comments without their end: all that follows is inside. No
            server logs such a statement.
    """

    kind: TokenKind
    text: str
    start: int
    end: int
    closed: bool = True

    @property
    def word(self) -> str:
        """A keyword or bare name in upper case, a sign as it is; "" for what is quoted."""
        return self.text.upper() if self.kind in _BARE else ""

    @property
    def name(self) -> str:
        """The name that it is, without quotes; "" if it is text or a sign."""
        if self.kind is TokenKind.NAME:
            quote = self.text[0]
            return self.inside.replace(quote * 2, quote)
        return self.text if self.kind is TokenKind.WORD else ""

    @property
    def inside(self) -> str:
        """What stands between the quotes, as it is written; only for names and text."""
        return self.text[1:-1] if self.closed else self.text[1:]


_BARE = frozenset({TokenKind.WORD, TokenKind.SIGN})
_KINDS = {kind.value: (kind, True) for kind in TokenKind} | {
    f"open_{kind.value}": (kind, False)
    for kind in (TokenKind.COMMENT, TokenKind.NAME, TokenKind.TEXT)
}
_APART = frozenset({TokenKind.COMMENT, TokenKind.EXECUTED})


class Quoting(NamedTuple):
    """The settings that decide what quotes and comments mean.

    Attributes:
        ansi: ANSI_QUOTES: double quotes are around names, not text.
        no_backslash: NO_BACKSLASH_ESCAPES: a backslash in text is a character like any other.
        mysql: the server is known to be a MySQL, to which ``/*M! … */`` is a plain comment.
    """

    ansi: bool = False
    no_backslash: bool = False
    mysql: bool = False


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a"}


def text_of(token: Token, *, no_backslash: bool = False) -> str:
    """What a text token stands for, without quotes and escapes; "" for any other token.

    Escapes: https://dev.mysql.com/doc/refman/9.7/en/string-literals.html.

    Args:
        token: the token.
        no_backslash: see `Quoting`.
    """
    if token.kind is not TokenKind.TEXT:
        return ""
    inside, quote = token.inside, token.text[0]
    if no_backslash or "\\" not in inside:
        return inside.replace(quote * 2, quote)
    pieces = re.split(rf"(\\.|{quote * 2})", inside, flags=re.DOTALL)
    return "".join(_unescaped(piece, quote) for piece in pieces)


def _unescaped(piece: str, quote: str) -> str:
    if piece == quote * 2:
        return quote
    if not piece.startswith("\\"):
        return piece
    # Both stay as they are outside of LIKE too.
    return piece if piece[1] in "%_" else _ESCAPES.get(piece[1], piece[1])


@cache
def _pattern(quoting: Quoting) -> re.Pattern[str]:
    # Possessive, so that megabytes of text take no memory to go back. What has no end is one token:
    # looking for its end again from each of the quotes in it would take the square of its length.
    escape, pair = ("", "") if quoting.no_backslash else (r"\\", r"|\\.")
    single = rf"'[^'{escape}]*+(?:(?:''{pair})[^'{escape}]*+)*+'"
    double = rf'"[^"{escape}]*+(?:(?:""{pair})[^"{escape}]*+)*+"'
    names, texts = ["`[^`]*+(?:``[^`]*+)*+`"], [single]
    if quoting.ansi:
        names.append('"[^"]*+(?:""[^"]*+)*+"')
    else:
        texts.append(double)
    mark = "!" if quoting.mysql else "M?!"
    open_names, open_texts = ('`"', "'") if quoting.ansi else ("`", "'\"")
    # White space is what a server's own rules say; Python's knows more.
    return re.compile(
        rf"""
          (?P<comment> /\*(?!{mark}).*?\*/ | --(?=[\x00-\x20\x7f]|\Z)[^\n]* | \#[^\n]* )
        | (?P<executed> /\*{mark}(?:\d{{6}}|\d{{5}})? | \*/ )
        | (?P<name> {"|".join(names)} )
        | (?P<text> {"|".join(texts)} )
        | (?P<open_comment> /\*(?!{mark}).* )
        | (?P<open_name> [{open_names}].* )
        | (?P<open_text> [{open_texts}].* )
        | (?P<word> [0-9A-Za-z_$\u0080-\U0010ffff]+ )
        | (?P<sign> [^\x00-\x20] )
        """,
        re.VERBOSE | re.DOTALL,
    )


_PLAIN = Quoting()


def lexemes(text: str, quoting: Quoting = _PLAIN) -> Iterator[Token]:
    """Everything in a text but white space, in order, comments too."""
    search = _pattern(quoting).search
    at, inside = 0, False  # of a comment that is executed
    while found := search(text, at):
        (kind, closed), said = _KINDS[found.lastgroup or ""], found.group()
        if kind is TokenKind.EXECUTED:
            ends = said == "*/"
            if ends and not inside:
                kind, said = TokenKind.SIGN, "*"  # as in 2*/* two */3
            else:
                inside = not ends
        start = found.start()
        at = start + len(said)
        yield Token(kind, said, start, at, closed)


def tokens_of(text: str, quoting: Quoting = _PLAIN) -> Iterator[Token]:
    """What a statement consists of to a server, in order, one by one."""
    return (token for token in lexemes(text, quoting) if token.kind not in _APART)


def tokenize(text: str, quoting: Quoting = _PLAIN) -> list[Token]:
    """What a statement consists of to the server that has accepted it, in order."""
    return list(tokens_of(text, quoting))


def comments_of(text: str, quoting: Quoting = _PLAIN) -> Iterator[str]:
    """The comments of a statement that no server executes, with their marks."""
    return (t.text for t in lexemes(text, quoting) if t.kind is TokenKind.COMMENT)


def literal_text(text: str, quoting: Quoting = _PLAIN) -> str:
    """A statement as long as it was, that means to any server what it meant to its own.

    Comments that its own server executed are no comments any more, and those that another one
    would execute are gone: in ``/*!80023 INVISIBLE */`` only its own knows whether that is meant.
    """
    if "/*" not in text or "!" not in text:
        return text
    return with_others(
        text,
        (
            (token, " " * len(token.text))
            for token in lexemes(text, quoting)
            if token.kind is TokenKind.EXECUTED
            or (token.kind is TokenKind.COMMENT and token.text.startswith(("/*!", "/*M!")))
        ),
    )


def with_others(text: str, others: Iterable[tuple[Token, str]]) -> str:
    """A text with something else instead of some of its tokens, which come in their order."""
    pieces: list[str] = []
    at = 0
    for token, other in others:
        pieces += [text[at : token.start], other]
        at = token.end
    return "".join([*pieces, text[at:]])


def split_statements(text: str) -> list[str]:
    """The statements of an SQL text, without comments, closing semicolons and blank lines.

    Executable comments (``/*! … */``) stay. There is no ``DELIMITER``: the text must not
    define stored programs.
    """
    pieces, at = [""], 0
    for token in lexemes(text):
        ends = token.text == ";" and token.kind is TokenKind.SIGN
        if ends or token.kind is TokenKind.COMMENT:
            # A comment separates words as a space does.
            pieces[-1] += text[at : token.start] + " "
            at = token.end
        if ends:
            pieces.append("")
    pieces[-1] += text[at:]
    return [statement for statement in map(_tidy, pieces) if statement]


def _tidy(statement: str) -> str:
    lines = (line.rstrip() for line in statement.strip().splitlines())
    return "\n".join(line for line in lines if line)
