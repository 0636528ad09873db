"""The TCP connection under a kazoo client: with short time limits, and a way to cut it.

kazoo has some habits that matter to a leader. It notices a dead connection only after two thirds
of the session timeout, and not at all while requests are being sent, since each of them puts off
its next ping. It does not say which session timeout the server granted, which may be less than
was asked for. Why a connection failed goes to its log only. Over TLS it trusts every authority of
the system besides the one it is given, and leaves an answer lying that came together with another
in one TLS record. All are fixed here, through the handler that kazoo takes its sockets from.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler

from arbiter.access import Tls
from arbiter.errors import Invalid
from arbiter.session.connect_failures import ConnectFailure, connect_failure_of
from arbiter.session.tls import client_context

# The server's first message on a connection: length, protocol version, granted timeout in
# milliseconds, session id, … Source: ZooKeeper's ConnectResponse in zookeeper.jute.
_CONNECT_RESPONSE = struct.Struct("!iii")

_Selected = tuple[list[Any], list[Any], list[Any]]


class LinkHandler(SequentialThreadingHandler):
    """kazoo's handler for threads, which also knows the socket it handed out last."""

    def __init__(
        self,
        connect_timeout: float,
        tls: Tls | None = None,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """Hand out connections.

        Args:
            connect_timeout: seconds that a TCP connection to one server may take, and TLS again.
            tls: encryption, None for none.
            wake: called when there is new trouble; must not block.
        """
        super().__init__()
        self._connect_timeout = connect_timeout
        self._tls = tls
        self._wake = wake
        self._link_lock = threading.Lock()
        self._link: _Link | None = None
        self._granted: float | None = None
        self._connect_failures: dict[str, ConnectFailure] = {}
        self._refused: dict[str, float] = {}  # since when each does nothing but refuse
        self._fault: Exception | None = None
        self._spawned: list[threading.Thread] = []

    @property
    def granted_timeout(self) -> float | None:
        """The session timeout that a server granted, in seconds; None before the first time."""
        with self._link_lock:
            granted = self._link.granted_timeout if self._link is not None else None
            self._granted = granted or self._granted
            return self._granted

    @property
    def ended_by_server(self) -> bool:
        """Whether the last connection ended without this side wanting it."""
        with self._link_lock:
            return self._link is not None and self._link.over

    def connect_failures(self) -> Sequence[ConnectFailure]:
        """Why sessions did not begin: one for each server, the newest last."""
        with self._link_lock:
            return tuple(self._connect_failures.values())

    def forget_connect_failures(self) -> None:
        """A session has begun: what went wrong before is no reason for what comes."""
        with self._link_lock:
            self._connect_failures.clear()
            self._refused.clear()

    def refused_since(self, servers: int) -> float | None:
        """Since when all of so many servers have refused connections and done nothing else.

        A monotonic time; None if one has not, or has not been asked yet.
        """
        with self._link_lock:
            refused = self._refused.values()
            return max(refused) if len(refused) >= servers else None

    def note(self, server: str, error: OSError | None) -> None:
        """Note why no session began at a server, ``host:port``; None: it ended the connection."""
        problem = connect_failure_of(server, error, self._tls)
        with self._link_lock:
            self._connect_failures.pop(server, None)
            self._connect_failures[server] = problem
            if problem.refused:
                self._refused.setdefault(server, time.monotonic())
            else:
                self._refused.pop(server, None)
        self._wake()

    def fault(self, limit: float) -> Exception | None:
        """What kazoo's own thread ended with; waits `limit` seconds for its end."""
        for thread in self._spawned:
            thread.join(limit)
        return self._fault

    def create_connection(
        self,
        address: tuple[str, int],
        hostname: str = "",
        timeout: float | None = None,
        **_of_kazoo: Any,
    ) -> Any:
        """Connect to one server, without spending the whole session on it."""
        limit = min(timeout or self._connect_timeout, self._connect_timeout)
        server = f"{hostname or address[0]}:{address[1]}"

        def ended(error: OSError | None) -> None:
            self.note(server, error)

        try:
            plain: socket.socket = super().create_connection(address, timeout=limit)
            link = _Link(self._encrypted(plain, hostname or address[0]), ended)
        except OSError as error:
            self.note(server, error)
            raise
        with self._link_lock:
            self._link = link
        return link

    def select(
        self, rlist: Sequence[Any], wlist: Sequence[Any], xlist: Sequence[Any], timeout: Any = None
    ) -> _Selected:
        """As `select.select`; what TLS has decrypted already counts as readable."""
        held = [each for each in rlist if hasattr(each, "pending") and each.pending() > 0]
        if not held:
            return super().select(rlist, wlist, xlist, timeout)
        others = [each for each in rlist if each not in held]
        readable, writable, failed = super().select(others, wlist, xlist, 0)
        return held + readable, writable, failed

    def spawn(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> threading.Thread:
        """Start a thread of kazoo, and keep what it fails with for `fault`."""

        def run() -> None:
            try:
                func(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - kazoo has logged it, and raises anything
                self._fault = error
                self._wake()

        thread = super().spawn(run)
        if getattr(func, "__name__", "") == "zk_loop":
            self._spawned.append(thread)
        return thread

    def drop(self) -> None:
        """Cut the connection, if there is one; kazoo then looks for another server at once."""
        with self._link_lock:
            link = self._link
        if link is not None:
            link.cut()

    def _encrypted(self, plain: socket.socket, hostname: str) -> socket.socket:
        if self._tls is None:
            return plain
        try:
            # Made again each time: certificates are renewed while a node runs.
            return client_context(self._tls).wrap_socket(plain, server_hostname=hostname)
        except Invalid as error:
            plain.close()
            raise OSError(str(error)) from error  # kazoo goes on trying after an OSError only
        except OSError:
            plain.close()
            raise


class _Link:
    """A socket that notes what the server grants, and that another thread can cut."""

    def __init__(
        self, inner: socket.socket, ended: Callable[[OSError | None], None] = lambda _: None
    ) -> None:
        """Wrap a socket; `ended` is told if its other side ends it before a session begins."""
        self._inner = inner
        self._ended = ended
        self._head = b""
        self.over = False

    def __getattr__(self, name: str) -> Any:
        # kazoo asks a socket for `pending` to see whether it is an SSL socket, so what the
        # inner one lacks must be lacking here.
        return getattr(self._inner, name)

    def recv(self, size: int) -> bytes:
        """Receive, and keep the beginning of what comes first."""
        try:
            data = self._inner.recv(size)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError, InterruptedError):
            raise
        except OSError as error:
            self._end(error)
            raise
        if not data:
            self._end(None)
        if len(self._head) < _CONNECT_RESPONSE.size:
            self._head += data[: _CONNECT_RESPONSE.size - len(self._head)]
        return data

    @property
    def granted_timeout(self) -> float | None:
        """Seconds; None if the server has not answered, or has refused the session."""
        if len(self._head) < _CONNECT_RESPONSE.size:
            return None
        _, _, milliseconds = _CONNECT_RESPONSE.unpack(self._head)
        return milliseconds / 1000 if milliseconds > 0 else None

    def cut(self) -> None:
        """Make both sides see the end of the connection."""
        try:
            # Of the plain socket under a TLS one: shutting TLS down here would change its
            # state under the thread that reads from it.
            socket.socket.shutdown(self._inner, socket.SHUT_RDWR)
        except OSError:
            return  # it is gone already

    def _end(self, error: OSError | None) -> None:
        self.over = True
        if len(self._head) < _CONNECT_RESPONSE.size:
            self._ended(error)
