"""Text that somebody else wrote, as it may be shown."""

from __future__ import annotations

import re
from typing import Final

BYTES_OF_TEXT: Final = "\ud800:"
"""How text begins that its server cannot say in UTF-8, see `text_of_bytes`."""

_UTF8: Final = frozenset({"utf8", "utf8mb3"})  # of the same text they have the same bytes
_BYTES_OF_TEXT: Final = re.compile(f"{BYTES_OF_TEXT}([a-z0-9]*:)?(?=[0-9A-F])")


def text_of_bytes(charset: str, digits: str) -> str:
    """What text is known by that its server cannot say in UTF-8. It has no UTF-8 form itself.

    Args:
        charset: its character set.
        digits: its bytes in hexadecimal, in upper case.
    """
    name = charset.lower()
    name = "utf8mb4" if name in _UTF8 else name
    return f"{BYTES_OF_TEXT}{name}{':' if name else ''}{digits}"


def bytes_of_text(text: str) -> tuple[str, str]:
    """The character set and the digits that were given to `text_of_bytes`."""
    charset, _, digits = text.removeprefix(BYTES_OF_TEXT).rpartition(":")
    return charset, digits


def printable(text: str) -> str:
    """Text in which nothing is invisible, turns its surroundings around, or has no UTF-8 form.

    Nor can it give a terminal commands. Line breaks and tabs stay. Text that begins as
    `BYTES_OF_TEXT` is shown as SQL writes its bytes, ``0xA15A``.
    """
    if text.isprintable():
        return text
    text = _BYTES_OF_TEXT.sub("0x", text)
    return "".join(
        letter
        if letter.isprintable() or letter in "\n\t"
        else letter.encode("unicode_escape").decode()
        for letter in text
    )
