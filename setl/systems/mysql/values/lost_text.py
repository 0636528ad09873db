"""Finds text that a server cannot say in UTF-8.

Many character sets have bytes without a character: those above 127 in ``ascii``, half a dozen in
``cp1250``, whole rows of the tables of ``gbk`` and ``cp932``. Servers take them from a client that
says that it speaks this character set, and from ``ALTER TABLE``. Whoever reads the column gets a
question mark in their place, or NULL, without a warning, and would write that to the target.

Such text is read as one that compares as equal with the same bytes of the same character set only.
A column of that character set gets these bytes. Anywhere else it is an error: no server takes it.
It says its bytes, so that people can find the row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from setl.model.schema import Capacity
from setl.printable import BYTES_OF_TEXT, bytes_of_text, text_of_bytes

# Each byte of these, or pair of bytes, has a character of its own, found by asking servers for all.
_COMPLETE: Final = frozenset(
    {"", "utf8mb4", "utf8mb3", "utf8", "utf16", "utf16le", "utf32", "latin1", "latin2",
     "latin5", "latin7", "cp850", "cp852", "cp866", "keybcs2", "koi8r", "koi8u", "macce",
     "macroman"}
)  # fmt: skip
# For some bytes of these, a server says U+FFFD, which they have no bytes for.
_REPLACED: Final = frozenset({"big5", "tis620"})
_REPLACEMENT: Final = "_utf8mb4 x'EFBFBD'"

# U+FFFE is no character, so no text of these character sets begins so.
_MARK, _MARK_SQL = "\ufffe:", "_utf8mb4 x'EFBFBE3A'"
_LONGEST: Final = 65_535
"""Bytes that are said whole, as many as TEXT has at most; longer text is said by its hash.

The digits of all bytes could be more than ``max_allowed_packet``, for which servers say NULL."""

_BEGINNING: Final = 32  # bytes of longer text that are said before its hash
_SAID: Final = re.compile("[0-9A-F]+(\\.{3}[0-9a-f]{64})?")


def may_be_lost(held: Capacity | None) -> bool:
    """Whether text of a column may have bytes that are no character."""
    return held is not None and held.charset not in _COMPLETE


def lost(name: str, held: Capacity) -> str:
    """SQL that is true for text with bytes that are no character; not for NULL.

    It is true for the second encoding of a character as well (`setl.codec.charset.exact_decoder`).

    Args:
        name: the column's, quoted.
        held: what it can hold.
    """
    charset = held.charset
    # A question mark replaces each, so there are fewer other characters than before.
    said = f"REPLACE({in_utf8(name)},'?','')"
    if charset in _REPLACED:
        said = f"REPLACE({said},{_REPLACEMENT},'')"
    differs = f"CHAR_LENGTH({said})<>CHAR_LENGTH(REPLACE({name},'?',''))"
    if held.doubled:
        differs = f"({differs} OR {_respelt(name, charset)})"
    # MySQL says NULL for text of ucs2 with half a surrogate pair.
    return f"IFNULL({differs},{name} IS NOT NULL)"


def _respelt(name: str, charset: str) -> str:
    """SQL that is true for text that a server would spell with other bytes."""
    again = f"CONVERT({in_utf8(name)} USING {charset})"
    return f"CAST({again} AS BINARY)<>CAST({name} AS BINARY)"


def text_or_mark(name: str, held: Capacity) -> str:
    """SQL for text in UTF-8, or for what `marked` knows it by if it is lost there."""
    beginning = f"HEX(SUBSTR(CAST({name} AS BINARY),1,{_BEGINNING}))"
    longer = f"CONCAT({beginning},'...',SHA2({name},256))"
    said = f"IF(LENGTH({name})<={_LONGEST},HEX({name}),{longer})"
    return f"IF({lost(name, held)},CONCAT({_MARK_SQL},{said}),{in_utf8(name)})"


def in_utf8(name: str) -> str:
    """SQL for text in UTF-8."""
    return f"CONVERT({name} USING utf8mb4)"


def marked(charset: str) -> Callable[[str], str]:
    """Makes values of what `text_or_mark` gave for a column of a character set."""

    def value(text: str) -> str:
        if text.startswith(_MARK) and _SAID.fullmatch(text, len(_MARK)):
            return text_of_bytes(charset, text[len(_MARK) :])
        return text

    return value


def is_lost(value: object) -> bool:
    """Whether `marked` gave this value for text that was lost."""
    return isinstance(value, str) and value.startswith(BYTES_OF_TEXT)


def bytes_of_lost(value: str) -> bytes | None:
    """The bytes of text that was lost, None if it is too long to say them all."""
    try:
        return bytes.fromhex(bytes_of_text(value)[1])
    except ValueError:
        return None
