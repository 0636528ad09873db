"""What a leader does about dead letters: counts them, and loads again those it is asked to."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from setl.channel.routes.routing import Router
from setl.clock import Clock
from setl.errors import FencedError, SetlError, TargetReplacedError, TransientError
from setl.load.deadletters.ambiguous import changed_targets, in_doubt, is_remapped
from setl.load.deadletters.dead_letter import DeadLetter, State
from setl.load.deadletters.store import DeadLetterStore, Tally
from setl.load.sink import LoadTicket
from setl.log import fields
from setl.model.entry import Entry
from setl.model.leadership import Leadership
from setl.model.loaded import Loaded
from setl.run.loads.job import LoadJob
from setl.run.measured.progress import Progress
from setl.run.spark.session import SparkGone

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 2.0
"""Between two looks for letters to load again, while there are any."""

_COUNT_SECONDS = 60.0
"""Between two counts while there are none: only this leader adds letters, and knows of them."""

_AT_ONCE = 500
"""Letters that one load takes."""


class DeadLetterHandler:
    """The dead letters of one pipeline, under one epoch. Used by the run's thread."""

    def __init__(
        self,
        opened: Callable[[], AbstractContextManager[DeadLetterStore]],
        job: LoadJob,
        leadership: Leadership,
        progress: Progress,
        clock: Clock,
        *,
        router: Router,
    ) -> None:
        """Look at nothing yet.

        Args:
            opened: opens where the letters are kept.
            job: loads them again.
            leadership: on whose behalf.
            progress: takes their number.
            clock: when to look.
            router: the pipeline's routes.
        """
        self._opened = opened
        self._job = job
        self._leadership = leadership
        self._progress = progress
        self._clock = clock
        self._router = router
        self._tables_with_dead_letters: frozenset[str] = frozenset()
        self._next_look = 0.0

    @property
    def tables_with_dead_letters(self) -> frozenset[str]:
        """The tables or indexes for which letters are open, and perhaps some more."""
        return self._tables_with_dead_letters

    def begin(self) -> None:
        """Count what earlier leaderships left; after the fence was raised.

        Of those from another mapping nobody can tell from now on which rows they are about.

        Raises:
            TransientError: the target does not answer.
            ConfigurationError: the table or a privilege is missing.
        """
        with self._opened() as store:
            if self._count(store).open:
                self._forget_remapped(store)

    def loaded(self, report: Loaded, position: str) -> None:
        """A load may have put rows aside."""
        if not report.dead_letters:
            return
        self._tables_with_dead_letters |= report.tables_with_dead_letters
        self._progress.add(dead_lettered=report.dead_letters)
        self._next_look = 0.0
        _log.warning(
            "faulty rows became dead letters",
            extra=fields(
                **self._leadership.fields,
                count=report.dead_letters,
                targets=", ".join(sorted(report.tables_with_dead_letters)),
                through=position,
                error=report.fault,
            ),
        )

    def _forget_remapped(self, store: DeadLetterStore) -> None:
        waiting = store.find(self._leadership.key, states=(State.OPEN, State.RETRY))
        # Without a key, a person has seen it, and may have asked for it all the same.
        ids = [x.id for x in waiting if x.key_hash and is_remapped(x, self._router)]
        if not ids:
            return
        store.forget_keys(ids)
        self._count(store)
        _log.warning(
            "dead letters are of rows that the channel file maps in another way now",
            extra=fields(**self._leadership.fields, count=len(ids)),
        )

    def before_schema_changes(self, entries: Sequence[Entry]) -> None:
        """Tables are about to change; what row a letter is about may not be known afterwards.

        Before, since a leader that dies in between finds the changes done.

        Raises:
            TransientError: the target does not answer.
            ConfigurationError: the table or a privilege is missing.
        """
        changed = [
            c
            for c in changed_targets(entries, self._router)
            if c[0] in self._tables_with_dead_letters
        ]
        if not changed:
            return
        with self._opened() as store:
            waiting = store.find(self._leadership.key, states=(State.OPEN, State.RETRY))
            ids = [
                letter.id
                for letter in waiting
                if any(
                    target == letter.target and in_doubt(letter, ddl, renamed)
                    for target, ddl, renamed in changed
                )
            ]
            store.forget_keys(ids)
        if ids:
            _log.warning(
                "after a schema change it is not known any more which rows dead letters are about",
                extra=fields(**self._leadership.fields, count=len(ids)),
            )

    def look(self, ticket: Callable[[], LoadTicket], allowed: Callable[[], bool]) -> None:
        """Load letters that wait for it, if it is time to look.

        Not while a load runs: the stream's order is what tells which change is the last one.

        Args:
            ticket: makes the ticket, with what is loaded so far.
            allowed: see `Work.apply`.

        Raises:
            SetlError: as `Work.apply`; not for a letter that cannot be loaded.
        """
        if self._clock.monotonic() < self._next_look:
            return
        with self._opened() as store:
            tally = self._count(store)
            if not tally.retry:
                return
            begun = self._clock.now()
            waiting = store.find(self._leadership.key, states=(State.RETRY,), limit=_AT_ONCE)
            if not waiting or not allowed():
                return
            self._load(store, waiting, replace(ticket(), begun=begun))
            self._count(store)
        self._next_look = 0.0

    def _count(self, store: DeadLetterStore) -> Tally:
        tally = store.tally(self._leadership.key)
        self._tables_with_dead_letters = frozenset(tally.targets)
        self._progress.has_dead_letters(tally.open)
        interval = _LOOK_SECONDS if tally.open else _COUNT_SECONDS
        self._next_look = self._clock.monotonic() + interval
        return tally

    def _load(
        self, store: DeadLetterStore, letters: Sequence[DeadLetter], ticket: LoadTicket
    ) -> None:
        """Load letters together; if they cannot be, in halves, so that one stops no other."""
        ids = tuple(letter.id for letter in letters)
        try:
            report = self._job.reload(letters, replace(ticket, retry_ids=ids))
        except (TransientError, FencedError, SparkGone, TargetReplacedError):
            raise
        except SetlError as error:
            if len(letters) == 1:
                self._refused(store, letters[0], error)
                return
            middle = len(letters) // 2
            self._load(store, letters[:middle], ticket)
            self._load(store, letters[middle:], ticket)
            return
        _log.info(
            "dead letters were loaded again",
            extra=fields(
                **self._leadership.fields,
                count=len(letters),
                refused=report.dead_letters or None,
                error=report.fault or None,
            ),
        )

    def _refused(self, store: DeadLetterStore, letter: DeadLetter, error: SetlError) -> None:
        # Not about its row alone, or the letter would be refused in its load like any row.
        again = replace(
            letter,
            state=State.OPEN,
            error=error.message,
            hint=error.hint,
            at=self._clock.now(),
            epoch=self._leadership.epoch,
            nid=self._leadership.nid,
        )
        store.keep([again], again=[again.id])
        _log.warning(
            "a dead letter cannot be loaded again",
            extra=fields(**self._leadership.fields, letter=letter.id, error=str(error)),
        )
