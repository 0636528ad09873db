"""What a node tells the others of itself, in a znode that ends with its session."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError, Conflict, Contact
from arbiter.values import NodeInfo
from setl.clock import Clock
from setl.log import fields
from setl.waiting import polling

_log = logging.getLogger(__name__)

_PAUSE = 0.2


class Announcement:
    """Tells the others what a node is, again and again as that changes."""

    def __init__(
        self,
        arbiter: Arbiter,
        info: Callable[[], NodeInfo],
        clock: Clock,
        stopping: threading.Event,
    ) -> None:
        """Tell nothing yet.

        Args:
            arbiter: where to tell it.
            info: what the node is now.
            clock: for how long another process is waited for.
            stopping: set once the node stops; nothing is waited for then.
        """
        self._arbiter = arbiter
        self._info = info
        self._clock = clock
        self._stopping = stopping
        self._announced: NodeInfo | None = None

    def make(self) -> None:
        """Make the node known; waits out the session of a process that had the same id.

        Raises:
            Conflict: that session goes on.
            ArbiterError: it is unknown.
        """
        info = self._info()
        limit, refused = 2 * self._arbiter.session.session_timeout, None
        for _ in polling(limit, _PAUSE, monotonic=self._clock.monotonic, pause=self._stopping.wait):
            try:
                self._arbiter.nodes.announce(info)
            except Conflict as error:
                if refused is None:
                    _log.warning(
                        "node id is in use; the node waits until that session ends",
                        extra=fields(nid=info.nid, error=str(error)),
                    )
                refused = error
            else:
                self._announced = info
                return
        if refused is not None:
            raise refused

    def renew(self, *, busy: bool) -> None:
        """Tell it in a new session, unless the node still leads; and again if it has changed.

        Raises as `make`.
        """
        contact = self._arbiter.session.contact()
        if contact is Contact.LOST and not busy:
            self.make()
            _log.info("node rejoins", extra=fields(nid=self._info().nid))
        elif contact is Contact.CONNECTED and self._announced != self._info():
            self.make()

    def forget(self) -> None:
        """Somebody else has written over it: it is told again."""
        self._announced = None

    def missing_for(self, info: NodeInfo) -> bool:
        """Whether the others do not know yet what the node cannot lead."""
        return self._announced is not None and self._announced.not_ready != info.not_ready

    def leave(self) -> None:
        """Nobody waits for the node's turn, or takes the end of its session for a death."""
        if self._announced is not None and self._arbiter.session.contact() is Contact.CONNECTED:
            with suppress(ArbiterError):
                self._arbiter.nodes.announce(replace(self._announced, ready=False))
