"""Ask slow questions in background threads; callers get the last answer at once."""

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
from setl.run.stalls.observer import Answer, Question
from setl.run.stalls.stall import JobView

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
