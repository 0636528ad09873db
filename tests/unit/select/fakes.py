"""A clock that tests move, and a source that does exactly what a script says."""

import threading
from collections import deque

from setl.errors import TransientError
from setl.select.reader import SelectStatus
from setl.select.source import absorbs_nothing


class ManualClock:
    def __init__(self):
        self.time = 1000.0

    def monotonic(self):
        return self.time

    def now(self):
        return self.time


def reads(entries=0, unacked=0):
    """What Select says while it reads."""
    return SelectStatus(
        state="reading",
        generation=1,
        entries=entries,
        rows=entries,
        bytes=entries,
        batches=unacked,
        unacked=unacked,
        waiting=0,
        behind=None,
        blocked_seconds=0.0,
        timestamp=0.0,
        error="",
    )


class ScriptedSource:
    """Delivers a stream from wherever it is opened, in chunks, failing where it is told to.

    `failures` maps an index of the stream to the error raised instead of delivering that
    entry; each is raised once. `hold` stops delivery at an index until `release`.
    """

    def __init__(self, stream, *, chunk=3, failures=None, open_errors=()):
        self.stream = stream
        self.chunk = chunk
        self.failures = dict(failures or {})
        self.open_errors = deque(open_errors)
        self.opened = []
        self.open_now = False
        self.reads = 0
        self._next = 0
        self._limit = len(stream)
        self._changed = threading.Condition()

    def initial(self):
        raise NotImplementedError

    def locate(self, checkpoint):
        return checkpoint

    def latest(self):
        raise NotImplementedError

    def sizes(self):
        return ()

    unread: int | None = None

    def behind(self):
        return self.unread

    def waiting_for(self):
        return ""

    def blocked(self):
        return None

    def shared(self):
        return False

    def open(self, position):
        with self._changed:
            self.opened.append(position)
            if self.open_errors:
                raise self.open_errors.popleft()
            self._next = sum(e.position.order <= position.order for e in self.stream)
            self.open_now = True

    def hold(self, index):
        with self._changed:
            self._limit = index
            self._changed.notify_all()

    def release(self):
        with self._changed:
            self._limit = len(self.stream)
            self._changed.notify_all()

    def read(self, limit, timeout, absorbs=absorbs_nothing):
        with self._changed:
            self.reads += 1
            self._changed.wait_for(
                lambda: (
                    not self.open_now or self._next < self._limit or self._next in self.failures
                ),
                timeout,
            )
            if not self.open_now:
                raise TransientError("the source was closed")
            if self._next in self.failures:
                raise self.failures.pop(self._next)
            end = min(self._next + min(limit, self.chunk), self._limit)
            ahead = [f for f in self.failures if self._next < f < end]
            end = min([end, *ahead])
            found, self._next = self.stream[self._next : end], end
            return found

    def close(self):
        with self._changed:
            self.open_now = False
            self._changed.notify_all()
