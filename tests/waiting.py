"""Waiting for a condition with a deadline, instead of sleeping and hoping."""

import time

# InnoDB tells of transactions and locks from one copy, and renews it only if nobody has read it for
# 0.1 s: whoever asks more often than that waits for ever. Seconds.
INNODB_RENEWED = 0.2


def eventually(predicate, timeout=10.0, *, interval=0.05, message=""):
    """Call `predicate` until it returns something true, and return that.

    An AssertionError inside the predicate counts as "not yet"; the last one is shown when the
    deadline passes. Any other exception is the test's failure at once.
    """
    deadline = time.monotonic() + timeout
    while True:
        problem = None
        try:
            value = predicate()
        except AssertionError as error:
            value, problem = None, error
        if value:
            return value
        if time.monotonic() >= deadline:
            what = message or getattr(predicate, "__name__", repr(predicate))
            raise AssertionError(f"not so after {timeout} s: {what}") from problem
        time.sleep(interval)
