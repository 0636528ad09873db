"""TCP links that can be cut or slow: silently, one way or both, for as long as a drill wants.

A network partition loses no byte of an open connection. What was sent stays with the sender and
arrives when the network is back, if both ends still wait for it: a COMMIT may arrive long after
its sender was declared dead. So a cut link stops passing bytes on, keeps the connections open on
both sides, and delivers what it holds when it heals. A connection asked for meanwhile gets no
answer until then.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Coroutine
from enum import Enum
from typing import Any, Self, TypeVar

from setl_embedded.ports import HOST, free_port

_T = TypeVar("_T")
_CHUNK = 1 << 16
_UNDER_WAY = 64  # chunks that a slow link holds
_LIMIT = 10.0  # seconds that a request to the loop's thread may take


class Direction(Enum):
    """Which way bytes no longer pass."""

    BOTH = "both ways"
    TO_SERVER = "towards the server"
    TO_CLIENT = "towards the client"


class Links:
    """All links of a process, served by one thread; a context manager."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="links", daemon=True)
        self._links: list[Link] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for link in self._links:
            link.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_LIMIT)
        if not self._thread.is_alive():
            self._loop.close()

    def add(self, name: str, host: str, port: int, delay: float = 0.0) -> Link:
        """A link to a server, open; clients use its own port.

        Args:
            name: what reports call it.
            host: the server's.
            port: the server's.
            delay: seconds by which bytes arrive later, each way.
        """
        link = Link(name, host, port, self, delay)
        self.call(link.serve())
        self._links.append(link)
        return link

    def call(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run something in the loop's thread and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_LIMIT)


class Link:
    """One proxied address.

    Attributes:
        name: what reports call it.
        host: where clients connect to, always 127.0.0.1.
        port: the port there.
    """

    def __init__(
        self, name: str, server_host: str, server_port: int, links: Links, delay: float = 0.0
    ) -> None:
        self.name = name
        self._delay = delay
        self.host = HOST
        self.port = free_port()
        self._server = (server_host, server_port)
        self._links = links
        self._open = {way: asyncio.Event() for way in (Direction.TO_SERVER, Direction.TO_CLIENT)}
        for gate in self._open.values():
            gate.set()
        self._listener: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    def cut(self, direction: Direction = Direction.BOTH) -> None:
        """Let nothing pass that way any more; connections stay open."""
        self._links.call(self._set(direction, passing=False))

    def heal(self) -> None:
        """Pass everything on again, first what was held back."""
        self._links.call(self._set(Direction.BOTH, passing=True))

    def reset(self) -> None:
        """End all connections at once, as a firewall that forgot them would."""
        self._links.call(self._reset())

    def lead_to(self, host: str, port: int) -> None:
        """Connect later clients to another server."""
        self._server = (host, port)

    def close(self) -> None:
        """Take no more connections and end those there are."""
        self._links.call(self._close())

    async def serve(self) -> None:
        """Begin to listen; in the loop's thread."""
        self._listener = await asyncio.start_server(self._accepted, self.host, self.port)

    async def _set(self, direction: Direction, *, passing: bool) -> None:
        for way, gate in self._open.items():
            if direction in (Direction.BOTH, way):
                if passing:
                    gate.set()
                else:
                    gate.clear()

    async def _reset(self) -> None:
        for writer in list(self._writers):
            _abort(writer)
        for task in list(self._connections):
            task.cancel()

    async def _close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        await self._reset()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            return
        self._connections.add(task)
        self._writers.add(writer)
        # A reset cancels this task; asyncio would report that as an error.
        with contextlib.suppress(asyncio.CancelledError, OSError):
            try:
                await self._connect(reader, writer)
            finally:
                _abort(writer)
                self._writers.discard(writer)
                self._connections.discard(task)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open[Direction.TO_SERVER].wait()
        server_reader, server_writer = await asyncio.open_connection(*self._server)
        self._writers.add(server_writer)
        try:
            await _together(
                self._forward(reader, server_writer, Direction.TO_SERVER),
                self._forward(server_reader, writer, Direction.TO_CLIENT),
            )
        finally:
            _abort(server_writer)
            self._writers.discard(server_writer)

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Direction
    ) -> None:
        """Copy one direction until its sender ends it; while its gate is shut, nothing passes."""
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(
            _UNDER_WAY if self._delay else 1
        )
        await _together(self._take(reader, under_way), _deliver(under_way, writer, self._open[way]))

    async def _take(
        self, reader: asyncio.StreamReader, under_way: asyncio.Queue[tuple[float, bytes]]
    ) -> None:
        loop = asyncio.get_running_loop()
        data = b"-"
        while data:
            data = await reader.read(_CHUNK)
            await under_way.put((loop.time() + self._delay, data))


async def _together(*work: Coroutine[Any, Any, None]) -> None:
    """Do all of it at once; what is left is ended if one fails, which `gather` does not do.

    It would wait until the loop is closed, and then fail where nobody expects it.
    """
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _deliver(
    under_way: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter, gate: asyncio.Event
) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due, data = await under_way.get()
        if (wait := due - loop.time()) > 0:
            await asyncio.sleep(wait)
        await gate.wait()
        if not data:
            break
        writer.write(data)
        await writer.drain()
    writer.write_eof()


def _abort(writer: asyncio.StreamWriter) -> None:
    """End a connection with a reset."""
    found = writer.get_extra_info("socket")
    if found is not None and found.fileno() >= 0:
        linger = struct.pack("ii", 1, 0)
        with contextlib.suppress(OSError):
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()
