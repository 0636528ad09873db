"""Watches the runs of a node and names what holds up one that stands still."""

from __future__ import annotations

import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

from setl.clock import Clock
from setl.errors import SetlError
from setl.load.target_view import TargetView
from setl.log import fields
from setl.run.measured.pace import Stall
from setl.run.stalls.observer import Answer, Observed, Observer, Question
from setl.run.stalls.stall import LIMIT, JobView

_log = logging.getLogger(__name__)

_MAX_CACHED = 256  # answers of each kind


@dataclass(slots=True)
class _Entry:
    question: Question
    wanted: bool = False  # waits for its turn
    since: float | None = None  # waits for its turn or its answer since
    answered: float | None = None
    value: JobView | TargetView | None = None


class _Asker:
    """One thread that asks the questions of one kind, one after another."""

    def __init__(self, kind: str, clock: Clock) -> None:
        self._clock = clock
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name=f"ask-{kind}", daemon=True)
        self._thread.start()

    def ask(self, key: Hashable, question: Question) -> Answer:
        now = self._clock.monotonic()
        with self._changed:
            entry = self._entries.pop(key, None) or _Entry(question)
            self._entries[key] = entry
            if len(self._entries) > _MAX_CACHED:
                self._entries.popitem(last=False)
            if entry.since is None:
                entry.question, entry.wanted, entry.since = question, True, now
                self._changed.notify()
            return Answer(
                value=entry.value,
                age=now - entry.answered if entry.answered is not None else math.inf,
                waiting=now - entry.since,
            )

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def _next(self) -> _Entry | None:
        """The question that has waited for longest; None when there will be no more."""
        with self._changed:
            while not self._stopped:
                for entry in self._entries.values():
                    if entry.wanted:
                        entry.wanted = False
                        return entry
                self._changed.wait()
            return None

    def _work(self) -> None:
        while (entry := self._next()) is not None:
            value: JobView | TargetView | None = None
            try:
                value = entry.question()
            except SetlError as error:
                _log.debug("a question has no answer", extra=fields(error=str(error)))
            except Exception:  # noqa: BLE001 - logged with its traceback
                # A defect in looking must not end the looking.
                _log.exception("a question failed unexpectedly")
            with self._changed:
                entry.value, entry.answered, entry.since = value, self._clock.monotonic(), None


class BackgroundQuestions:
    """See `setl.run.stalls.observer.Asking`. One thread for each kind of question."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._askers: dict[str, _Asker] = {}

    def ask(self, kind: str, key: Hashable, question: Question) -> Answer:
        """See `setl.run.stalls.observer.Asking.ask`."""
        with self._lock:
            asker = self._askers.get(kind)
            if asker is None:
                asker = self._askers[kind] = _Asker(kind, self._clock)
        return asker.ask(key, question)

    def stop(self) -> None:
        """Ask nothing more; does not wait for a question that is being asked."""
        with self._lock:
            for asker in self._askers.values():
                asker.stop()
            self._askers.clear()


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
