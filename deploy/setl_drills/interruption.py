"""Ctrl-C, SIGTERM and a closed terminal stop the servers and nodes of a command."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

INTERRUPTED: Final = 130
"""Exit status of a command that was interrupted."""


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Inside the block, SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt in this thread, once.

    It must be the main thread. Whoever started servers stops them then. A SIGHUP that is ignored,
    as under nohup, stays so.
    """
    taken = [signal.SIGINT, signal.SIGTERM]  # a shell's background jobs ignore the first
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        taken.append(signal.SIGHUP)
    before = {number: signal.signal(number, _interrupt) for number in taken}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, _frame: object) -> NoReturn:
    # Once: what follows stops the servers, and a second signal must not cut that short. Not
    # SIG_IGN, which processes that are started from now on would inherit.
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(each) is _interrupt:
            signal.signal(each, lambda *_: None)
    if number == signal.SIGHUP:
        # The terminal is gone. Each line of progress would raise an error from now on, also in the
        # middle of stopping what runs.
        silent = os.open(os.devnull, os.O_WRONLY)
        for descriptor in (1, 2):
            os.dup2(silent, descriptor)
        os.close(silent)
    # Not by print, in the middle of which the signal may have come.
    os.write(1, b"\nStopping everything, which takes some seconds.\n")
    raise KeyboardInterrupt
