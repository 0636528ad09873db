"""The requests to load tables of one pipeline: where they are kept, and who changes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError, Conflict, Invalid, NotFound
from arbiter.values import PipelineId, StoredLoad
from setl.errors import ConfigurationError, DataError, SetlError, TransientError
from setl.model.load_request import LoadRequest, RequestState

MAX_ENDED = 20
"""Requests that have ended which are kept for people to look at."""

_ATTEMPTS = 5
_Answer = TypeVar("_Answer")


class StoredLoadRequests:
    """Requests that the arbiter stores; used by the leader and by operators' commands.

    Order: requests are carried out in the order in which they were made. Idempotence: a request
    that is answered twice keeps its first answer. Crash: the checkpoint says which request is
    carried out and how far that has come (see `TableLoad.id`); a leader that dies before it has
    answered leaves the answer to the next one.
    """

    def __init__(self, arbiter: Arbiter, pipeline: PipelineId) -> None:
        """Nothing is read yet."""
        self._arbiter = arbiter
        self._pipeline = pipeline

    def all(self) -> list[LoadRequest]:
        """Every request that is kept, oldest first. Raises TransientError."""
        return [request for _, request in self._read()]

    def unanswered(self) -> list[LoadRequest]:
        """Those that the leader has not answered, in order; cancelled ones too.

        Raises:
            TransientError: they cannot be read now.
        """
        return [request for request in self.all() if not request.ended]

    def add(self, request: LoadRequest) -> LoadRequest:
        """Store a request; returns it with its id. Removes the oldest of many that have ended.

        Raises:
            TransientError: it may or may not be stored.
            ConfigurationError: the channel is gone.
            DataError: it is too large.
        """
        ended = [stored for stored, saved in self._read() if saved.ended]
        stored = self._asked(lambda: self._arbiter.loads.add(self._pipeline, request.to_json()))
        for old in ended[: max(0, len(ended) - MAX_ENDED)]:
            self._asked(partial(self._arbiter.loads.remove, self._pipeline, old))
        return replace(request, id=stored.id, revision=stored.revision)

    def answer(
        self, request: LoadRequest, state: RequestState, text: str, *, rows: int, at: float
    ) -> None:
        """Say what became of a request; one that an operator has cancelled stays cancelled.

        Raises:
            TransientError: it may or may not be answered.
        """

        def answered(now: LoadRequest) -> LoadRequest:
            stored = now.state if now.state is RequestState.CANCELLED else state
            return (
                now if now.ended else replace(now, state=stored, answer=text, rows=rows, ended=at)
            )

        self._change(request.id, answered)

    def change_state(self, ident: str, state: RequestState) -> LoadRequest | None:
        """Pause, resume or cancel a request; returns it as it is then, None if there is none.

        One that has ended stays as it is, and so does one that was cancelled.

        Raises:
            TransientError: it may or may not be changed.
        """

        def changed(now: LoadRequest) -> LoadRequest:
            over = now.ended or now.state is RequestState.CANCELLED
            return now if over else replace(now, state=state)

        return self._change(ident, changed)

    def _change(
        self, ident: str, change: Callable[[LoadRequest], LoadRequest]
    ) -> LoadRequest | None:
        for _ in range(_ATTEMPTS):
            found = next((both for both in self._read() if both[0].id == ident), None)
            if found is None:
                return None
            stored, now = found
            changed = change(now)
            if changed == now:
                return now
            try:
                self._arbiter.loads.change(self._pipeline, stored, changed.to_json())
            except Conflict:
                continue
            except ArbiterError as error:
                raise self._wrapped(error) from error
            return changed
        raise TransientError("a request to load tables keeps being changed", pipeline=self._name)

    def _read(self) -> list[tuple[StoredLoad, LoadRequest]]:
        requests: list[tuple[StoredLoad, LoadRequest]] = []
        for stored in self._asked(lambda: self._arbiter.loads.all(self._pipeline)):
            try:
                request = LoadRequest.from_json(stored.id, stored.value, stored.revision)
            except (KeyError, TypeError, ValueError):
                continue  # of a later version; nobody here can carry it out
            requests.append((stored, request))
        return requests

    def _asked(self, question: Callable[[], _Answer]) -> _Answer:
        try:
            return question()
        except ArbiterError as error:
            raise self._wrapped(error) from error

    def _wrapped(self, error: ArbiterError) -> SetlError:
        if isinstance(error, NotFound):
            return ConfigurationError(f"ZooKeeper: {error}", pipeline=self._name)
        if isinstance(error, Invalid):
            return DataError(f"ZooKeeper: {error}", pipeline=self._name)
        return TransientError(f"ZooKeeper: {error}", pipeline=self._name)

    @property
    def _name(self) -> str:
        return str(self._pipeline)
