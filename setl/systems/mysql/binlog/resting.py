"""A stream whose own thread rests while another thread receives for it."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Resting:
    """One rest of one stream's thread.

    Only one of the two threads uses the stream at a time: the other one until the rest has ended,
    then the stream's own.
    """

    def __init__(self, receive: Callable[[], bool]) -> None:
        """The rest begins with `wait`; `receive` is that of `Watched.rest`."""
        self._receive = receive
        self._failure: BaseException | None = None
        self._using = threading.Lock()
        self._over = threading.Event()

    def serve(self) -> bool:
        """Receive once, in the other thread; whether the stream goes on resting.

        If not, `end` is to follow.
        """
        with self._using:
            if self._over.is_set():
                return False
            try:
                return self._receive()
            except BaseException as error:  # noqa: BLE001 - raised again in the stream's own thread
                self._failure = error
                return False

    def end(self) -> None:
        """Nobody receives for it any more; waits for who does so just now. From any thread."""
        with self._using:
            self._over.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Rest until it has ended, for so long at most; whether it has ended."""
        return self._over.wait(seconds)

    def raise_failure(self) -> None:
        """In the stream's own thread, after its end: raise what receiving raised."""
        if self._failure is not None:
            raise self._failure
