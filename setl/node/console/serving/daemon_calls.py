"""Blocking calls for pages: a few at a time, with a time limit, and none that outlives the node.

Python waits for the threads of a pool before a process ends. A call to a server that hangs would
keep a node from leaving; daemon threads do not.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from arbiter.errors import Unreachable

_T = TypeVar("_T")


class DaemonCalls:
    """Runs blocking calls in threads of their own; to be used from one event loop."""

    def __init__(self, name: str, *, threads: int, limit: float) -> None:
        """Starts no thread yet.

        Args:
            name: what the threads are called.
            threads: how many calls may be made at the same time; further ones wait.
            limit: seconds that a call may take, waiting included.
        """
        self._name = name
        self._limit = limit
        self._free = asyncio.Semaphore(threads)
        self._leaving = False

    async def run(self, call: Callable[[], _T]) -> _T:
        """Make a call and wait for it.

        Raises:
            Unreachable: it took longer than the limit, or the node leaves. A call that was begun
                goes on in its thread, and may yet take effect; its position is free once it is
                over.
        """
        try:
            async with asyncio.timeout(self._limit):
                await self._free.acquire()
                if self._leaving:
                    self._free.release()
                    raise Unreachable("the node is leaving")
                return await asyncio.shield(self._begin(call))
        except TimeoutError:
            raise Unreachable(f"no answer within {self._limit:g} s") from None

    def stop(self) -> None:
        """Begin no further calls; waits for none."""
        self._leaving = True

    def _begin(self, call: Callable[[], _T]) -> asyncio.Future[_T]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_T] = loop.create_future()

        def answer(result: Any, error: BaseException | None) -> None:
            self._free.release()
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
                future.exception()  # nobody may be waiting any more
            else:
                future.set_result(result)

        def work() -> None:
            result: Any = None
            error: BaseException | None = None
            try:
                result = call()
            except BaseException as raised:  # noqa: BLE001 - it belongs to whoever waits
                error = raised
            try:
                loop.call_soon_threadsafe(answer, result, error)
            except RuntimeError:
                return  # the node has left

        threading.Thread(target=work, name=self._name, daemon=True).start()
        return future
