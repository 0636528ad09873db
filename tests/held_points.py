"""Points of a run at which it waits for as long as a test wants."""

import threading
from contextlib import contextmanager
from unittest.mock import patch

from setl import failpoints


@contextmanager
def held(point):
    """Hold the first thread of this process that comes to a failpoint until the block ends.

    Yields an event that is set when it is there. A ``hang`` ends by time: a test that is slow
    comes too late for it.
    """
    there, over, first = threading.Event(), threading.Event(), threading.Lock()

    def reached(name):
        if name == point and first.acquire(blocking=False):
            there.set()
            over.wait()

    with patch.object(failpoints, "reached", reached):
        try:
            yield there
        finally:
            over.set()
