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

_POLL_SECONDS = 60.0  # after which the thread looks whether it is still needed


class _Resting:
    """A stream whose thread rests. `using` is held while somebody receives for it."""

    def __init__(self, receive: Callable[[], bool], now: float) -> None:
        self.receive = receive
        self.heard = now
        self.failure: BaseException | None = None
        self.using = threading.Lock()
        self.over = threading.Event()


class QuietStreams:
    """Receives for streams whose own threads rest meanwhile. Thread-safe."""

    def __init__(self, clock: Clock | None = None) -> None:
        """No stream rests yet."""
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._resting: dict[int, _Resting] = {}
        self._poll: select.epoll | None = None
        self._thread: threading.Thread | None = None

    def rest(self, connection: int, receive: Callable[[], bool], silence: float) -> None:
        """Let the calling thread rest until the stream needs it.

        Args:
            connection: number of the file that tells when something has come. It stays open.
            receive: takes what has come, from another thread, and never waits; whether the stream
                goes on being quiet. What it raises is raised here.
            silence: seconds without anything after which the connection is lost.

        Raises:
            TransientError: the connection is lost.
        """
        resting = _Resting(receive, self._clock.monotonic())
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
        if resting.failure is not None:
            raise resting.failure

    def _wait(self, connection: int, resting: _Resting, silence: float) -> None:
        """Wait until it is over; by itself, since nobody else may be there to tell that it is."""
        left = silence
        while not resting.over.wait(left):
            left = resting.heard + silence - self._clock.monotonic()
            if left <= 0:
                if _has_come(connection):
                    return  # this process had no time to look, such as one that was frozen
                raise TransientError("the connection to the source was lost: timed out")

    def _end(self, connection: int, resting: _Resting) -> None:
        """Nobody receives for it any more."""
        with self._lock:
            if self._resting.get(connection) is resting:
                del self._resting[connection]
                if self._poll is not None:
                    self._poll.unregister(connection)
        with resting.using:
            resting.over.set()

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

    def _receive(self, connection: int, resting: _Resting) -> None:
        with resting.using:
            if resting.over.is_set():
                return
            try:
                quiet = resting.receive()
            except BaseException as error:  # noqa: BLE001 - raised again in the stream's own thread
                resting.failure, quiet = error, False
            resting.heard = self._clock.monotonic()
            if quiet:
                return
        self._end(connection, resting)


def _has_come(connection: int) -> bool:
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


QUIET_STREAMS: Final = QuietStreams()
"""Those of this process."""
