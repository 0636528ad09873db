"""The text of a statement that a session sent in another character set than UTF-8."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from setl.codec.charset import Decoder, decoder, is_utf8
from setl.codec.sql.tokens import Quoting, Token, TokenKind, text_of, tokenize, with_others

_WIDEST: Final = 4  # bytes of a character
_NATIONAL: Final = "N"  # before text that is utf8mb3


def statement_text(raw: bytes, charset: str, quoting: Quoting, connection: str = "") -> str:
    """A statement as text that means the same in UTF-8.

    A literal behind the name of a character set, such as ``_utf8mb4'…'``, is the bytes that the
    session sent, whatever characters they are to it. Such a literal is written in hexadecimal.
    ``N'…'`` is likewise the bytes of UTF-8. Further text right behind either continues it, with
    its bytes in the character set of the connection.

    Args:
        raw: the statement.
        charset: what the session sent it in.
        quoting: how the session quotes.
        connection: the character set of its connection, `charset` if "".

    Raises:
        ValueError: there is no such character set, or this is no text of it.
    """
    decode = decoder(charset)
    text = decode(raw)
    if text.isascii() or is_utf8(charset):
        return text
    runs = list(_literals_of_bytes(tokenize(text, quoting)))
    sent = _sent(raw, decode) if runs else {}

    def data_of(literal: Token, number: int) -> bytes:
        value = text_of(literal, no_backslash=quoting.no_backslash)
        if number and connection not in ("", charset):
            if not (is_utf8(connection) or value.isascii()):
                raise ValueError(f"text in {charset} continues a literal, in {connection}")
            return value.encode()
        return b"".join(sent.get(letter) or letter.encode("latin-1") for letter in value)

    others: list[tuple[Token, str]] = []
    for national, literals in runs:
        data = b"".join(data_of(literal, n) for n, literal in enumerate(literals))
        said = _quoted(data.decode(), quoting) if national else f" X'{data.hex()}'"
        others += [(literals[0], said), *((literal, "") for literal in literals[1:])]
    return with_others(text, others)


def _literals_of_bytes(tokens: Sequence[Token]) -> Iterator[tuple[bool, list[Token]]]:
    """The literals beyond ASCII that are bytes, with those that continue them.

    Each with whether it is ``N'…'``.
    """
    for at, name in enumerate(tokens[:-1]):
        # With anything in between, or other quotes, N is a name.
        first = tokens[at + 1]
        national = name.word == _NATIONAL and first.start == name.end and first.text[0] == "'"
        if not (national or name.word.startswith("_")):
            continue
        literals: list[Token] = []
        for token in tokens[at + 1 :]:
            if token.kind is not TokenKind.TEXT:
                break
            literals.append(token)
        if not all(literal.text.isascii() for literal in literals):
            yield national, literals


def _quoted(value: str, quoting: Quoting) -> str:
    if not quoting.no_backslash:
        value = value.replace("\\", "\\\\")
    return "'" + value.replace("'", "''") + "'"


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
