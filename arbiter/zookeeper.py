"""The arbiter on ZooKeeper."""

from __future__ import annotations

import math
from collections.abc import Callable

from arbiter.access import Access
from arbiter.arbiter import Arbiter
from arbiter.paths import Paths
from arbiter.session.kazoo_session import KazooSession


class ZooKeeperArbiter(Arbiter):
    """One session with a ZooKeeper server or ensemble (3.5 or newer).

    `start` it before anything else. When the session is lost kazoo opens another by itself;
    `contact` stays LOST until the node is announced in the new one.

    Signs of life are asked for every sixth of the session timeout. A connection on which one
    stays unanswered for a quarter of it counts as SUSPENDED, and another server is tried.
    """

    def __init__(
        self,
        hosts: str,
        *,
        root: str = "/setl",
        session_timeout: float = 10.0,
        call_timeout: float | None = None,
        history_limit: int = 100,
        access: Access | None = None,
    ) -> None:
        """Describe the session; nothing is connected yet.

        Args:
            hosts: the servers, ``host:port,host:port``.
            root: the path under which everything lies.
            session_timeout: seconds of silence after which the session is dead; the servers
                may grant another, within 2 to 20 of their ticks unless they say otherwise.
            call_timeout: seconds each request may take; a third of the session by default. A
                call makes a few requests, and the first that fails ends it.
            history_limit: history items kept of each pipeline.
            access: credentials and encryption.

        Raises:
            Invalid: an argument makes no sense.
        """
        self._session_of_kazoo = KazooSession(
            hosts,
            paths=Paths.under(root),
            session_timeout=session_timeout,
            call_timeout=call_timeout,
            access=access,
        )
        super().__init__(self._session_of_kazoo, root=root, history_limit=history_limit)

    def start(
        self,
        timeout: float = 10.0,
        gives_up: Callable[[], bool] = lambda: False,
        refused_limit: float = math.inf,
    ) -> None:
        """Connect, within `timeout` seconds. May be tried again after it has failed.

        Args:
            timeout: seconds.
            gives_up: whether the caller waits no longer.
            refused_limit: see `arbiter.session.kazoo_session.KazooSession.start`.

        Raises:
            Unreachable: no server answered in time, or before the caller gave up.
            Denied: see `arbiter.session.kazoo_session.KazooSession.start`.
        """
        self._session_of_kazoo.start(timeout, gives_up, refused_limit)
