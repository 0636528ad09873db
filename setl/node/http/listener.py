"""One address at which a node answers HTTP, from a thread and an event loop of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from setl.node.http.connections import Limits, bounded
from setl.node.http.exposure import Exposure
from setl.node.http.middleware import Forwarded, KnownHosts


class DefaultHeaders:
    """Has browsers take answers for what they are said to be, and nobody keep them."""

    def __init__(self, application: ASGIApp) -> None:
        """For all answers of `application`."""
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the specification of ASGI."""

        async def send_with(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("X-Content-Type-Options", "nosniff")
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._application(scope, receive, send_with)


_STOP_SECONDS = 3.0
_TICK_SECONDS = 1.0
_ANYWHERE = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - recognised, not bound to


class _Server(uvicorn.Server):
    """Looks whether to end once a second, and not ten times: a node does so all its life."""

    def __init__(self, config: uvicorn.Config) -> None:
        """Not started yet."""
        super().__init__(config)
        self._ended: Callable[[], object] = lambda: None

    def end(self) -> None:
        """Begin to end, at once; from any thread."""
        self.should_exit = True
        self._ended()

    async def main_loop(self) -> None:
        """See `uvicorn.Server.main_loop`; the first of ten looks renews the header `Date`."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def end() -> None:
            with suppress(RuntimeError):  # it has ended already
                loop.call_soon_threadsafe(ended.set)

        self._ended = end
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), _TICK_SECONDS)


class ListenError(OSError):
    """An address is taken, or not this machine's; the text says which, and why."""


class Listener:
    """Serves an application on a socket that is bound at once."""

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        application: ASGIApp,
        *,
        limits: Limits,
        exposure: Exposure,
    ) -> None:
        """Bind, but do not answer yet.

        Args:
            name: what its thread is called.
            host: address to bind to.
            port: port to bind to; 0 takes any free one.
            application: what answers.
            limits: of its connections.
            exposure: the names for which it answers; and the proxies, which may have as many
                connections as there are.

        Raises:
            ListenError: the port is taken, or the address is not this machine's.
        """
        try:
            self._socket = _bound(host, port)
        except OSError as error:
            why = error.strerror or error
            raise ListenError(f"{host}:{port}: {why}") from error
        announced = _announced(host)
        self.address = f"http://{announced}:{self._socket.getsockname()[1]}"
        named = KnownHosts(application, (*exposure.hosts, announced))
        config = uvicorn.Config(
            Forwarded(DefaultHeaders(named), exposure),
            http=bounded(limits, exposure.is_proxy),
            # What clients say of themselves is looked at by `Forwarded` alone, and
            # FORWARDED_ALLOW_IPS by nobody.
            proxy_headers=False,
            ws="none",
            log_level="critical",
            access_log=False,
            lifespan="off",
            server_header=False,
            limit_concurrency=limits.connections + 1,  # connections are refused before
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name=name, daemon=True
        )

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop answering; bounded."""
        self._server.end()
        if self._thread.is_alive():
            self._thread.join(timeout=_STOP_SECONDS)
        self._socket.close()


def _bound(host: str, port: int) -> socket.socket:
    bare = host.removeprefix("[").removesuffix("]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    return socket.create_server((bare, port), family=family)


def _announced(host: str) -> str:
    """The host by which others reach this node; a wildcard is no address to call."""
    bare = host.removeprefix("[").removesuffix("]")
    if bare in _ANYWHERE:
        return socket.gethostname()
    return f"[{bare}]" if ":" in bare else bare
