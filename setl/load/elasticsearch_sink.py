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
from setl.errors import ConfigurationError, DataError, SetlError, TransientError
from setl.load.elasticsearch_documents import render_actions
from setl.load.elasticsearch_index import ensure_index
from setl.load.elasticsearch_outcomes import Outcome, outcome_of, reason_of
from setl.load.port import Loaded, LoadTicket
from setl.model.change import TargetChanges
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
    """

    endpoint: ElasticEndpoint
    actions_per_request: int = 5_000
    request_size: int = 5 << 20
    attempts: int = 5
    backoff: float = 0.2


class ElasticsearchSink:
    """The `Sink` for Elasticsearch. Used by one thread at a time.

    There is no transaction and no fence: each document carries its version, and the cluster
    refuses what is older than what it holds, from whomever it comes (I2, I12).
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

    def apply(self, ticket: LoadTicket, changes: Sequence[TargetChanges]) -> Loaded:
        """See `setl.load.port.Sink.apply`.

        Raises:
            DataError: documents were refused for good; all others of the call are written.
        """
        changes = [c for c in changes if c.upserts or c.deletes]
        if not changes:
            return Loaded()
        started = self._clock.monotonic()
        try:
            actions = [action for change in changes for action in render_actions(change)]
            load = _Load(self._client, self._settings, actions, changes)
            for change in changes:
                if (change.target[1], change.columns) not in self._known:
                    self._retrying(self._ensure, change)
            failpoints.reached("task.before_commit")
            for pending in _requests(actions, self._settings):
                self._retrying(load.send, pending)
            failpoints.reached("task.after_commit")
            load.raise_refused()
        except SetlError as error:
            # An index that was there may be gone.
            self._known.clear()
            error.at(pipeline=ticket.pipeline_key, server=self._settings.endpoint)
            raise
        return Loaded(
            upserts=sum(len(c.upserts) for c in changes),
            deletes=sum(len(c.deletes) for c in changes),
            stale=load.stale,
            seconds=self._clock.monotonic() - started,
        )

    def close(self) -> None:
        """See `setl.load.port.Sink.close`."""
        self._client.close()

    def _ensure(self, change: TargetChanges) -> None:
        index = change.target[1]
        with translating(self._settings.endpoint):
            ensure_index(self._client, index, change.columns)
        self._known.add((index, change.columns))


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
    ) -> None:
        self._client = client
        self._settings = settings
        self._actions = actions
        self._changes = changes
        self._refused: list[tuple[int, dict[str, Any]]] = []
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
                    self._refused.append((i, item))
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
        if not self._refused:
            return
        named = [
            f"{self._place(i)['index']}/{self._place(i)['id']}: {reason_of(item)}"
            for i, item in self._refused[:_NAMED]
        ]
        more = len(self._refused) - len(named)
        raise DataError(
            f"Elasticsearch refuses {len(self._refused)} documents: "
            + "; ".join(named)
            + (f"; and {more} more" if more else ""),
            hint="Correct the rows at the source, or the index's mapping",
            **self._place(self._refused[0][0]),
        )

    def _bulk(self, pending: Sequence[int]) -> list[dict[str, Any]]:
        """The answer's items, one for each action, in order."""
        body = b"".join([self._actions[i] for i in pending])
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
                raise DataError(
                    f"a document of {len(body)} bytes is larger than Elasticsearch accepts",
                    hint="Raise http.max_content_length, or leave the large column out",
                    **self._place(pending[0]),
                ) from error
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
                    ensure_index(self._client, index, change.columns)

    def _place(self, action: int) -> dict[str, str]:
        """Index and id of an action, read back from its first line."""
        ((_, header),) = json.loads(self._actions[action].split(b"\n", 1)[0]).items()
        return {"index": header["_index"], "id": header["_id"]}
