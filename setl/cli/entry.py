"""The entry point of the `setl` command: Ctrl-C ends it in one line from its first moment on.

Reading the rest of the command takes a few tenths of a second, in which Python would answer with a
traceback. Nothing has been begun by then that would have to be put in order.
"""

import os
import signal
from types import FrameType

_EXIT_INTERRUPTED = 130


def main() -> None:
    """Read the command, and run it; that decides about Ctrl-C itself."""
    signal.signal(signal.SIGINT, _end)
    from setl.cli.main import main as command  # noqa: PLC0415

    command()


def _end(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(_EXIT_INTERRUPTED)
