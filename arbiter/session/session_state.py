"""The state of a session: connected, alive, and since when."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from arbiter.errors import Contact, Unreachable
from arbiter.znodes import SessionOver


class SessionState:
    """Keeps what the connection reports, for any thread to read.

    The reporting methods are called from the connection's own thread. They set fields and wake
    whoever waits; the lock they take is never held over anything that waits.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wakes: list[Callable[[], None]] = []
        self._connected = False
        self._doubted = False
        self._lost = True
        self._session = 0
        self._answered = -math.inf

    def contact(self) -> Contact:
        """What is known now."""
        with self._lock:
            if self._lost:
                return Contact.LOST
            if self._connected and not self._doubted:
                return Contact.CONNECTED
            return Contact.SUSPENDED

    @property
    def connected(self) -> bool:
        """Whether requests can be sent, in whatever session."""
        with self._lock:
            return self._connected

    def session_id(self) -> int:
        """Id of the session, 0 while there is none."""
        with self._lock:
            return self._session

    def last_contact(self) -> float:
        """When the session was last surely alive; minus infinity before it ever was."""
        with self._lock:
            return self._answered

    def watch(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever the contact changes, and whenever `wake_all` is called."""
        with self._lock:
            self._wakes.append(wake)

    def wake_all(self) -> None:
        """Wake everybody who asked for it."""
        with self._lock:
            wakes = tuple(self._wakes)
        for wake in wakes:
            wake()

    def on_connected(self, session: int) -> None:
        """A connection is made, in a session that may be new."""
        with self._lock:
            self._connected, self._doubted = True, False
            if session != self._session:
                self._session, self._answered = session, -math.inf
        self.wake_all()

    def on_suspended(self) -> None:
        """The connection is gone; the session may live."""
        with self._lock:
            self._connected = False
        self.wake_all()

    def on_lost(self) -> None:
        """The session is over."""
        with self._lock:
            self._connected, self._lost = False, True
            self._session, self._answered = 0, -math.inf
        self.wake_all()

    def on_doubt(self) -> None:
        """The other side owes an answer, although the connection looks alive."""
        with self._lock:
            self._doubted = True
        self.wake_all()

    def on_answer(self, session: int, sent: float) -> None:
        """A request sent at the monotonic time `sent` was answered, so the session lived then."""
        with self._lock:
            if session != self._session:
                return
            self._answered = max(self._answered, sent)
            doubted, self._doubted = self._doubted, False
        if doubted:
            self.wake_all()

    def rejoined(self, session: int) -> None:
        """Its node is announced in `session`. Nothing if that has ended meanwhile too."""
        with self._lock:
            if session == 0 or session != self._session:
                return
            self._lost = False
        self.wake_all()

    @contextmanager
    def bound(self, session: int) -> Generator[None]:
        """Whatever is sent inside belongs to `session` (0: to whichever there is).

        The end of a session is reported before its unsent requests are thrown away, and the
        report waits for this block. So a request is either sent in its session or never.

        Raises:
            Unreachable: there is no connection.
            SessionOver: it is another session's.
        """
        with self._lock:
            if not self._connected:
                raise Unreachable("there is no connection now")
            if session not in (0, self._session):
                raise SessionOver("the session in which this was decided is over")
            yield
