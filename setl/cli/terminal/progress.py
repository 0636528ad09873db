"""How far something is: one line that changes, or lines for a program that reads them."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Final

from setl.operate.progress_lines import VARIABLE, progress_as_line

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_EVERY_SECONDS: Final = 1.0


def progress_line() -> Progress:
    """One line that changes, on standard error, so that the result alone is on standard output."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    class Lines(Progress):
        """Prints what is new, once a second at most."""

        said = ""
        at = 0.0

        def update(self, task_id: TaskID, **given: Any) -> None:
            super().update(task_id, **given)
            words, now = str(given.get("description") or self.said), time.monotonic()
            if words != self.said and now >= self.at + _EVERY_SECONDS:
                self.said, self.at = words, now
                line = progress_as_line(words)
                self.console.print(line, markup=False, soft_wrap=True, highlight=False)

    return (Lines if os.environ.get(VARIABLE) else Progress)(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
