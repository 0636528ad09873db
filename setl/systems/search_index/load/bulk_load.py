"""Sends one load's actions in bulk requests, several at once, and reads every item."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Protocol

from setl.counting import count
from setl.errors import ConfigurationError, DataError, SetlError, TransientError
from setl.load.timings import Timings
from setl.systems.search_index.client import SearchClient
from setl.systems.search_index.errors import TOO_LARGE, AnswerError, translating
from setl.systems.search_index.load.outcomes import (
    Outcome,
    held_version,
    outcome_of,
    reason_of,
)
from setl.systems.search_index.mapping import GC_DELETES_SECONDS
from setl.systems.search_index.port import ClusterEndpoint

_NAMED = 3  # refused documents that an error names; the others are counted

Item = dict[str, Any]
"""One item of a bulk answer, ``{"index": {"status": 201}}``."""

_DONE: Item = {"index": {"status": 200}}

FILTER = "errors,items.*.status,items.*.error,items.*.result,items.*.failure_store"
"""The ``filter_path`` of bulk requests; most of an answer is what it leaves out."""

ALL_DONE = "all_done"
"""Member of an answer in which nothing failed: the number of its items, which are left out."""

# Only a filtered answer begins like this: others say in between how long they took.
_ALL_WELL = b'{"errors":false,"items":['
_ITEM = b'"status":'
_NOT_WRITTEN = (b'"noop"', b'"failure_store"')


@dataclass(frozen=True, slots=True)
class BulkSettings:
    """Where and how to write. Picklable and hashable: it travels with the tasks.

    Attributes:
        endpoint: the cluster.
        actions_per_request: actions in one bulk request at most.
        request_size: bytes above which a further action goes into the next request.
        requests_at_once: bulk requests of one task that are under way at the same time: the next
            one is made ready and travels while the cluster works on the one before.
        attempts: how often items are sent that the cluster is too busy for, and requests that
            get no answer, before the batch has to be tried again.
        backoff: seconds to wait before the second attempt; doubled before each further one.
        dead_letter_limit: open dead letters above which the pipeline stops; 0 stops it at the
            first faulty row.
        max_age: seconds after a leader has decided on a load in which it may be sent.
    """

    endpoint: ClusterEndpoint
    actions_per_request: int = 5_000
    request_size: int = 5 << 20
    requests_at_once: int = 2
    attempts: int = 5
    backoff: float = 0.2
    max_age: float = GC_DELETES_SECONDS / 2
    dead_letter_limit: int = 0


class Retry(Protocol):
    """Calls a function again while it raises TransientError, as often as the settings say."""

    def __call__(self, call: Callable[[list[int]], None], pending: list[int], /) -> object:
        """Call with `pending` until it returns; raises what the last call raised."""
        ...


@dataclass(slots=True)
class Sent:
    """What became of a load's actions.

    Attributes:
        stale: how many were older than what the server holds.
        held: the highest version that it holds of these.
        refused: those refused for good, by their number, with the server's items.
    """

    stale: int = 0
    held: int = 0
    refused: list[tuple[int, Item]] = field(default_factory=list[tuple[int, Item]])


class BulkLoad:
    """The actions of one call of the sink.

    Order: none among requests. A load has one action for each document, and its version decides
    against whatever else is under way; where it has two, see
    `setl.systems.search_index.load.moves`, they go together. Crash: every request may be sent
    again.
    """

    def __init__(
        self,
        client: SearchClient,
        settings: BulkSettings,
        actions: Sequence[bytes],
        *,
        bound: Container[int] = frozenset(),
        check_age: Callable[[], None],
        create_again: Callable[[str], None],
        timings: Timings,
    ) -> None:
        """Send nothing yet.

        Args:
            client: of the cluster; used by several threads at once.
            settings: limits of a request.
            actions: lines that ``_bulk`` reads.
            bound: numbers of actions that are only sent behind the one before them, in the same
                request.
            check_age: raises TransientError if the load is too old to be sent.
            create_again: makes an index that is gone.
            timings: measures requests.
        """
        self._client = client
        self._settings = settings
        self._actions = actions
        self._bound = bound
        self._check_age = check_age
        self._create_again = create_again
        self._timings = timings
        self._product = settings.endpoint.product.name

    def send_all(self, retry: Retry, senders: ThreadPoolExecutor) -> Sent:
        """Send everything; returns when nothing is under way any more, also if it raises.

        Raises:
            TransientError: some were not taken, for a reason that may pass.
            ConfigurationError: the cluster does not let the account write.
            SetlError: as the client's errors are translated.
        """
        requests = list(_requests(self._actions, self._bound, self._settings))
        parts = [Sent() for _ in requests]
        if len(requests) == 1:
            retry(self._sender(parts[0]), requests[0])
            return parts[0]
        failed = Event()

        def send(number: int) -> None:
            if failed.is_set():
                return  # the load fails, and is sent again as a whole
            try:
                retry(self._sender(parts[number]), requests[number])
            except BaseException:
                failed.set()
                raise

        under_way = [senders.submit(send, number) for number in range(len(requests))]
        errors = [error for future in under_way if (error := future.exception()) is not None]
        if errors:
            raise errors[0]
        return Sent(
            sum(part.stale for part in parts),
            max((part.held for part in parts), default=0),
            [x for part in parts for x in part.refused],
        )

    def raise_refused(self, refused: Sequence[tuple[int, Item]]) -> None:
        """DataError if documents were refused for good."""
        if not refused:
            return
        named = [
            f"{self._position(i)['index']}/{self._position(i)['id']}: {reason_of(item)}"
            for i, item in refused[:_NAMED]
        ]
        more = len(refused) - len(named)
        raise DataError(
            f"{self._product} refuses {count(len(refused), 'document')}: "
            + "; ".join(named)
            + (f"; and {more} more" if more else ""),
            hint="Correct the rows at the source, or the index's mapping",
            **self._position(refused[0][0]),
        )

    def _sender(self, sent: Sent) -> Callable[[list[int]], None]:
        """A function that sends the actions it is given and removes the finished ones."""

        def send(pending: list[int]) -> None:
            items = self._bulk(pending)
            left = self._left_over(pending, items, sent)
            pending[:] = [i for i, _ in left]
            if left:
                first, item = left[0]
                raise TransientError(
                    f"{self._product} has not taken {len(left)} of {count(len(items), 'change')}: "
                    f"{reason_of(item)}",
                    **self._position(first),
                )

        return send

    def _left_over(
        self, pending: Sequence[int], items: Sequence[Item], sent: Sent
    ) -> list[tuple[int, Item]]:
        """Note what became of actions; returns those to be sent again."""
        left: list[tuple[int, Item]] = []
        follows = False  # whether what belongs to an action that is sent again was done
        # No items: each action was done.
        for i, item in zip(pending, items, strict=True) if items else ():
            follows = follows and i in self._bound
            match outcome_of(item):
                case Outcome.DONE | Outcome.STALE if follows:
                    left.append((i, item))
                case Outcome.DONE:
                    pass
                case Outcome.STALE:
                    sent.stale += 1
                    sent.held = max(sent.held, held_version(item))
                case Outcome.REFUSED:
                    sent.refused.append((i, item))
                case Outcome.FORBIDDEN:
                    raise ConfigurationError(
                        f"{self._product} forbids writing: {reason_of(item)}",
                        hint="Check the account's privileges, and the index for a write block",
                        **self._position(i),
                    )
                case Outcome.AGAIN | Outcome.NO_INDEX as outcome:
                    if outcome is Outcome.NO_INDEX:
                        self._create_again(self._position(i)["index"])
                    left.append((i, item))
                    follows = True
        return left

    def _bulk(self, pending: Sequence[int]) -> list[Item]:
        """The answer's items, one for each action, in order; none if every action was done."""
        body = b"".join([self._actions[i] for i in pending])
        self._check_age()
        try:
            with translating(self._settings.endpoint), self._timings.one():
                answer = self._client.bulk(body, filter_path=FILTER)
        except SetlError as error:
            cause = error.__cause__
            too_large = isinstance(cause, AnswerError) and cause.status == TOO_LARGE
            if not too_large:
                raise
            if len(pending) == 1:
                reason = (
                    f"a document of {len(body)} bytes is larger than {self._product} accepts; raise"
                    " http.max_content_length, or leave the large column out"
                )
                return [{"index": {"status": TOO_LARGE, "error": reason}}]
            half = self._middle(pending)
            parts = (pending[:half], pending[half:])
            return [item for part in parts for item in self._bulk(part) or [_DONE] * len(part)]
        items: list[Item] = answer.get("items", [])
        answered = answer.get(ALL_DONE, len(items))
        if answered != len(pending):
            asked = count(len(pending), "change")
            raise TransientError(f"{self._product} answered for {answered} of {asked}")
        return items

    def _middle(self, pending: Sequence[int]) -> int:
        """Where to divide a request, between what belongs together only if nothing else is left."""
        middle = len(pending) // 2
        positions = sorted(range(1, len(pending)), key=lambda position: abs(position - middle))
        return next(
            (position for position in positions if pending[position] not in self._bound), middle
        )

    def _position(self, action: int) -> dict[str, str]:
        """Index and id of an action, read back from its first line."""
        ((_, header),) = json.loads(self._actions[action].split(b"\n", 1)[0]).items()
        return {"index": header["_index"], "id": header["_id"]}


def _requests(
    actions: Sequence[bytes], bound: Container[int], settings: BulkSettings
) -> Iterator[list[int]]:
    """Indexes of the actions of each request."""
    request: list[int] = []
    size = 0
    for i, action in enumerate(actions):
        size += len(action)
        full = size > settings.request_size or len(request) >= settings.actions_per_request
        if request and full and i not in bound:
            yield request
            request, size = [], len(action)
        request.append(i)
    if request:
        yield request


def read_bulk(data: bytes) -> Any:
    """Read JSON, except for answers to filtered bulk requests that went well.

    An answer has an item for each action, thousands of them that all say the same. Asked for no
    more than `FILTER`, a server answers ``{"errors":false,"items":[{"index":{"result":"created",
    "status":201}},…]}``. ``errors`` is true if an item failed. An older version that is refused
    counts as failed. A document that is to be deleted and was not there does not, nor does one that
    an ingest pipeline has dropped (``"result":"noop"``), nor one that was diverted to the failure
    store. Of an answer in which all is well only the items are counted; a server that words it
    otherwise has it read in full.

    Source: https://www.elastic.co/guide/en/elasticsearch/reference/8.15/docs-bulk.html

    Returns:
        What the server sent; ``{ALL_DONE: count}`` for a bulk in which nothing failed.
    """
    whole = data.startswith(_ALL_WELL) and data.endswith(b"]}")
    if whole and not any(sign in data for sign in _NOT_WRITTEN):
        return {ALL_DONE: data.count(_ITEM)}
    return json.loads(data)
