"""Keeps what the arbiter was asked for a moment, so that many readers cost as much as one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from arbiter.errors import ArbiterError
from setl.clock import Clock

_T = TypeVar("_T")

MOST = 512


class CachedLooks(Generic[_T]):
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
        self._cached: dict[object, tuple[float, _T]] = {}

    def get(self, key: object, ask: Callable[[], _T]) -> _T:
        """The answer for a key; the one before, if the arbiter does not answer now."""
        now = self._clock.monotonic()
        with self._lock:
            cached = self._cached.get(key)
        if cached is not None and now - cached[0] < self._seconds:
            return cached[1]
        try:
            answer = ask()
        except ArbiterError:
            answer = self._otherwise if cached is None else cached[1]
        with self._lock:
            self._cached.pop(key, None)
            self._cached[key] = (now, answer)
            while len(self._cached) > MOST:
                del self._cached[next(iter(self._cached))]
        return answer

    def forget(self) -> None:
        """Ask again from now on."""
        with self._lock:
            self._cached.clear()
