"""A ZooKeeper session through kazoo, and its life: it begins, is refused, ends, restarts."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.security import ACL

from arbiter.access import Access
from arbiter.errors import ArbiterError, Contact, Denied, Invalid, Unreachable
from arbiter.paths import Paths
from arbiter.session.acls import check_root
from arbiter.session.connect_failures import describe_failures
from arbiter.session.kazoo_client import new_client, refusal, unanswered
from arbiter.session.kazoo_link import LinkHandler
from arbiter.session.kazoo_requests import KazooRequests
from arbiter.session.monitor import Monitor
from arbiter.session.names import NameLookups
from arbiter.znodes import Missing

_log = logging.getLogger(__name__)

_CLOSE_SECONDS = 3.0
_ASK_SECONDS = 0.2  # after which `start` asks again whether anybody waits for it

_FORGOTTEN = 2
"""Session timeouts without contact after which what was seen before counts no more."""


class _AllRefuse(Unreachable):
    """No server is there to wait for."""


class KazooSession(KazooRequests):
    """Implements `arbiter.znodes.Znodes`, whose method descriptions hold here."""

    def __init__(
        self,
        hosts: str,
        *,
        paths: Paths,
        session_timeout: float = 10.0,
        call_timeout: float | None = None,
        access: Access | None = None,
    ) -> None:
        """Describe a session; `start` begins it.

        Args:
            hosts: the servers, ``host:port,host:port``.
            paths: where to watch.
            session_timeout: seconds to ask for; the servers may grant another.
            call_timeout: seconds that a request may take, a third of the session by default.
            access: credentials and encryption.

        Raises:
            Invalid: an argument makes no sense.
        """
        if session_timeout <= 0:
            raise Invalid(f"the session timeout must be positive, not {session_timeout}")
        super().__init__(hosts, paths, call_timeout or max(0.5, session_timeout / 3), self._wake)
        self._paths = paths
        self._asked_timeout = session_timeout
        self._access = access or Access()
        self._monitor = Monitor(self._life, self, self._watches, lambda: self.session_timeout)
        self._closing = False
        self._ended = ""  # why kazoo has given up, if it has
        self._logged_again: tuple[str, str, float] = ("", "", 0.0)  # the last that was said aloud
        self._news = threading.Event()  # of the connection, for `start`
        self._handler, self._client = self._new_client()

    # -- its life -------------------------------------------------------------------------

    def start(
        self,
        timeout: float,
        gives_up: Callable[[], bool] = lambda: False,
        refused_limit: float = math.inf,
    ) -> None:
        """Connect, within `timeout` seconds. May be tried again after it has failed.

        Args:
            timeout: seconds.
            gives_up: whether the caller waits no longer; asked several times a second.
            refused_limit: seconds after which it is an answer that every server refuses
                connections. One that is started again does so for a moment, and silence may mean
                anything.

        Raises:
            Unreachable: no server answered in time, or before the caller gave up.
            Denied: the credentials are wrong, missing, or of no use since the root is open to
                everybody; or a certificate was refused, by this side or the other.
        """
        if self._life.connected:
            return
        deadline = time.monotonic() + timeout
        self._closing = False
        try:
            self._client.start_async()
            with NameLookups(self._servers(), self._handler.note):
                self._await_answer(deadline, gives_up, refused_limit)
            self._check_root()
        except ArbiterError as error:
            refused, problem = self._refusal(), self._unanswered()
            answering = isinstance(error, Denied) and self._life.connected
            self._end(_CLOSE_SECONDS if answering else 0.0)
            self._handler, self._client = self._new_client()
            if refused:
                raise Denied(refused) from error
            if not isinstance(error, Unreachable):
                raise
            if isinstance(error, _AllRefuse):
                raise Unreachable(
                    f"no ZooKeeper server is there at {self._hosts}, for {refused_limit:g} s"
                    f" now{problem}"
                ) from error
            raise Unreachable(
                f"no ZooKeeper server answered within {timeout:g} s at {self._hosts}{problem}"
            ) from error
        self._life.rejoined(self._life.session_id())
        self._monitor.start()

    def close(self) -> None:
        """See `arbiter.znodes.Znodes.close`.

        A server that does not answer is not waited for: the session then ends by its timeout.
        """
        self._closing = True
        self._monitor.stop()
        self._end(_CLOSE_SECONDS)  # which answers what the monitor may be waiting for
        self._monitor.join(1.0)

    def revive(self) -> None:
        """See `arbiter.session.monitor.MonitoredConnection.revive`."""
        if self._ended and not self._closing:
            self._refused = "" if self._handler.ended_by_server else self._refusal()
            # A login that is refused is tried again each second, and told of once.
            news = self._ended, self._refused, self._life.last_contact()
            _log.log(
                logging.DEBUG if self._refused and news == self._logged_again else logging.WARNING,
                "session restarts",
                extra={"setl": {"ended": self._ended, "refused": self._refused}},
            )
            self._logged_again = news
            self._end(_CLOSE_SECONDS)
            self._handler, self._client = self._new_client()
            self._client.start_async()
        elif time.monotonic() - self._life.last_contact() > _FORGOTTEN * self.session_timeout:
            # Servers refuse a client that has seen a later zxid than they have, and one that was
            # set up again has a low one for long. The session is over by any clock, and a new one
            # may begin from whatever is there, as that of a new process does.
            self._client.last_zxid = 0

    @property
    def session_timeout(self) -> float:
        """See `arbiter.znodes.Znodes.session_timeout`."""
        return self._handler.granted_timeout or self._asked_timeout

    def contact(self) -> Contact:
        """See `arbiter.znodes.Znodes.contact`."""
        return self._life.contact()

    def last_contact(self) -> float:
        """See `arbiter.znodes.Znodes.last_contact`."""
        return self._life.last_contact()

    def problem(self) -> str:
        """See `arbiter.znodes.Znodes.problem`."""
        if self._life.contact() is Contact.CONNECTED:
            return ""
        return describe_failures(self._handler.connect_failures(), len(set(self._client.hosts)))

    def session_id(self) -> int:
        """See `arbiter.znodes.Znodes.session_id`."""
        return self._life.session_id()

    def watch(self, wake: Callable[[], None]) -> None:
        """See `arbiter.znodes.Znodes.watch`."""
        self._life.watch(wake)

    def rejoined(self, session: int) -> None:
        """See `arbiter.znodes.Znodes.rejoined`."""
        self._life.rejoined(session)

    # -- for the monitor ---------------------------------------------------------------------

    def ping(self, session: int, limit: float) -> None:
        """See `arbiter.session.monitor.MonitoredConnection.ping`.

        It is a sync, since the leading server answers that. A leading server that has lost its
        followers answers for up to ``syncLimit`` more. That does no harm: the others notice no
        sooner, and whoever they elect gives every session its whole timeout again, so that this one
        ends here before it ends there.
        """
        root = self._root
        self._ask(root, lambda client: client.sync_async(root), session=session, limit=limit)
        self._refused = ""

    def drop(self) -> None:
        """See `arbiter.session.monitor.MonitoredConnection.drop`."""
        self._handler.drop()

    # -- how ------------------------------------------------------------------------------

    def _new_client(self) -> tuple[LinkHandler, KazooClient]:
        """A client of kazoo that has not been started; each is started once only."""
        handler, client = new_client(
            self._hosts,
            session_timeout=self._asked_timeout,
            access=self._access,
            wake=self._news.set,
        )
        self._ended = ""
        client.add_listener(lambda state: self._on_state(client, state))
        return handler, client

    def _on_state(self, client: KazooClient, state: str) -> None:
        """In kazoo's connection thread: sets flags and wakes, asks ZooKeeper nothing."""
        if client is not self._client:
            return
        self._news.set()
        if state == KazooState.CONNECTED:
            self._handler.forget_connect_failures()
            self._life.on_connected((client.client_id or (0, b""))[0])
            self._watches.forget()
        elif state == KazooState.SUSPENDED:
            self._life.on_suspended()
        else:
            if client.client_state != KeeperState.EXPIRED_SESSION:
                # Not just the session: kazoo's own thread ends, and will not try again.
                self._ended = client.client_state
            self._life.on_lost()
            self._wake()

    def _wake(self) -> None:
        self._monitor.wake()

    def _await_answer(
        self, deadline: float, gives_up: Callable[[], bool], refused_limit: float
    ) -> None:
        """Wait for the first answer, unless it is certain that there will be none."""
        servers = len(self._servers())
        while True:
            refused = self._handler.refused_since(servers)
            if refused is not None and time.monotonic() - refused >= refused_limit:
                raise _AllRefuse("every server refuses connections")
            if self._refusal() or gives_up():
                raise Unreachable("it is no use to wait")
            if self._life.connected:
                try:
                    return self._monitor.ping(max(0.1, deadline - time.monotonic()))
                except Unreachable as error:
                    if time.monotonic() >= deadline:
                        raise
                    _log.debug("no answer yet", extra={"setl": {"error": str(error)}})
            elif time.monotonic() >= deadline:
                raise Unreachable("there is no connection in time")
            else:
                self._news.wait(min(_ASK_SECONDS, max(0.0, deadline - time.monotonic())))
            self._news.clear()

    def _servers(self) -> set[tuple[str, int]]:
        hosts: Sequence[tuple[str, int]] = cast("Any", self._client).hosts
        return {(str(host), int(port)) for host, port in hosts}

    def _refusal(self) -> str:
        return refusal(self._hosts, self._client, self._handler, self._ended)

    def _unanswered(self) -> str:
        return unanswered(self._client, self._handler, self._access)

    def _check_root(self) -> None:
        """See `arbiter.session.acls.check_root`."""

        def acls_of(path: str) -> Sequence[ACL]:
            try:
                return self._ask(path, lambda client: client.get_acls_async(path))[0]
            except Missing:
                return ()

        below = (self._paths.nodes, self._paths.channels)
        at = f"ZooKeeper at {self._hosts}"
        check_root(self._root, below, at, self._access, read=self.read, acls_of=acls_of)

    def _end(self, limit: float) -> None:
        """End kazoo's client, and wait `limit` seconds for the server to hear of it."""
        client, handler = self._client, self._handler

        def stop() -> None:
            try:
                client.stop()
                client.close()
            except Exception as error:  # noqa: BLE001 - kazoo raises bare Exception here
                _log.debug("session not closed", extra={"setl": {"error": str(error)}})

        # kazoo waits ten seconds and more for its threads, so it does that in a thread.
        stopper = threading.Thread(target=stop, name="arbiter-close", daemon=True)
        stopper.start()
        stopper.join(limit)
        if stopper.is_alive():
            handler.drop()
        self._life.on_lost()
