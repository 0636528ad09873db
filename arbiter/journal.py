"""The sequential entries of a pipeline: requests to it, and its past leaderships."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from arbiter.errors import Conflict, NotFound
from arbiter.payloads import history_payload, read_history, read_signal, signal_payload
from arbiter.tree import Tree
from arbiter.values import HistoryItem, PipelineId, Signal, SignalState
from arbiter.znodes import Changed, Missing, Znode

_log = logging.getLogger(__name__)

MAX_SIGNALS = 20
"""Answered requests of a pipeline that are kept for people to look at."""


class History:
    """Past leaderships of pipelines."""

    def __init__(self, tree: Tree, limit: int) -> None:
        self._tree = tree
        self._limit = limit

    def add(self, pipeline: PipelineId, item: HistoryItem) -> None:
        """Append, or replace the item of the same epoch if that is the newest.

        The oldest items beyond a limit are removed. For people only.
        """
        folder, data = self._tree.paths.history(pipeline), history_payload(item)
        found = self._tree.read_folder(folder)
        names = [name for name, _ in found]
        newest = 0
        for name, znode in reversed(found):
            stored = read_history(znode.data)
            if stored is not None and stored.epoch == item.epoch:
                # Somebody else may trim or amend; this is for people, so let it be.
                with suppress(Changed, Missing):
                    self._tree.znodes.write(f"{folder}/{name}", data, znode.version)
                return
            newest = max(newest, stored.epoch if stored else 0)
        if item.epoch < newest and len(names) >= self._limit:
            return  # it was trimmed meanwhile, and its position is not at the end
        self._tree.append(pipeline, folder, "item-", data)
        self._tree.trim(folder, names[: max(0, len(names) + 1 - self._limit)])

    def all(self, pipeline: PipelineId) -> Sequence[HistoryItem]:
        """Past leaderships, oldest first."""
        folder = self._tree.paths.history(pipeline)
        items: list[HistoryItem] = []
        for name, znode in self._tree.read_folder(folder):
            wrong: list[str] = []
            item = read_history(znode.data, wrong)
            if item is None or wrong:
                extra = {"setl": {"znode": f"{folder}/{name}", "error": "; ".join(wrong)}}
                _log.warning("history item cannot be read", extra=extra)
            items += [] if item is None else [item]
        # A leadership that has ended may be recorded after the next has begun.
        return sorted(items, key=lambda item: item.epoch)


class Signals:
    """Requests to pipelines."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def send(self, pipeline: PipelineId, signal: Signal) -> Signal:
        """Ask something of a pipeline; returns it with its id. Not idempotent.

        The oldest answered signals beyond a limit are removed.
        """
        folder = self._tree.paths.signals(pipeline)
        answered = [s for s in self.all(pipeline) if s.state is not SignalState.PENDING]
        ident = self._tree.append(pipeline, folder, "signal-", signal_payload(signal))
        self._tree.trim(folder, [s.id for s in answered[: max(0, len(answered) - MAX_SIGNALS)]])
        return replace(signal, id=ident)

    def all(self, pipeline: PipelineId) -> Sequence[Signal]:
        """The requests to a pipeline, oldest first, answered ones included."""
        return signals_of(self._tree.read_folder(self._tree.paths.signals(pipeline)))

    def answer(
        self, pipeline: PipelineId, signal: Signal, state: SignalState, answer: str
    ) -> Signal:
        """Say what became of a request; Conflict if somebody else has answered it meanwhile."""
        answered = replace(signal, state=state, answer=answer)
        path = f"{self._tree.paths.signals(pipeline)}/{signal.id}"
        try:
            revision = self._tree.znodes.write(path, signal_payload(answered), signal.revision)
        except Changed:
            raise Conflict(f"the signal {signal.id} of {pipeline} is answered already") from None
        except Missing:
            raise NotFound(f"the signal {signal.id} of {pipeline} is gone") from None
        return replace(answered, revision=revision)


def signals_of(found: Iterable[tuple[str, Znode]]) -> tuple[Signal, ...]:
    """The signals among the znodes of a folder, in the same order."""
    signals = (read_signal(name, znode.data, znode.version) for name, znode in found)
    return tuple(signal for signal in signals if signal is not None)
