"""Text that somebody else wrote, as it may be shown."""

from __future__ import annotations

import re
from typing import Final

BYTES_OF_TEXT: Final = "\ud800:"
"""How text begins that its server cannot say in UTF-8, before its bytes in hexadecimal."""

_BYTES_OF_TEXT: Final = re.compile(f"{BYTES_OF_TEXT}(?=[0-9A-F])")


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
