"""One thread that receives what comes to the quiet streams of a process.

A heartbeat wakes up the threads of sixty quiet streams at once. Each waits for its turn among all
threads, and finds nothing in the processor's caches. One thread that goes from one to the next
takes less than half of that. So a stream's own thread rests while nothing but heartbeats comes, and
goes on at once when anything else does.
"""

from __future__ import annotations

import select
import threading
from collections.abc import Callable
from typing import Final

from setl.clock import Clock, SystemClock
from setl.errors import TransientError
from setl.systems.mysql.binlog.resting import Resting

_POLL_SECONDS = 60.0  # after which the thread looks whether it is still needed


class _Heard(Resting):
    """A rest that is over if nothing comes for too long."""

    def __init__(self, receive: Callable[[], bool], now: float) -> None:
        super().__init__(receive)
        self.heard = now


class QuietStreams:
    """Receives for streams whose own threads rest meanwhile. Thread-safe."""

    def __init__(self, clock: Clock | None = None) -> None:
        """No stream rests yet."""
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._resting: dict[int, _Heard] = {}
        self._poll: select.epoll | None = None
        self._thread: threading.Thread | None = None

    def rest(self, connection: int, receive: Callable[[], bool], silence: float) -> None:
        """Let the calling thread rest until the stream needs it.

        Args:
            connection: number of the file that tells when something has come. It stays open.
            receive: see `Watched.rest`.
            silence: seconds without anything after which the connection is lost.

        Raises:
            TransientError: the connection is lost.
        """
        resting = _Heard(receive, self._clock.monotonic())
        with self._lock:
            poll = self._poll = self._poll or select.epoll()
            if self._thread is None:
                thread = threading.Thread(
                    target=self._run, args=(poll,), name="quiet-streams", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError:
                    return  # the system has no more threads; this one goes on by itself
                self._thread = thread
            self._resting[connection] = resting
            poll.register(connection, select.EPOLLIN | select.EPOLLRDHUP)
        try:
            self._wait(connection, resting, silence)
        finally:
            self._end(connection, resting)
        resting.raise_failure()

    def _wait(self, connection: int, resting: _Heard, silence: float) -> None:
        """Wait until it is over; by itself, since nobody else may be there to tell that it is."""
        left = silence
        while not resting.wait(left):
            left = resting.heard + silence - self._clock.monotonic()
            if left <= 0:
                if _has_come(connection):
                    return  # this process had no time to look, such as one that was frozen
                raise TransientError("the connection to the source was lost: timed out")

    def _end(self, connection: int, resting: _Heard) -> None:
        """Nobody receives for it any more."""
        with self._lock:
            if self._resting.get(connection) is resting:
                del self._resting[connection]
                if self._poll is not None:
                    self._poll.unregister(connection)
        resting.end()

    def _run(self, poll: select.epoll) -> None:
        while True:
            ready = poll.poll(_POLL_SECONDS)
            with self._lock:
                found = [(number, self._resting.get(number)) for number, _ in ready]
                if not self._resting:
                    self._thread = None
                    return
            for connection, resting in found:
                if resting is not None:
                    self._receive(connection, resting)

    def _receive(self, connection: int, resting: _Heard) -> None:
        quiet = resting.serve()
        resting.heard = self._clock.monotonic()
        if not quiet:
            self._end(connection, resting)


def _has_come(connection: int) -> bool:
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


QUIET_STREAMS: Final = QuietStreams()
"""Those of this process."""
