"""Watches the runs of a node and names what holds up one that stands still."""

from __future__ import annotations

import logging
import threading

from setl.clock import Clock
from setl.log import fields
from setl.node.leading.background_questions import BackgroundQuestions
from setl.run.measured.pace import Stall
from setl.run.stalls.observer import Observed, Observer
from setl.run.stalls.stall import LIMIT

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 2.0


class StallWatch:
    """Looks at every run every few seconds, from a thread of its own.

    It writes what it finds into the run's `Progress`, and one line into the log when a stall
    begins and one when it is over. It neither holds a run up nor acts on one: standing still
    has reasons that ending the run would not fix.
    """

    def __init__(self, clock: Clock, *, limit: float = LIMIT) -> None:
        """Nothing is watched before `start`.

        Args:
            clock: for all times.
            limit: seconds without an advance after which a run counts as stalled.
        """
        self._clock = clock
        self._limit = limit
        self._look = min(_LOOK_SECONDS, limit / 4)
        self._questions = BackgroundQuestions(clock)
        self._lock = threading.Lock()
        self._observers: dict[tuple[str, str], Observer] = {}
        self._stalls: dict[tuple[str, str], Stall] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="stall-watch", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching; returns at once."""
        self._stopping.set()
        self._questions.stop()

    def follow(self, run: Observed) -> None:
        """Watch a run until it has ended, instead of the one before it of the same pipeline."""
        with self._lock:
            of = run.leadership.channel, run.leadership.pipeline
            self._observers[of] = Observer(run, self._clock, self._limit)

    def look(self) -> None:
        """One look at every run."""
        with self._lock:
            observers = list(self._observers.items())
        for name, observer in observers:
            try:
                self._look_at(name, observer)
            except Exception:  # noqa: BLE001 - logged with its traceback
                # A defect in looking at one run must not blind the node for all others.
                _log.exception("looking for stalls failed unexpectedly")
                self._forget(name, observer)

    def _look_at(self, name: tuple[str, str], observer: Observer) -> None:
        # Between two runs of which the second tries again what the first could not, it lasts.
        over = observer.run.ended() and observer.run.progress.pace().retrying is None
        stall = None if over else observer.look(self._questions)
        observer.run.progress.stalls(stall)
        self._report(name, observer.run, stall)
        if over:
            self._forget(name, observer)

    def _forget(self, name: tuple[str, str], observer: Observer) -> None:
        with self._lock:
            if self._observers.get(name) is observer:
                del self._observers[name]

    def _report(self, name: tuple[str, str], run: Observed, stall: Stall | None) -> None:
        """One line at the beginning of a stall, one at its end."""
        before = self._stalls.get(name)
        if stall is not None:
            self._stalls[name] = stall
            if before is None:
                _log.warning("pipeline stalls", extra=_fields(run, stall, detail=stall.detail))
        elif before is not None:
            del self._stalls[name]
            _log.info("pipeline goes on after a stall", extra=_fields(run, before))

    def _work(self) -> None:
        while not self._stopping.wait(self._look):
            self.look()


def _fields(run: Observed, stall: Stall, **more: object) -> dict[str, object]:
    return fields(
        **run.leadership.fields,
        stage=stall.stage.value,
        reason=stall.reason.value,
        seconds=round(stall.seconds, 1),
        **more,
    )
