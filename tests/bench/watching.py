"""Waiting for something with a limit, and looking at something again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Self


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


class Sampler:
    """Looks while it is entered, in a thread of its own, and once more at the end."""

    def __init__(self, name: str, look: Callable[[], None], every: float) -> None:
        """Look every so many seconds; not yet."""
        self._look = look
        self._every = every
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=name, daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """End; everything until now was looked at."""
        self._stopping.set()
        self._thread.join()

    def _watch(self) -> None:
        stopping = False
        while not stopping:
            stopping = self._stopping.wait(self._every)
            self._look()
