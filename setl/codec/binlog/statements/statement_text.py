"""The text of a statement that a session sent in another character set than UTF-8."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from setl.codec.charset import Decoder, decoder, is_utf8
from setl.codec.sql.tokens import Quoting, Token, TokenKind, text_of, tokenize, with_others

_WIDEST: Final = 4  # bytes of a character


def statement_text(raw: bytes, charset: str, quoting: Quoting) -> str:
    """A statement as text that means the same in UTF-8.

    A literal behind the name of a character set, such as ``_utf8mb4'…'``, is the bytes that the
    session sent, whatever characters they are to it. Such a literal is written in hexadecimal.

    Args:
        raw: the statement.
        charset: what the session sent it in.
        quoting: how the session quotes.

    Raises:
        ValueError: there is no such character set, or this is no text of it.
    """
    decode = decoder(charset)
    text = decode(raw)
    if text.isascii() or is_utf8(charset):
        return text
    literals = [
        literal
        for name, literal in pairwise(tokenize(text, quoting))
        if literal.kind is TokenKind.TEXT
        and name.word.startswith("_")
        and not literal.text.isascii()
    ]
    sent = _sent(raw, decode) if literals else {}

    def said(literal: Token) -> str:
        value = text_of(literal, no_backslash=quoting.no_backslash)
        data = b"".join(sent.get(letter) or letter.encode("latin-1") for letter in value)
        return f" X'{data.hex()}'"

    return with_others(text, ((literal, said(literal)) for literal in literals))


def _sent(raw: bytes, decode: Decoder) -> dict[str, bytes]:
    """The bytes of each character of a text."""
    found: dict[str, bytes] = {}
    at = 0
    while at < len(raw):
        width = next((w for w in range(1, _WIDEST + 1) if _is_one(raw[at : at + w], decode)), 1)
        found[decode(raw[at : at + width])] = raw[at : at + width]
        at += width
    return found


def _is_one(part: bytes, decode: Decoder) -> bool:
    try:
        return len(decode(part)) == 1
    except ValueError:
        return False
