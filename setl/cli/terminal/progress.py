"""How far something is, or what a command waits for, for a person at a terminal."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final

from setl.cli.terminal.output import to_stderr
from setl.operate.progress_lines import VARIABLE, progress_as_line
from setl.printable import printable

if TYPE_CHECKING:
    from rich.progress import Progress, Task, TaskID
    from rich.text import Text

_EVERY_SECONDS: Final = 1.0


def progress_line() -> Progress:
    """One line that changes, on standard error, so that the result alone is on standard output."""
    from rich.progress import (  # noqa: PLC0415
        Progress,
        ProgressColumn,
        SpinnerColumn,
        TimeElapsedColumn,
    )
    from rich.text import Text  # noqa: PLC0415

    from setl.cli.terminal.literal_console import LiteralConsole  # noqa: PLC0415

    class Words(ProgressColumn):
        """What is done now."""

        def render(self, task: Task) -> Text:
            return Text(printable(task.description))

    class Lines(Progress):
        """Prints what is new, once a second at most."""

        said = ""
        at = -math.inf

        def update(self, task_id: TaskID, **given: Any) -> None:
            super().update(task_id, **given)
            words, now = str(given.get("description") or self.said), time.monotonic()
            if words != self.said and now >= self.at + _EVERY_SECONDS:
                self.said, self.at = words, now
                line = progress_as_line(words)
                self.console.print(line, soft_wrap=True)

    return (Lines if os.environ.get(VARIABLE) else Progress)(
        SpinnerColumn(),
        Words(),
        TimeElapsedColumn(),
        console=LiteralConsole(stderr=True),
        transient=True,
    )


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
