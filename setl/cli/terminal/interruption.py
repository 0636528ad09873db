"""Ctrl-C: a command that only looks or asks ends within about a second, with one line.

One that has to put things in order does so when its terminal is closed or somebody ends it, too.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

EXIT_INTERRUPTED = 130

_GRACE_SECONDS = 1.0

_goes_on: list[str] = []


def end_at_interrupt(grace: float = _GRACE_SECONDS) -> None:
    """Let SIGINT end this process: in order if that is done soon, else at once.

    What is under way gets `grace` seconds to close what it has open. A library that is cut off in
    the middle of an answer might wait for longer, or write to the terminal. The process ends first.
    """

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _say_last("; ".join(["interrupted", *_goes_on]))
        threading.Thread(target=_end, args=(grace,), name="interrupt", daemon=True).start()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)


def interrupt_when_left() -> None:
    """Let SIGTERM, and SIGHUP of a terminal that is closed, do what Ctrl-C does, once.

    What is being put in order then is only broken off by Ctrl-C: a shell passes the SIGHUP on that
    its terminal has sent already. A signal that is set otherwise, as by nohup, stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # beside a test, which no signal reaches
    taken = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_DFL]

    heard = False

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal heard
        if not heard:
            heard = True
            raise KeyboardInterrupt

    for number in taken:
        signal.signal(number, interrupt)


@contextmanager
def going_on(words: str) -> Generator[None]:
    """Inside the block Ctrl-C says as well what goes on without this process."""
    _goes_on.append(words)
    try:
        yield
    finally:
        _goes_on.remove(words)


def _end(grace: float) -> None:
    time.sleep(grace)
    os._exit(EXIT_INTERRUPTED)


def _say_last(words: str) -> None:
    """Say something on standard error, and let nobody say anything there after it."""
    # The cursor stands behind a line of progress, or behind the ^C that the terminal has shown.
    start = "\r\x1b[K" if sys.stderr.isatty() else ""
    os.write(2, f"{start}{words}\n".encode())
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 2)
    os.close(silent)
