"""Blocking calls for pages: bounded in number and time, and in nobody's way at the end."""

import asyncio
import threading

import pytest

from arbiter.errors import Unreachable
from setl.node.console.serving.daemon_calls import DaemonCalls


def test_results_and_errors_come_back():
    async def work():
        calls = DaemonCalls("test", threads=2, limit=20)
        assert await calls.run(lambda: 7) == 7
        with pytest.raises(ZeroDivisionError):
            await calls.run(lambda: 1 / 0)

    asyncio.run(work())


def test_what_hangs_takes_a_position_and_no_more():
    free = threading.Event()

    async def work():
        calls = DaemonCalls("test", threads=1, limit=0.3)
        with pytest.raises(Unreachable, match=r"no answer within 0\.3 s"):
            await calls.run(lambda: free.wait(60))
        with pytest.raises(Unreachable):
            await calls.run(lambda: 7)  # its position is taken
        free.set()
        while True:
            try:
                return await calls.run(lambda: 7)
            except Unreachable:
                continue

    assert asyncio.run(work()) == 7
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "test")


def test_nothing_begins_after_the_end():
    async def work():
        calls = DaemonCalls("test", threads=1, limit=20)
        calls.stop()
        with pytest.raises(Unreachable, match="leaving"):
            await calls.run(lambda: 7)

    asyncio.run(work())
