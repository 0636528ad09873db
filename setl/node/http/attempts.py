"""Limits how often a token can be guessed."""

from __future__ import annotations

import threading

from setl.clock import Clock
from setl.node.http.addresses import client_name

FREE_ATTEMPTS = 5
LONGEST_WAIT = 300.0
FORGOTTEN_AFTER = 3600.0
MOST_CLIENTS = 4096


class Attempts:
    """Counts wrong tokens by client address; from any thread.

    After a few of them a client waits, twice as long each time. Whoever has a whole network of
    IPv6 addresses counts as one client.
    """

    def __init__(self, clock: Clock, most: int = MOST_CLIENTS) -> None:
        """Nobody has tried yet.

        Args:
            clock: for the time that has passed.
            most: clients that are remembered. Guesses from more than that push out whoever has
                tried least: it is better to forget one of them than to let nobody else in.
        """
        self._clock = clock
        self._most = most
        self._lock = threading.Lock()
        self._failed: dict[str, tuple[int, float]] = {}  # number, monotonic time of the last

    def wait(self, client: str) -> float:
        """Seconds until a client may try again; 0 if it may now."""
        now = self._clock.monotonic()
        with self._lock:
            self._forget_old(now)
            number, last = self._failed.get(client_name(client), (0, 0.0))
            return max(0.0, last + _pause(number) - now)

    def failed(self, client: str) -> None:
        """The client showed a wrong token."""
        now, name = self._clock.monotonic(), client_name(client)
        with self._lock:
            if name not in self._failed and len(self._failed) >= self._most:
                del self._failed[min(self._failed, key=self._failed.__getitem__)]
            self._failed[name] = (self._failed.get(name, (0, 0.0))[0] + 1, now)

    def succeeded(self, client: str) -> None:
        """The client showed the right one."""
        with self._lock:
            self._failed.pop(client_name(client), None)

    def _forget_old(self, now: float) -> None:
        for name, (_, last) in list(self._failed.items()):
            if now - last > FORGOTTEN_AFTER:
                del self._failed[name]


def _pause(number: int) -> float:
    if number < FREE_ATTEMPTS:
        return 0.0
    return min(LONGEST_WAIT, 2.0 ** min(number - FREE_ATTEMPTS, 16))
