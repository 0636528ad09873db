"""Looks at something again and again beside what is being measured."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self


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
