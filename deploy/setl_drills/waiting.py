"""Waiting for something with a deadline; what did not happen is named."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


class DidNotHappenError(RuntimeError):
    """What a drill waited for did not come about in time."""


def wait_for(
    what: str, condition: Callable[[], _T | None], limit: float, *, interval: float = 0.05
) -> _T:
    """Ask until the answer is true, and return it.

    Raises:
        DidNotHappenError: it was not within `limit` seconds.
    """
    deadline = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise DidNotHappenError(f"waited {limit:.0f} s for {what}")
        time.sleep(interval)
