"""How many of something, in words."""

from __future__ import annotations

UNKNOWN = "–"  # noqa: RUF001 - a dash in its own right
"""What stands where a figure is not known."""


def count(number: float | None, one: str = "", many: str = "") -> str:
    """How many: ``1 row``, ``12,345 rows``; the number alone for no nouns.

    Args:
        number: how many, None if that is not known.
        one: the noun for 1, with its verb if that changes too.
        many: the same for any other number; "" for `one` with an s behind it.
    """
    if number is None:
        return UNKNOWN
    noun = one if number == 1 or not one else many or f"{one}s"
    return f"{number:,.0f} {noun}" if noun else f"{number:,.0f}"
