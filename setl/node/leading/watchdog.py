"""The local fence of I3: stops this node's writing when it may no longer be the leader.

It asks nobody. The node's loop may be waiting for an answer that does not come; this thread
only reads what is already known, so that nothing can hold it up.

While all is well it sleeps until it is stirred, or until silence lasts too long. It would wake up
ten times a second otherwise, on each node, whatever that leads.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from arbiter.election import allowed_silence
from arbiter.errors import Contact
from arbiter.znodes import Session
from setl.clock import Clock

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.1
_SURE_SECONDS = 1.0  # for which a stir may be missed


def contact_at(session: Session, now: float) -> Contact:
    """How well the arbiter is reached: what nodes act on, and tell everybody.

    The session itself is only suspended while no server can say that it is over. For the node it is
    lost once it has been silent for as long as the others may wait.

    Args:
        session: what is known of it.
        now: monotonic time.
    """
    if now - session.last_contact() > allowed_silence(session.session_timeout):
        return Contact.LOST
    return session.contact()


class Suspendable(Protocol):
    """What the watchdog acts on."""

    def suspend(self) -> None:
        """Start no new load. Must not block."""

    def abort(self) -> None:
        """Cancel what runs. Must not block."""


class Watchdog:
    """Suspends on SUSPENDED; aborts on LOST or when the deadline since last contact passes."""

    def __init__(
        self,
        session: Session,
        supervisor: Callable[[], Sequence[Suspendable]],
        clock: Clock,
    ) -> None:
        self._session = session
        self._supervisor = supervisor
        self._clock = clock
        self._stopping = False
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._last = Contact.CONNECTED
        self._logged = ""  # why there is no contact

    def start(self) -> None:
        """Begin to watch."""
        self._session.watch(self._woken.set)
        self._thread.start()

    def stop(self) -> None:
        """Stop watching."""
        self._stopping = True
        self._woken.set()

    def pause(self) -> float:
        """Seconds until the next look, if nothing stirs before.

        Silence ends the contact by itself, at a time that is known. What is over is reported again
        and again: a run that begins meanwhile has to hear of it, too.
        """
        if self._last is not Contact.CONNECTED:
            return _LOOK_SECONDS
        silent = self._clock.monotonic() - self._session.last_contact()
        left = allowed_silence(self._session.session_timeout) - silent
        return min(_SURE_SECONDS, max(_LOOK_SECONDS, left))

    def look(self) -> Contact:
        """One look: act on what is known now, and say what that was."""
        now = self._clock.monotonic()
        contact, silent = contact_at(self._session, now), now - self._session.last_contact()
        if contact is not self._last:
            _log.warning(
                "contact with ZooKeeper changed",
                extra={"setl": {"contact": contact.value, "silent_seconds": round(silent, 1)}},
            )
            self._last = contact
            self._logged = ""
        if contact is not Contact.CONNECTED:
            for controller in self._supervisor():
                if contact is Contact.LOST:
                    controller.abort()
                else:
                    controller.suspend()
            self._log_problem()
        return contact

    def _log_problem(self) -> None:
        """Say once why ZooKeeper is not reached: a certificate, for example, may be at fault."""
        problem = self._session.problem()
        if problem and problem != self._logged:
            self._logged = problem
            _log.warning("ZooKeeper is not reached", extra={"setl": {"error": problem}})

    def _watch(self) -> None:
        pause = 0.0
        while True:
            self._woken.wait(pause)
            self._woken.clear()  # before the look: what changes during it stirs again
            if self._stopping:
                return
            pause = _LOOK_SECONDS
            try:
                self.look()
                pause = self.pause()
            except Exception:  # noqa: BLE001 - it has to look on, or nothing would suspend the runs
                _log.exception("the watchdog failed to look")
