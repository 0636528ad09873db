"""Writes changes into an index: bulk requests with external versions, every item checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from setl import failpoints
from setl.clock import Clock, SystemClock
from setl.errors import ConfigurationError, SetlError, TransientError
from setl.load.deadletters.dead_letter import DeadLetter
from setl.load.deadletters.storing import Faults, loaded_with, update_letters
from setl.load.sink import LoadTicket, SinkSettings
from setl.load.timings import Timings
from setl.model.change import TargetChanges
from setl.model.document import DocumentOrigin, Geometry
from setl.model.faulty import FaultyRow
from setl.model.loaded import Loaded
from setl.model.schema import Column
from setl.systems.search_index.client import make_client
from setl.systems.search_index.deadletters import IndexDeadLetters
from setl.systems.search_index.errors import translating
from setl.systems.search_index.load.bulk_load import BulkLoad, BulkSettings, read_bulk
from setl.systems.search_index.load.document_origin import check_ids
from setl.systems.search_index.load.faults import put_aside, render
from setl.systems.search_index.load.index import ensure_index


@dataclass(frozen=True, slots=True)
class IndexSinkSettings(BulkSettings, SinkSettings):
    """What a sink of an index is made from; see `setl.load.sink.SinkSettings`."""

    def make_sink(self) -> IndexSink:
        """See `SinkSettings.make_sink`."""
        return IndexSink(self)


_Shape = tuple[str, tuple[Column, ...], DocumentOrigin | None]


class _KnownIndexes(NamedTuple):
    """What a leadership knows of indexes.

    Attributes:
        epoch: of the leadership.
        schema_version: see `LoadTicket`.
        shapes: each index with columns for which it has fields, and what its ids are made of.
    """

    epoch: int
    schema_version: int
    shapes: set[_Shape]


class IndexSink:
    """The `Sink` of an index. Used by one thread at a time.

    There is no transaction and no fence: each document carries its version, and the cluster
    refuses what is older than what it holds, from whomever it comes (I2, I12).

    Of a deleted document it remembers the version for ``gc_deletes`` only. A process that was
    frozen and thaws much later must not send what it had in hand then. So nothing is sent later
    than `max_age` after the leader decided on the load, by the clocks of both machines; with the
    time that a request takes this is well within ``gc_deletes``. What is left is a process that
    freezes between the look at the clock and the sending, and a shard that restarts or moves,
    which forgets sooner.
    """

    def __init__(
        self,
        settings: IndexSinkSettings,
        *,
        clock: Clock | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Connect to nothing yet.

        Args:
            settings: where and how to write.
            clock: for the time spent in the target.
            sleep: waits between attempts.

        Raises:
            ConfigurationError: as `make_client`.
        """
        self._settings = settings
        self._clock = clock or SystemClock()
        self._timings = Timings(self._clock)
        self._client = make_client(settings.endpoint, read=read_bulk)
        self._senders = ThreadPoolExecutor(settings.requests_at_once, "bulk")
        self._known: dict[str, _KnownIndexes] = {}
        self._retrying = Retrying(
            retry=retry_if_exception_type(TransientError),
            stop=stop_after_attempt(settings.attempts),
            wait=wait_exponential(multiplier=settings.backoff, max=30),
            sleep=sleep,
            reraise=True,
        )

    def apply(
        self,
        ticket: LoadTicket,
        changes: Sequence[TargetChanges],
        faulty: Sequence[FaultyRow] = (),
    ) -> Loaded:
        """See `setl.load.sink.Sink.apply`.

        Raises:
            DataError: documents were refused for good; all others of the call are written.
        """
        changes = [c for c in changes if c.upserts or c.deletes]
        if not (changes or faulty or ticket.retry_ids):
            return Loaded()
        started = self._clock.monotonic()
        faults = Faults(faulty, self._settings.dead_letter_limit)
        try:
            actions, origins, bound = render(changes, faults)
            load = BulkLoad(
                self._client,
                self._settings,
                actions,
                bound=bound,
                check_age=self._check_age(ticket),
                create_again=lambda index: self._create_again(changes, index),
                timings=self._timings,
            )
            known = self._known_to(ticket)
            for change in changes:
                shape = (change.target[1], change.columns, change.ids)
                if shape not in known:
                    self._retrying(self._ensure, change, ticket.pipeline_key)
                    known.add(shape)
            failpoints.reached("task.before_commit")
            sent = load.send_all(self._retrying, self._senders)
            failpoints.reached("task.after_commit")
            if self._settings.dead_letter_limit:
                put_aside(sent.refused, origins, faults)
            else:
                load.raise_refused(sent.refused)
            letters = self._update_letters(ticket, changes, faults.rows)
        except SetlError as error:
            # An index that was there may be gone.
            self._known.clear()
            error.at(pipeline=ticket.pipeline_key, server=self._settings.endpoint)
            raise
        loaded = Loaded(
            upserts=sum(len(c.upserts) for c in changes),
            deletes=sum(len(c.deletes) for c in changes),
            stale=sent.stale,
            held=sent.held,
            seconds=self._clock.monotonic() - started,
            statements=self._timings.taken(),
        )
        return loaded_with(letters, loaded)

    def close(self) -> None:
        """See `setl.load.sink.Sink.close`."""
        self._senders.shutdown()
        self._client.close()

    def _check_age(self, ticket: LoadTicket) -> Callable[[], None]:
        """What raises TransientError once the load is too old to be sent."""

        def check() -> None:
            # Of all clocks only this one goes on while a process is frozen and is the same on
            # other machines, as far as they are set.
            age = self._clock.now() - ticket.begun
            if ticket.begun and age > self._settings.max_age:
                raise TransientError(
                    f"the load was begun {age:,.0f} s ago and is given up, since its target may"
                    " have forgotten what was deleted meanwhile",
                    hint="If it was not: set the clocks of the nodes and of Spark's workers",
                )

        return check

    def _update_letters(
        self, ticket: LoadTicket, changes: Sequence[TargetChanges], faulty: Sequence[FaultyRow]
    ) -> list[DeadLetter]:
        store = IndexDeadLetters(self._client)
        most, now = self._settings.dead_letter_limit, self._clock.now()
        with translating(self._settings.endpoint):
            return update_letters(store, ticket, changes, faulty, most=most, now=now)

    def _ensure(self, change: TargetChanges, pipeline: str) -> None:
        index = change.target[1]
        with translating(self._settings.endpoint):
            try:
                existing = ensure_index(self._client, index, change.columns, _geometry(change))
            except ConfigurationError as error:
                raise error.at(**({"table": change.source} if change.source else {})) from None
            if change.ids is not None:
                check_ids(self._client, index, existing, pipeline, change.ids)

    def _known_to(self, ticket: LoadTicket) -> set[_Shape]:
        """The indexes that are there, see `_KnownIndexes`.

        A leader that begins may find an index gone that was there before. The first document would
        make it again, with fields as the cluster guesses them.
        """
        known = self._known.get(ticket.pipeline_key)
        now = ticket.epoch, ticket.schema_version
        if known is None or known[:2] != now:
            known = self._known[ticket.pipeline_key] = _KnownIndexes(*now, set())
        return known.shapes

    def _create_again(self, changes: Sequence[TargetChanges], index: str) -> None:
        for change in changes:
            if change.target[1] == index:
                with translating(self._settings.endpoint):
                    ensure_index(self._client, index, change.columns, _geometry(change))


def _geometry(change: TargetChanges) -> Geometry:
    return change.document.geometry if change.document else "base64"
