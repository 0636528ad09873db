"""How long before something expires people have to know of it; quick to import."""

from __future__ import annotations

from typing import Final

CRITICAL_PART: Final = 4
"""It is critical in the last of so many parts of that time."""

_MOST: Final = 14 * 86_400.0
_PART_OF_LIFE: Final = 6


def seconds_before(begins: float | None, expires: float) -> float:
    """Seconds before its end from which on people have to know of it.

    Who renews by a program has certificates of a few days, and renews them when about a third is
    left. 14 days before their end they would not even be there.

    Args:
        begins: since when it is valid, seconds since 1970 UTC; None if nobody knows.
        expires: until when.
    """
    return _MOST if begins is None else min(_MOST, (expires - begins) / _PART_OF_LIFE)
