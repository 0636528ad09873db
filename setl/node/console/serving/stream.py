"""Server-sent events: the regions of a page that have changed, for as long as somebody looks."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable

from arbiter.errors import ArbiterError
from setl.node.http.authentication import client_name

EVERY_SECONDS = 2.0
MOST_STREAMS = 64
MOST_OF_STRANGER = 16
RETRY_MILLISECONDS = 2000

Render = Callable[[], Awaitable[dict[str, str] | None]]
"""Gives the regions of a page as HTML by id; None if the page is gone."""


def event(name: str, data: object) -> str:
    """One event; JSON has no line ends, which would end it too early."""
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"


class Streams:
    """The open streams of a node, limited in number.

    Those of strangers take no place from those of who is logged in, and those of one stranger
    leave places to others. To be used from one event loop.
    """

    def __init__(self) -> None:
        """None is open."""
        self._known = 0
        self._strangers: Counter[str] = Counter()
        self._ending = False

    def is_full(self, stranger: str | None) -> bool:
        """Whether there is room for no further one.

        Args:
            stranger: the address of who would open it; None if he is logged in.
        """
        if stranger is None:
            return self._known >= MOST_STREAMS
        if self._strangers[client_name(stranger)] >= MOST_OF_STRANGER:
            return True
        return self._strangers.total() >= MOST_STREAMS

    def stop(self) -> None:
        """End all of them within a moment, so that the node can end."""
        self._ending = True

    async def events(self, render: Render, stranger: str | None) -> AsyncIterator[str]:
        """Events of one page; the first one has all regions, the others what has changed.

        None at all if others have taken the last position meanwhile: the browser asks again then.
        """
        if self.is_full(stranger):
            return
        self._count(stranger, 1)
        try:
            yield f"retry: {RETRY_MILLISECONDS}\n\n"
            sent: dict[str, str] = {}
            while not self._ending:
                try:
                    regions = await render()
                except ArbiterError:
                    yield event("old", None)  # what the page shows is the last that is known
                else:
                    if regions is None:
                        yield event("gone", None)
                        return
                    changed = {k: v for k, v in regions.items() if sent.get(k) != v}
                    sent = regions
                    yield event("regions", changed) if changed else event("alive", None)
                await self._pause()
        finally:
            self._count(stranger, -1)

    def _count(self, stranger: str | None, change: int) -> None:
        if stranger is None:
            self._known += change
            return
        name = client_name(stranger)
        self._strangers[name] += change
        if not self._strangers[name]:
            del self._strangers[name]

    async def _pause(self) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + EVERY_SECONDS
        while not self._ending and loop.time() < until:
            await asyncio.sleep(min(0.25, EVERY_SECONDS))
