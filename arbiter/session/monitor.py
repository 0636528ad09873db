"""The thread that observes a session: heartbeats and watches."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from arbiter.errors import ArbiterError
from arbiter.session.session_state import SessionState
from arbiter.znodes import Silent

_log = logging.getLogger(__name__)

PING = 1 / 6
"""Part of the session timeout between two signs of life."""

PATIENCE = 1 / 4
"""Part of the session timeout that an answer may take. Then the connection is cut, so that there
is time left to find another server before the session ends."""


class MonitoredConnection(Protocol):
    """What the monitor does to the connection."""

    def ping(self, session: int, limit: float) -> None:
        """Get an answer from the leading server, in this session.

        Raises:
            Silent: there was none within `limit` seconds.
            Unreachable: the connection is gone, or it is another session's.
        """
        ...

    def drop(self) -> None:
        """Cut the connection, so that another server is tried."""
        ...

    def revive(self) -> None:
        """Restart if the client library has given up for good; else nothing."""
        ...


class Watches(Protocol):
    """What the monitor does to watches; see `arbiter.session.watching.TreeWatch`."""

    @property
    def complete(self) -> bool:
        """Whether every watch that there should be is armed."""
        ...

    def arm(self) -> None:
        """Arm what is not armed."""
        ...


class Monitor:
    """Sends a heartbeat regularly, and arms watches that have fired.

    A follower that is cut off from its leader goes on answering reads for a while, although
    the leader no longer hears of the sessions there. So signs of life come from the leader
    (see `MonitoredConnection.ping`): a read would prove too little for `Arbiter.last_contact`.
    """

    def __init__(
        self,
        life: SessionState,
        connection: MonitoredConnection,
        watches: Watches,
        session_timeout: Callable[[], float],
    ) -> None:
        """Observe the session behind `life`; nothing is done before `start`."""
        self._life = life
        self._connection = connection
        self._watches = watches
        self._session_timeout = session_timeout
        self._woken = threading.Event()
        self._stopping = False
        self._next_ping = 0.0
        self._thread = threading.Thread(target=self._run, name="arbiter-monitor", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """There is something to do. Does not block."""
        self._woken.set()

    def stop(self) -> None:
        """End after what is being waited for. Does not block."""
        self._stopping = True
        self._woken.set()

    def join(self, limit: float) -> None:
        """Wait `limit` seconds for the end, if it was started at all."""
        if self._thread.is_alive():
            self._thread.join(limit)

    def ping(self, limit: float) -> None:
        """Get one sign of life, and note it.

        Raises:
            Silent: there was none within `limit` seconds.
            Unreachable: there is no connection.
        """
        session = self._life.session_id()
        # Sending comes after this moment, so the session cannot have ended before it.
        sent = time.monotonic()
        self._connection.ping(session, limit)
        self._life.on_answer(session, sent)

    def _run(self) -> None:
        while True:
            self._woken.wait(max(0.0, self._next_ping - time.monotonic()))
            self._woken.clear()
            if self._stopping:
                return
            try:
                self._round(self._session_timeout())
            except Silent as error:
                self._life.on_doubt()
                self._connection.drop()
                _log.info("ZooKeeper is silent", extra={"setl": {"error": str(error)}})
            except ArbiterError as error:
                # What failed is still due, and tried again with the next beat.
                _log.debug("ZooKeeper does not answer", extra={"setl": {"error": str(error)}})

    def _round(self, timeout: float) -> None:
        """What is due now; nothing waits longer than `PATIENCE` allows."""
        if time.monotonic() >= self._next_ping:
            self._next_ping = time.monotonic() + timeout * PING
            if self._life.connected:
                self.ping(timeout * PATIENCE)
            else:
                self._connection.revive()
        if self._life.connected and not self._watches.complete:
            self._watches.arm()
            # Only now: whoever looks after this is told of the next change, too.
            self._life.wake_all()
