"""Keeps what the arbiter was asked for a moment, so that many readers cost as much as one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from arbiter.errors import ArbiterError
from setl.clock import Clock

_T = TypeVar("_T")

MOST = 512


class KeptLooks(Generic[_T]):
    """Answers by key, each asked for again once it is old; from any thread."""

    def __init__(self, clock: Clock, seconds: float, otherwise: _T) -> None:
        """Nothing was asked yet.

        Args:
            clock: for the age of answers.
            seconds: how old an answer may be.
            otherwise: stands in for an answer that could not be had and never was.
        """
        self._clock = clock
        self._seconds = seconds
        self._otherwise = otherwise
        self._lock = threading.Lock()
        self._kept: dict[object, tuple[float, _T]] = {}

    def get(self, key: object, ask: Callable[[], _T]) -> _T:
        """The answer for a key; the one before, if the arbiter does not answer now."""
        now = self._clock.monotonic()
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and now - kept[0] < self._seconds:
            return kept[1]
        try:
            answer = ask()
        except ArbiterError:
            answer = self._otherwise if kept is None else kept[1]
        with self._lock:
            self._kept.pop(key, None)
            self._kept[key] = (now, answer)
            while len(self._kept) > MOST:
                del self._kept[next(iter(self._kept))]
        return answer

    def forget(self) -> None:
        """Ask anew from now on."""
        with self._lock:
            self._kept.clear()
