"""Threads that watch a drill from outside, and that cannot die unnoticed."""

from __future__ import annotations

import threading
from abc import abstractmethod


class WatchEndedError(RuntimeError):
    """A watch ended by a defect; what it saw until then says nothing about what came after."""


class Watch(threading.Thread):
    """A thread that sees things until it is stopped.

    Attributes:
        error: what ended it before it was stopped; None as long as all is well.
    """

    def __init__(self, name: str) -> None:
        """Describe it; nothing is seen before `start`."""
        super().__init__(name=name, daemon=True)
        self.error: BaseException | None = None
        self._stopping = threading.Event()

    def run(self) -> None:
        """See `threading.Thread`."""
        try:
            self.watch()
        except BaseException as error:  # noqa: BLE001 - raised by `check` where a drill asks
            self.error = error

    @abstractmethod
    def watch(self) -> None:
        """See things until `_stopping` is set; only what is expected may be caught here."""

    def check(self) -> None:
        """Refuse to answer for a watch that has ended by itself.

        Whoever asks what was seen calls this first. Otherwise a drill waits in vain for what
        nobody can see any more, or passes since nothing bad was seen.

        Raises:
            WatchEndedError: it has.
        """
        if self.error is not None:
            raise WatchEndedError(f"the watch of {self.name} ended: {self.error!r}") from self.error

    def stop(self) -> None:
        """Stop watching."""
        self._stopping.set()
        self.join(10)
