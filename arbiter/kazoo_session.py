"""A ZooKeeper session through kazoo: requests with limits, and a watch over its life."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    InvalidACLError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    OperationTimeoutError,
    SessionExpiredError,
)
from kazoo.handlers.threading import AsyncResult, KazooTimeoutError
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.security import CREATOR_ALL_ACL

from arbiter.access import Access, Tls
from arbiter.kazoo_link import LinkHandler
from arbiter.keeper import Keeper
from arbiter.lifeline import Lifeline
from arbiter.paths import Paths
from arbiter.port import ArbiterError, Contact, Denied, Invalid, Unreachable
from arbiter.watching import Fired, TreeWatch
from arbiter.znodes import Changed, Exists, Missing, Silent, Znode

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

_CLOSE_SECONDS = 3.0


class KazooSession:
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
        self._hosts = hosts
        self._root = paths.root or "/"
        self._asked_timeout = session_timeout
        self._call_timeout = call_timeout or max(0.5, session_timeout / 3)
        self._access = access or Access()
        self._life = Lifeline()
        self._watches = TreeWatch(paths, self, self._stir)
        self._keeper = Keeper(self._life, self, self._watches, lambda: self.session_timeout)
        self._closing = False
        self._ended = ""  # why kazoo has given up, if it has
        self._handler, self._client = self._new_client()

    # -- its life -------------------------------------------------------------------------

    def start(self, timeout: float) -> None:
        """Connect, within `timeout` seconds. May be tried again after it has failed.

        Raises:
            Unreachable: no server answered in time.
            Denied: the credentials are wrong.
        """
        if self._life.connected:
            return
        deadline = time.monotonic() + timeout
        self._closing = False
        try:
            self._client.start_async().wait(timeout)
            self._keeper.beat(max(0.1, deadline - time.monotonic()))
        except Unreachable as error:
            denied = self._ended == KeeperState.AUTH_FAILED
            self._end(0.0)
            self._handler, self._client = self._new_client()
            if denied:
                raise Denied(f"ZooKeeper at {self._hosts} refuses the credentials") from error
            raise Unreachable(
                f"no ZooKeeper server answered within {timeout:g} s at {self._hosts}"
            ) from error
        self._life.rejoined(self._life.session_id())
        self._keeper.start()

    def close(self) -> None:
        """See `arbiter.znodes.Znodes.close`.

        A server that does not answer is not waited for: the session then ends by its timeout.
        """
        self._closing = True
        self._keeper.stop()
        self._end(_CLOSE_SECONDS)  # which answers what the keeper may be waiting for
        self._keeper.join(1.0)

    def revive(self) -> None:
        """See `arbiter.keeper.Heart.revive`."""
        if self._ended and not self._closing:
            _log.warning("session begins anew", extra={"setl": {"ended": self._ended}})
            self._end(_CLOSE_SECONDS)
            self._handler, self._client = self._new_client()
            self._client.start_async()

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

    def session_id(self) -> int:
        """See `arbiter.znodes.Znodes.session_id`."""
        return self._life.session_id()

    def watch(self, wake: Callable[[], None]) -> None:
        """See `arbiter.znodes.Znodes.watch`."""
        self._life.watch(wake)

    def rejoined(self, session: int) -> None:
        """See `arbiter.znodes.Znodes.rejoined`."""
        self._life.rejoined(session)

    # -- requests -------------------------------------------------------------------------

    def create(
        self,
        path: str,
        data: bytes,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
        session: int = 0,
    ) -> Znode:
        """See `arbiter.znodes.Znodes.create`."""
        _, stat = self._ask(
            path,
            lambda client: client.create_async(
                path, data, ephemeral=ephemeral, sequence=sequential, include_data=True
            ),
            session=session,
        )
        return Znode(data, stat.version, stat.czxid, stat.ephemeralOwner)

    def read(self, path: str) -> Znode | None:
        """See `arbiter.znodes.Znodes.read`."""
        return self.read_all((path,))[0]

    def read_all(self, paths: Sequence[str]) -> list[Znode | None]:
        """See `arbiter.znodes.Znodes.read_all`."""
        deadline = time.monotonic() + self._call_timeout
        with self._life.bound(0):
            pending = [self._client.get_async(path) for path in paths]
        found: list[Znode | None] = []
        for path, answer in zip(paths, pending, strict=True):
            try:
                data, stat = self._wait(path, answer, deadline - time.monotonic())
            except Missing:
                found.append(None)
            else:
                found.append(Znode(data or b"", stat.version, stat.czxid, stat.ephemeralOwner))
        return found

    def children(self, path: str) -> list[str]:
        """See `arbiter.znodes.Znodes.children`."""
        try:
            return sorted(self._ask(path, lambda client: client.get_children_async(path)))
        except Missing:
            return []

    def write(self, path: str, data: bytes, version: int, *, session: int = 0) -> int:
        """See `arbiter.znodes.Znodes.write`."""
        stat = self._ask(
            path, lambda client: client.set_async(path, data, version), session=session
        )
        return stat.version

    def delete(self, path: str, version: int, *, session: int = 0) -> None:
        """See `arbiter.znodes.Znodes.delete`."""
        self._ask(path, lambda client: client.delete_async(path, version), session=session)

    # -- for the keeper and its watches -----------------------------------------------------

    def beat(self, session: int, limit: float) -> None:
        """See `arbiter.keeper.Heart.beat`: a sync is answered by the leading server."""
        root = self._root
        self._ask(root, lambda client: client.sync_async(root), session=session, limit=limit)

    def drop(self) -> None:
        """See `arbiter.keeper.Heart.drop`."""
        self._handler.drop()

    def children_watched(self, path: str, fired: Fired) -> Sequence[str] | None:
        """See `arbiter.watching.WatchedReads.children_watched`."""
        try:
            return self._ask(path, lambda client: client.get_children_async(path, watch=fired))
        except Missing:
            return None

    def exists_watched(self, path: str, fired: Fired) -> bool:
        """See `arbiter.watching.WatchedReads.exists_watched`."""
        return self._ask(path, lambda client: client.exists_async(path, watch=fired)) is not None

    # -- how ------------------------------------------------------------------------------

    def _new_client(self) -> tuple[LinkHandler, KazooClient]:
        """A client of kazoo that has not been started; each is started once only."""
        handler = LinkHandler(connect_timeout=self._asked_timeout / 3)
        access, tls = self._access, self._access.tls or Tls()
        try:
            client = KazooClient(
                hosts=self._hosts,
                timeout=self._asked_timeout,
                handler=handler,
                # The default pauses grow up to an hour; a session is lost long before.
                connection_retry={
                    "max_tries": -1,
                    "delay": 0.1,
                    "max_delay": min(1.0, self._asked_timeout / 10),
                },
                auth_data=[("digest", access.digest)] if access.digest else None,
                sasl_options=dict(access.sasl) or None,
                default_acl=CREATOR_ALL_ACL if access.digest or access.sasl else None,
                use_ssl=access.tls is not None,
                ca=tls.ca or None,
                certfile=tls.certificate or None,
                keyfile=tls.key or None,
                keyfile_password=tls.key_password or None,
                check_hostname=tls.check_hostname,
                logger=_quiet_logger(),
            )
        except (KazooException, ValueError) as error:
            raise Invalid(f"not ZooKeeper addresses: {self._hosts!r} ({error})") from error
        self._ended = ""
        client.add_listener(lambda state: self._on_state(client, state))
        return handler, client

    def _on_state(self, client: KazooClient, state: str) -> None:
        """In kazoo's connection thread: sets flags and wakes, asks ZooKeeper nothing."""
        if client is not self._client:
            return
        if state == KazooState.CONNECTED:
            self._life.on_connected((client.client_id or (0, b""))[0])
            self._watches.forget()
        elif state == KazooState.SUSPENDED:
            self._life.on_suspended()
        else:
            if client.client_state != KeeperState.EXPIRED_SESSION:
                # Not just the session: kazoo's own thread ends, and will not try again.
                self._ended = client.client_state
            self._life.on_lost()
            self._stir()

    def _stir(self) -> None:
        self._keeper.stir()

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

    def _ask(
        self,
        path: str,
        send: Callable[[KazooClient], AsyncResult[_T]],
        *,
        session: int = 0,
        limit: float | None = None,
    ) -> _T:
        """Send a request in a session and wait for its answer, within a limit."""
        # kazoo queues requests while it is not connected, and sends them whenever it is again;
        # `bound` refuses them at once.
        with self._life.bound(session):
            pending = send(self._client)
        return self._wait(path, pending, self._call_timeout if limit is None else limit)

    def _wait(self, path: str, pending: AsyncResult[_T], limit: float) -> _T:
        try:
            return pending.get(timeout=max(0.0, limit))
        except (KazooException, KazooTimeoutError) as error:
            self._translate(error, path)

    def _translate(self, error: Exception, path: str) -> NoReturn:
        at = f"ZooKeeper at {self._hosts}"
        if isinstance(error, NodeExistsError):
            raise Exists(path) from error
        if isinstance(error, NoNodeError):
            raise Missing(path) from error
        if isinstance(error, BadVersionError):
            raise Changed(path) from error
        if isinstance(error, KazooTimeoutError | OperationTimeoutError):
            raise Silent(f"{at} did not answer in time about {path}") from error
        if isinstance(error, ConnectionLoss | ConnectionClosedError | SessionExpiredError):
            raise Unreachable(
                f"the connection to {at} was lost while it was asked about {path}"
            ) from error
        if isinstance(error, NoAuthError | AuthFailedError | InvalidACLError):
            raise Denied(f"{at} does not allow this for {path}") from error
        raise ArbiterError(f"{at} answered {type(error).__name__} about {path}") from error


def _quiet_logger() -> logging.Logger:
    """The logger of kazoo without its debug lines: they show requests, credentials included."""
    logger = logging.getLogger("kazoo.client")
    if _without_debug not in logger.filters:
        logger.addFilter(_without_debug)
    return logger


def _without_debug(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.INFO
