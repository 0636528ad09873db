"""Text that somebody else wrote, as it may be shown."""

from __future__ import annotations


def printable(text: str) -> str:
    """Text in which nothing is invisible, turns its surroundings around, or has no UTF-8 form.

    Nor can it give a terminal commands. Line breaks and tabs stay.
    """
    if text.isprintable():
        return text
    return "".join(
        letter
        if letter.isprintable() or letter in "\n\t"
        else letter.encode("unicode_escape").decode()
        for letter in text
    )
