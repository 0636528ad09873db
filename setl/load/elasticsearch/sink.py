"""Writes changes into Elasticsearch: bulk requests with external versions, every item checked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from elasticsearch import ApiError, Elasticsearch
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from setl import failpoints
from setl.clock import Clock, SystemClock
from setl.elastic.client import ElasticEndpoint, make_client, translating
from setl.elastic.mapping import GC_DELETES_SECONDS
from setl.errors import ConfigurationError, DataError, SetlError, TransientError
from setl.load.deadletters.elasticsearch_store import ElasticsearchDeadLetters
from setl.load.deadletters.keeping import Faults, loaded_with, settle
from setl.load.deadletters.letter import DeadLetter
from setl.load.elasticsearch.faults import put_aside, render
from setl.load.elasticsearch.index import ensure_index
from setl.load.elasticsearch.outcomes import Outcome, outcome_of, reason_of
from setl.load.port import Loaded, LoadTicket
from setl.model.change import TargetChanges
from setl.model.document import Geometry
from setl.model.faulty import FaultyRow
from setl.model.schema import Column

_TOO_LARGE = 413
_NAMED = 3  # refused documents that an error names; the others are counted


@dataclass(frozen=True, slots=True)
class ElasticsearchSinkSettings:
    """What an Elasticsearch sink is made from. Picklable and hashable: it travels with the tasks.

    Attributes:
        endpoint: the cluster.
        actions_per_request: actions in one bulk request at most.
        request_size: bytes above which a further action goes into the next request.
        attempts: how often items are sent that the cluster is too busy for, and requests that
            get no answer, before the batch has to be tried again.
        backoff: seconds to wait before the second attempt; doubled before each further one.
        dead_letter_limit: open dead letters above which the pipeline stops; 0 stops it at the
            first faulty row.
        max_age: seconds after a leader has decided on a load in which it may be sent.
    """

    endpoint: ElasticEndpoint
    actions_per_request: int = 5_000
    request_size: int = 5 << 20
    attempts: int = 5
    backoff: float = 0.2
    max_age: float = GC_DELETES_SECONDS / 2
    dead_letter_limit: int = 0


class ElasticsearchSink:
    """The `Sink` for Elasticsearch. Used by one thread at a time.

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
        settings: ElasticsearchSinkSettings,
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
        self._client = make_client(settings.endpoint)
        self._known: set[tuple[str, tuple[Column, ...]]] = set()
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
        """See `setl.load.port.Sink.apply`.

        Raises:
            DataError: documents were refused for good; all others of the call are written.
        """
        changes = [c for c in changes if c.upserts or c.deletes]
        if not (changes or faulty or ticket.settles):
            return Loaded()
        started = self._clock.monotonic()
        faults = Faults(faulty, self._settings.dead_letter_limit)
        try:
            actions, origins = render(changes, faults)
            load = _Load(self._client, self._settings, actions, changes, self._check_age(ticket))
            for change in changes:
                if (change.target[1], change.columns) not in self._known:
                    self._retrying(self._ensure, change)
            failpoints.reached("task.before_commit")
            for pending in _requests(actions, self._settings):
                self._retrying(load.send, pending)
            failpoints.reached("task.after_commit")
            if self._settings.dead_letter_limit:
                put_aside(load.refused, origins, faults)
            else:
                load.raise_refused()
            letters = self._settle(ticket, changes, faults.rows)
        except SetlError as error:
            # An index that was there may be gone.
            self._known.clear()
            error.at(pipeline=ticket.pipeline_key, server=self._settings.endpoint)
            raise
        loaded = Loaded(
            upserts=sum(len(c.upserts) for c in changes),
            deletes=sum(len(c.deletes) for c in changes),
            stale=load.stale,
            seconds=self._clock.monotonic() - started,
        )
        return loaded_with(letters, loaded)

    def close(self) -> None:
        """See `setl.load.port.Sink.close`."""
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

    def _settle(
        self, ticket: LoadTicket, changes: Sequence[TargetChanges], faulty: Sequence[FaultyRow]
    ) -> list[DeadLetter]:
        store = ElasticsearchDeadLetters(self._client)
        most, now = self._settings.dead_letter_limit, self._clock.now()
        with translating(self._settings.endpoint):
            return settle(store, ticket, changes, faulty, most=most, now=now)

    def _ensure(self, change: TargetChanges) -> None:
        index = change.target[1]
        with translating(self._settings.endpoint):
            ensure_index(self._client, index, change.columns, _geometry(change))
        self._known.add((index, change.columns))


def _geometry(change: TargetChanges) -> Geometry:
    return change.document.geometry if change.document else "base64"


def _requests(actions: Sequence[bytes], settings: ElasticsearchSinkSettings) -> Iterator[list[int]]:
    """Indexes of the actions of each request."""
    request: list[int] = []
    size = 0
    for i, action in enumerate(actions):
        size += len(action)
        if request and (
            size > settings.request_size or len(request) >= settings.actions_per_request
        ):
            yield request
            request, size = [], len(action)
        request.append(i)
    if request:
        yield request


class _Load:
    """One call's actions and what became of them."""

    def __init__(
        self,
        client: Elasticsearch,
        settings: ElasticsearchSinkSettings,
        actions: Sequence[bytes],
        changes: Sequence[TargetChanges],
        check_age: Callable[[], None],
    ) -> None:
        self._client = client
        self._check_age = check_age
        self._settings = settings
        self._actions = actions
        self._changes = changes
        self.refused: list[tuple[int, dict[str, Any]]] = []
        self.stale = 0

    def send(self, pending: list[int]) -> None:
        """Send the actions that `pending` names; those that are settled are taken out of it.

        Raises:
            TransientError: some are left in `pending`, for a reason that may pass.
            ConfigurationError: the cluster does not let the account write.
        """
        items = self._bulk(pending)
        left: list[tuple[int, dict[str, Any]]] = []
        for i, item in zip(pending, items, strict=True):
            match outcome_of(item):
                case Outcome.DONE:
                    pass
                case Outcome.STALE:
                    self.stale += 1
                case Outcome.REFUSED:
                    self.refused.append((i, item))
                case Outcome.FORBIDDEN:
                    raise ConfigurationError(
                        f"Elasticsearch forbids writing: {reason_of(item)}",
                        hint="Check the account's privileges, and the index for a write block",
                        **self._place(i),
                    )
                case Outcome.AGAIN | Outcome.NO_INDEX as outcome:
                    if outcome is Outcome.NO_INDEX:
                        self._create_again(i)
                    left.append((i, item))
        pending[:] = [i for i, _ in left]
        if left:
            first, item = left[0]
            raise TransientError(
                f"Elasticsearch has not taken {len(left)} of {len(items)} changes: "
                f"{reason_of(item)}",
                **self._place(first),
            )

    def raise_refused(self) -> None:
        """DataError if documents were refused for good."""
        if not self.refused:
            return
        named = [
            f"{self._place(i)['index']}/{self._place(i)['id']}: {reason_of(item)}"
            for i, item in self.refused[:_NAMED]
        ]
        more = len(self.refused) - len(named)
        raise DataError(
            f"Elasticsearch refuses {len(self.refused)} documents: "
            + "; ".join(named)
            + (f"; and {more} more" if more else ""),
            hint="Correct the rows at the source, or the index's mapping",
            **self._place(self.refused[0][0]),
        )

    def _bulk(self, pending: Sequence[int]) -> list[dict[str, Any]]:
        """The answer's items, one for each action, in order."""
        body = b"".join([self._actions[i] for i in pending])
        self._check_age()
        try:
            with translating(self._settings.endpoint):
                answer = self._client.bulk(
                    # Ready lines; the client's own serializer would be the slowest part.
                    operations=cast("Any", [body]),
                    # Nothing else is looked at, and most of the answer would be the rest.
                    filter_path="items.*.status,items.*.error",
                )
        except SetlError as error:
            cause = error.__cause__
            too_large = isinstance(cause, ApiError) and cause.status_code == _TOO_LARGE
            if not too_large:
                raise
            if len(pending) == 1:
                reason = (
                    f"a document of {len(body)} bytes is larger than Elasticsearch accepts; raise"
                    " http.max_content_length, or leave the large column out"
                )
                return [{"index": {"status": _TOO_LARGE, "error": reason}}]
            half = len(pending) // 2
            return self._bulk(pending[:half]) + self._bulk(pending[half:])
        items = answer.body.get("items", [])
        if len(items) != len(pending):
            raise TransientError(
                f"Elasticsearch answered for {len(items)} of {len(pending)} changes"
            )
        return items

    def _create_again(self, action: int) -> None:
        index = self._place(action)["index"]
        for change in self._changes:
            if change.target[1] == index:
                with translating(self._settings.endpoint):
                    ensure_index(self._client, index, change.columns, _geometry(change))

    def _place(self, action: int) -> dict[str, str]:
        """Index and id of an action, read back from its first line."""
        ((_, header),) = json.loads(self._actions[action].split(b"\n", 1)[0]).items()
        return {"index": header["_index"], "id": header["_id"]}
