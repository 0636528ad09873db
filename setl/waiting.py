"""The loop of whatever waits by looking again and again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator


def polling(
    seconds: float | None,
    every: float,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    pause: Callable[[float], object] = time.sleep,
) -> Iterator[float]:
    """The seconds that are left, before each look; the last look has none left.

    A limit of no seconds allows one look. What comes about just before the limit is seen: the last
    look begins after it.

    Args:
        seconds: the limit, None to wait indefinitely.
        every: seconds between two looks.
        monotonic: a clock.
        pause: waits for so many seconds, as `time.sleep` does; what returns true ends the wait, as
            `threading.Event.wait` does.
    """
    until = math.inf if seconds is None else monotonic() + seconds
    while True:
        left = max(0.0, until - monotonic())
        yield left
        if not left or pause(every):
            return
