"""Waiting for a condition with a deadline, instead of sleeping and hoping."""

import os
import sys
import threading
import time
import traceback

# InnoDB tells of transactions and locks from one copy, and renews it only if nobody has read it for
# 0.1 s: whoever asks more often than that waits for ever. Seconds.
INNODB_RENEWED = 0.2
_RARELY = 0.2
"""Seconds between two looks at what takes long: looks take a tenth of a lane's processor time."""
_SHOWN_FRAMES = 6
_SLOWEST = 6.0
"""Times as long as on a machine that has nothing else to do; more would only hide what hangs."""
_LONGEST = 240.0
"""Seconds that nothing is waited for on a busy machine alone: pytest ends a test a little later,
and does not say what it waited for."""


def eventually(predicate, timeout=10.0, *, interval=0.05, message=""):
    """Call `predicate` until it returns something true, and return that.

    What takes long is looked at less often, up to every 0.2 s, unless `interval` is longer.

    A machine that is busy with more than it has cores for gets as much more time.

    An AssertionError inside the predicate counts as "not yet"; the last one is shown when the
    deadline passes, with what setl's threads in this process are doing. Any other exception is the
    test's failure at once.
    """
    began = time.monotonic()
    while True:
        problem = None
        try:
            value = predicate()
        except AssertionError as error:
            value, problem = None, error
        if value:
            return value
        waited = time.monotonic() - began
        if waited >= timeout and waited >= min(timeout * _slowness(), _LONGEST):
            what = message or getattr(predicate, "__name__", repr(predicate))
            raise AssertionError(f"not so after {waited:.0f} s: {what}{_under_way()}") from problem
        time.sleep(max(interval, min(_RARELY, waited / 50)))


def _slowness():
    """How many times as long things take now, since so many processes want each core."""
    return min(max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)), _SLOWEST)


def _under_way():
    """What the threads that run setl's code are doing, one line each."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    own = threading.get_ident()
    lines = [
        f"{names.get(ident, ident)}: {doing}"
        for ident, frame in sys._current_frames().items()
        if ident != own and (doing := _doing(frame))
    ]
    return "".join(f"\n  {line}" for line in sorted(lines))


def _doing(frame):
    stack = traceback.extract_stack(frame)
    if not any("/setl/" in each.filename for each in stack):
        return ""
    shown = stack[-_SHOWN_FRAMES:]
    return " > ".join(f"{each.filename.rpartition('/')[2]}:{each.lineno}" for each in shown)
