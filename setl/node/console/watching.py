"""What a node shows of the whole cluster: its own last look, and what the other nodes answer.

Nodes are asked only while somebody looks at pages, once for all who do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from arbiter.errors import ArbiterError
from arbiter.snapshot import Snapshot
from arbiter.values import Facts
from setl.clock import Clock
from setl.node.cluster.answers import ask_nodes
from setl.node.cluster.view import ClusterView, public_facts, view_of
from setl.node.public_form import public_status
from setl.node.status import NodeStatus, as_json

_T = TypeVar("_T")

MOST = 512


class CachedLooks(Generic[_T]):
    """Answers by key, each asked for again once it is old; from any thread."""

    def __init__(self, clock: Clock, seconds: float, otherwise: _T) -> None:
        """Nothing was asked yet.

        Args:
            clock: for the age of answers.
            seconds: how old an answer may be.
            otherwise: stands in for an answer that could not be had and never was.
        """
        self._clock = clock
        self._seconds = seconds
        self._otherwise = otherwise
        self._lock = threading.Lock()
        self._cached: dict[object, tuple[float, _T]] = {}

    def get(self, key: object, ask: Callable[[], _T]) -> _T:
        """The answer for a key; the one before, if the arbiter does not answer now."""
        now = self._clock.monotonic()
        with self._lock:
            cached = self._cached.get(key)
        if cached is not None and now - cached[0] < self._seconds:
            return cached[1]
        try:
            answer = ask()
        except ArbiterError:
            answer = self._otherwise if cached is None else cached[1]
        with self._lock:
            self._cached.pop(key, None)
            self._cached[key] = (now, answer)
            while len(self._cached) > MOST:
                del self._cached[next(iter(self._cached))]
        return answer

    def forget(self) -> None:
        """Ask again from now on."""
        with self._lock:
            self._cached.clear()


FRESH_SECONDS = 1.0
ANSWER_SECONDS = 1.0


class ClusterWatch:
    """The cluster as of a second ago at most; from any thread, and blocks for an answer."""

    def __init__(
        self,
        nid: str,
        status: Callable[[], NodeStatus],
        snapshot: Callable[[], Snapshot | None],
        clock: Clock,
        *,
        whole: bool = True,
    ) -> None:
        """Ask nobody yet.

        Args:
            nid: this node.
            status: this node, as of now.
            snapshot: its last look at the cluster, None before the first.
            clock: for the age of what is known.
            whole: whether to look at all, and not only at what anybody may read.
        """
        self._whole = whole
        self._nid = nid
        self._status = status
        self._snapshot = snapshot
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: ClusterView | None = None
        self._seen_at = 0.0

    @property
    def looked(self) -> bool:
        """Whether the node has looked at the cluster since it started."""
        return self._snapshot() is not None

    def view(self, *, fresh: float = FRESH_SECONDS) -> ClusterView:
        """Nodes and pipelines; a node that does not answer in a second does not hold it up longer.

        Args:
            fresh: seconds that it may be old.
        """
        with self._lock:
            now = self._clock.monotonic()
            if self._seen is None or now - self._seen_at >= fresh:
                self._seen = self._look()
                self._seen_at = self._clock.monotonic()
            return self._seen

    def _look(self) -> ClusterView:
        snapshot = self._snapshot()
        facts, status = snapshot.facts if snapshot else Facts(), self._status()
        if not self._whole:
            facts, status = public_facts(facts), public_status(status)
        others = [node for nid, node in facts.nodes.items() if nid != self._nid]
        answers: dict[str, Mapping[str, Any] | None] = {
            **ask_nodes(others, ANSWER_SECONDS, whole=self._whole),
            self._nid: as_json(status),
        }
        known = {nid: answers[nid] for nid in (*facts.nodes, self._nid)}
        return view_of(facts, known, self._clock.now())
