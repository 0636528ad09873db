"""Waiting for something, with a limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def wait_for(
    condition: Callable[[], Any], limit: float, otherwise: str, *, every: float = 0.05
) -> None:
    """Wait until something is so.

    Args:
        condition: asked until it returns something true.
        limit: seconds.
        otherwise: what is the matter if the limit passes.
        every: seconds between two questions.

    Raises:
        RuntimeError: the limit has passed.
    """
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{otherwise} after {limit:.0f} s")
        time.sleep(every)
