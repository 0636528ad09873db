"""What other threads ask of a run: to stop, to roll back, to start no load for now, to cancel."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from setl.errors import SetlError
from setl.log import fields
from setl.model.leadership import Leadership
from setl.run.work import Work

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.2
_AGAIN_SECONDS = 0.2  # after which what a run writes is cancelled once more


class Interruption:
    """Asked from any thread; the run looks at it between its steps, and waits on it."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """Nothing is asked yet.

        Args:
            wake: ends what the run may be waiting for elsewhere; must not block.
        """
        self._wake = wake
        self._stopping = threading.Event()
        # Set together with `_stopping` and by `roll_back`: ends the waits between two loads.
        self._interrupted = threading.Event()
        self._rollbacks: deque[threading.Event] = deque()
        self._taken: list[threading.Event] = []  # by the run, and not carried out yet
        self._loading_allowed = threading.Event()
        self._loading_allowed.set()

    # -- for other threads ----------------------------------------------------------------

    def stop(self) -> None:
        """The run is to end."""
        self._stopping.set()
        self._interrupt()

    def roll_back(self) -> threading.Event:
        """The run is to go back to the checkpoint; returns what it sets when it reads again."""
        done = threading.Event()
        self._rollbacks.append(done)
        self._interrupt()
        return done

    def suspend(self) -> bool:
        """No load is to start; returns whether one could until now."""
        allowed = self._loading_allowed.is_set()
        self._loading_allowed.clear()
        return allowed

    @property
    def suspended(self) -> bool:
        """Whether no load is to start."""
        return not self._loading_allowed.is_set()

    def resume(self) -> None:
        """Loads may start again."""
        self._loading_allowed.set()

    # -- for the run ----------------------------------------------------------------------

    def begin(self) -> list[threading.Event]:
        """The run restarts; returns the rollbacks that this carries out.

        Until `has_begun` they are returned again: what begins may fail before it is done.
        """
        # In this order, so that a request that comes meanwhile is at worst carried out twice.
        self._interrupted.clear()
        if self._stopping.is_set():
            self._interrupted.set()  # the stop may have come just before
        while self._rollbacks:
            self._taken.append(self._rollbacks.popleft())
        return list(self._taken)

    def has_begun(self) -> None:
        """The run reads again; whoever asked for a rollback that `begin` returned is reported."""
        for done in self._taken:
            done.set()
        self._taken.clear()

    @property
    def to_stop(self) -> bool:
        """Whether the run is to end."""
        return self._stopping.is_set()

    def is_interrupted(self) -> bool:
        """Whether the run is to restart, or to end."""
        return self._stopping.is_set() or self._interrupted.is_set()

    def wait(self, seconds: float) -> None:
        """Wait, but no longer than until something is asked."""
        self._interrupted.wait(seconds)

    def allowed(self) -> bool:
        """Wait until loads may start; False if the run is to end instead."""
        # A stop ends the wait by itself: while the arbiter is silent, the watchdog suspends
        # again and again, and would undo any "allowed" that a stop had set.
        while not self._stopping.is_set() and not self._loading_allowed.wait(_LOOK_SECONDS):
            pass
        return not self._stopping.is_set()

    def _interrupt(self) -> None:
        self._interrupted.set()
        self._wake()


class Cancelling:
    """Cancels the work of a run, again and again until the run has ended (I3)."""

    def __init__(self, work: Work, leadership: Leadership, ended: threading.Event) -> None:
        """Nothing is cancelled yet.

        Args:
            work: what is cancelled.
            leadership: whose work it is.
            ended: set once the run has ended.
        """
        self._work = work
        self._leadership = leadership
        self._ended = ended

    def begin(self) -> None:
        """Cancel from now on; returns at once."""
        # Neither may hold up the caller, which has other runs to cancel.
        for end in (self._work.cancel, self._end_writers):
            threading.Thread(
                target=self._until_ended, args=(end,), name="abort", daemon=True
            ).start()

    def _until_ended(self, end: Callable[[], None]) -> None:
        # The first time may come just before the load begins.
        while not self._ended.is_set():
            end()
            self._ended.wait(_AGAIN_SECONDS)

    def _end_writers(self) -> None:
        # Spark takes up to four seconds to end a cancelled task; its connection ends at once.
        try:
            self._work.end_writers()
        except SetlError as error:
            _log.info(
                "writers not ended", extra=fields(**self._leadership.fields, error=str(error))
            )
