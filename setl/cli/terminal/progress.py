"""How far something is: one line that changes, or lines for a program that reads them."""

from __future__ import annotations

import math
import os
import time
from typing import TYPE_CHECKING, Any, Final

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
