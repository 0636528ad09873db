"""Calls to the arbiter for HTTP requests: a few at a time, each with a time limit.

An arbiter's call blocks, for up to its own limit. On the event loop it would hold up every other
request, and in the pool that answers the probes a few dozen of them would; so they have threads
of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from arbiter.errors import Unreachable

_T = TypeVar("_T")


class BoundedCalls:
    """Runs blocking calls in a few threads; to be used from one event loop."""

    def __init__(self, name: str, *, threads: int, limit: float) -> None:
        """Starts no thread yet.

        Args:
            name: what the threads are called.
            threads: how many calls may be made at the same time; further ones wait.
            limit: seconds that a call may take, waiting included.
        """
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._limit = limit

    async def run(self, call: Callable[[], _T]) -> _T:
        """Make a call and wait for it.

        Raises:
            Unreachable: it took longer than the limit, or `stop` came first. A call that was
                begun goes on in its thread, and may yet take effect; one that was still waiting
                for its turn is not made any more.
        """
        try:
            future = asyncio.get_running_loop().run_in_executor(self._pool, call)
        except RuntimeError:
            raise Unreachable("the node is leaving") from None
        try:
            return await asyncio.wait_for(future, self._limit)
        except TimeoutError:
            raise Unreachable(f"ZooKeeper did not answer within {self._limit:g} s") from None

    def stop(self) -> None:
        """Take no further calls; waits for none."""
        self._pool.shutdown(wait=False)
