"""Finds what a Python worker raised in what Spark says of the job that failed.

Spark 4 tells it in two forms: as an exception of its own, whose text is the traceback, and in the
middle of Java's stack trace, where lines of Java follow it.
"""

from __future__ import annotations

import re
from typing import Final

from setl.errors import FatalError, SetlError, TransientError

_TRACEBACK: Final = "Traceback (most recent call last):"
# Of the machine, and not of what the task was given.
_TRANSIENT: Final = re.compile(
    r"(?:MemoryError|OSError|EOFError|TimeoutError|\w*ConnectionError|Connection\w+Error"
    r"|BrokenPipeError|BlockingIOError|InterruptedError)\b"
)


def worker_error(text: str) -> SetlError | None:
    """The error for what a worker raised, None if Spark tells of nothing that one raised.

    Tasks return the errors that they know. What they raise is a defect, unless the machine lacked
    something, which may pass.

    Args:
        text: the text of Spark's exception.
    """
    _, found, traceback = text.rpartition(_TRACEBACK)
    if not found:
        return None
    # The frames are indented, and so are lines of Java.
    lines = [line for line in traceback.splitlines() if line and not line[0].isspace()]
    raised = lines[0][:500] if lines else "an exception that Spark does not name"
    if _TRANSIENT.match(raised):
        return TransientError(
            f"a Spark task failed: {raised}", hint="If it happens again: look at that machine"
        )
    return FatalError(f"a Spark task failed unexpectedly: {raised}", hint="This is a defect")
