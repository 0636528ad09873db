"""The TCP connection under a kazoo client: kept short of patience, and open to being cut.

kazoo has two habits that matter to a leader. It notices a dead connection only after two thirds
of the session timeout, and not at all while requests are being sent, since each of them puts off
its next ping. And it does not say which session timeout the server granted, which may be less
than was asked for. Both are mended here, through the handler that kazoo takes its sockets from.
"""

from __future__ import annotations

import socket
import struct
import threading
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler

# The server's first message on a connection: length, protocol version, granted timeout in
# milliseconds, session id, … Source: ZooKeeper's ConnectResponse in zookeeper.jute.
_CONNECT_RESPONSE = struct.Struct("!iii")


class LinkHandler(SequentialThreadingHandler):
    """kazoo's handler for threads, which also knows the socket it handed out last."""

    def __init__(self, connect_timeout: float) -> None:
        """Wait `connect_timeout` seconds at most for a TCP connection to one server."""
        super().__init__()
        self._connect_timeout = connect_timeout
        self._link_lock = threading.Lock()
        self._link: _Link | None = None
        self._granted: float | None = None

    @property
    def granted_timeout(self) -> float | None:
        """The session timeout that a server granted, in seconds; None before the first time."""
        with self._link_lock:
            granted = self._link.granted_timeout if self._link is not None else None
            self._granted = granted or self._granted
            return self._granted

    def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        """Connect to one server, without spending the whole session on it."""
        kwargs["timeout"] = min(
            kwargs.get("timeout") or self._connect_timeout, self._connect_timeout
        )
        link = _Link(super().create_connection(*args, **kwargs))
        with self._link_lock:
            self._link = link
        return link

    def drop(self) -> None:
        """Cut the connection, if there is one; kazoo then looks for another server at once."""
        with self._link_lock:
            link = self._link
        if link is not None:
            link.cut()


class _Link:
    """A socket that reads along what the server grants, and can be cut from another thread."""

    def __init__(self, inner: socket.socket) -> None:
        self._inner = inner
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        # kazoo asks a socket for `pending` to see whether it is an SSL socket, so what the
        # inner one lacks must be lacking here.
        return getattr(self._inner, name)

    def recv(self, size: int) -> bytes:
        """Receive, and keep the beginning of what comes first."""
        data = self._inner.recv(size)
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
