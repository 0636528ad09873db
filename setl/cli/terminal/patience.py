"""Tells a person at a terminal what a command waits for, once that has taken a while."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

from setl.cli.terminal.output import to_stderr

_QUIET_SECONDS = 2.0


@contextmanager
def busy(words: str | Callable[[], str], after: float | None = None) -> Generator[None]:
    """Inside the block: after some seconds `words` are said once, if there is a terminal.

    Args:
        words: what goes on, such as "asking ZooKeeper at db1:2181"; or says so, when it is said.
        after: seconds; None for the usual ones.
    """
    if not sys.stderr.isatty():
        yield
        return

    # A timer's thread is daemonic here: whoever is interrupted does not wait for it.
    def say() -> None:
        to_stderr(f"{words if isinstance(words, str) else words()} …")

    timer = threading.Timer(_QUIET_SECONDS if after is None else after, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def busy_with_servers(channel: str) -> AbstractContextManager[None]:
    """As `busy`, while the servers of a channel are looked at."""
    return busy(f"looking at the servers of channel {channel}")
