"""Keeps strangers from using up a node's connections.

uvicorn limits neither how long a request may take to come in nor how many connections one address
may have. A few hundred requests that are sent by halves would keep everybody else out.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from setl.node.http.authentication import client_name

_REFUSED = "HTTP/1.1 {} {}\r\nConnection: close\r\nContent-Length: 0\r\nRetry-After: 1\r\n\r\n"
_ROUNDS = 6
"""How often a client that still takes an answer is given `head_seconds` again."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a listener's connections.

    Attributes:
        connections: of all clients at a time; further ones are answered 503 and closed.
        of_one_address: of one client at a time; further ones are answered 429 and closed.
        head_seconds: in which the head of a request has to be complete, from the beginning of the
            connection, or from the answer to the last request.
        body_seconds: in which its body has to be complete, from the end of the head. A little more
            than endpoints wait for it, so that they can say so.
        stalled_seconds: for which a client may take nothing of an answer.
    """

    connections: int = 512
    of_one_address: int = 64
    head_seconds: float = 10.0
    body_seconds: float = 12.0
    stalled_seconds: float = 30.0


OF_PROBES = Limits(connections=128, of_one_address=32)
"""Probes are short, and few ask for them."""


class _Admitted:
    """The connections of one listener, by client; to be used from one event loop."""

    def __init__(self, limits: Limits, unlimited: Callable[[str], bool]) -> None:
        self.limits = limits
        self._unlimited = unlimited
        self._open: Counter[str] = Counter()

    def refusal(self, client: str) -> str:
        """The answer to a connection that is one too many; "" if it is admitted."""
        if self._open.total() >= self.limits.connections:
            return _REFUSED.format(503, "Service Unavailable")
        name = client_name(client)
        if self._open[name] >= self.limits.of_one_address and not self._unlimited(client):
            return _REFUSED.format(429, "Too Many Requests")
        self._open[name] += 1
        return ""

    def leave(self, client: str) -> None:
        """An admitted connection has ended."""
        name = client_name(client)
        self._open[name] -= 1
        if self._open[name] <= 0:
            del self._open[name]


class _Connection(H11Protocol):
    """A connection that is closed when a request, or the taking of an answer, takes too long."""

    admitted: _Admitted
    _is_admitted = False
    _timer: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _waits_for: tuple[str, object] | None = None
    _left = 0  # bytes of an answer that the client had not taken when last looked
    _rounds = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        peer: object = transport.get_extra_info("peername")
        self._client = str(cast("tuple[Any, ...]", peer)[0]) if isinstance(peer, tuple) else ""
        refused = self.admitted.refusal(self._client)
        if refused:
            self.transport = transport
            transport.write(refused.encode())
            transport.close()
            return
        self._is_admitted = True
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._is_admitted:
            return
        self.admitted.leave(self._client)
        super().connection_lost(exc)
        for timer in (self._timer, self._stalled):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        if self._is_admitted:
            super().data_received(data)
            self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(
            self.admitted.limits.stalled_seconds, self.transport.abort
        )

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _watch(self) -> None:
        """Begin to count again when something else is waited for; bytes alone renew nothing."""
        limits = self.admitted.limits
        if self.conn.their_state is h11.SEND_BODY:
            waits_for, seconds = ("body", self.cycle), limits.body_seconds
        # None before the first request, which uvicorn's types do not say.
        elif cast("object", self.cycle) is None or self.cycle.response_complete:
            waits_for, seconds = ("head", self.cycle), limits.head_seconds
        else:
            waits_for, seconds = None, 0.0
        if waits_for == self._waits_for:
            return
        self._waits_for = waits_for
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if waits_for is not None:
            self._left, self._rounds = self.transport.get_write_buffer_size(), 0
            self._timer = self.loop.call_later(seconds, self._end)

    def _end(self) -> None:
        """Close, at once: a transport that waits for the client to take the rest never closes."""
        left = self.transport.get_write_buffer_size()
        if 0 < left < self._left and self._rounds < _ROUNDS:
            self._left, self._rounds = left, self._rounds + 1
            self._timer = self.loop.call_later(self.admitted.limits.head_seconds, self._end)
            return
        self.transport.abort()


def bounded(
    limits: Limits, unlimited: Callable[[str], bool] = lambda _: False
) -> type[asyncio.Protocol]:
    """A protocol for uvicorn whose connections share limits.

    Args:
        limits: of all of them together.
        unlimited: whether an address may have as many as there are, as a proxy needs to.
    """
    of_listener = _Admitted(limits, unlimited)

    class Connection(_Connection):
        admitted = of_listener

    return Connection
