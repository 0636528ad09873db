"""Makes a list that fails shorter, by delta debugging.

Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28(2), 2002.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def smallest(items: list[_T], fails: Callable[[list[_T]], bool], seconds: float) -> list[_T]:
    """The shortest list found that still fails, after leaving out parts of it.

    Args:
        items: a list that fails.
        fails: tries a list; what it does not fail for is put back.
        seconds: how long to try.
    """
    until = time.monotonic() + seconds
    parts = 2
    while len(items) > 1:
        size = -(-len(items) // parts)
        for start in range(0, len(items), size):
            if time.monotonic() > until:
                return items
            rest = items[:start] + items[start + size :]
            if rest and fails(rest):
                items, parts = rest, max(parts - 1, 2)
                break
        else:
            if size == 1:
                return items
            parts = min(len(items), parts * 2)
    return items
