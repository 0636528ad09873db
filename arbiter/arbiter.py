"""The service that decides which node is active: ZooKeeper, or a tree of znodes in a test's memory.

Every call has a time limit and raises instead of waiting for ever. No call is made from a
callback: callbacks only set flags and wake whoever waits on them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from arbiter.actions import Actions
from arbiter.alarms import Alarms
from arbiter.channels import Channels
from arbiter.errors import Invalid
from arbiter.journal import History, Signals
from arbiter.leader_locks import Epochs, LeaderLocks
from arbiter.nodes import Nodes
from arbiter.paths import Paths
from arbiter.pipeline_values import Cutovers, Loads, Positions, Verifications
from arbiter.reading import read_facts
from arbiter.tree import Tree
from arbiter.values import Facts
from arbiter.znodes import Session, Znodes

_CACHE_SECONDS = 30.0
"""After which facts are read again although no watch tells of a change, if there was any at all."""


@dataclass(frozen=True, slots=True)
class _CachedFacts:
    """Facts that were read.

    Attributes:
        news: see `Znodes.news`, as it was before.
        change: see `Znodes.last_change`, as it was before.
        at: monotonic time at which they were read.
        facts: the facts.
    """

    news: int
    change: int | None
    at: float
    facts: Facts

    def hold(self, news: int | None, change: int | None, now: float) -> bool:
        """Whether they still hold."""
        unchanged = change is not None and change == self.change
        return news == self.news and (unchanged or now - self.at < _CACHE_SECONDS)


class Arbiter:
    """One session with the arbiter; everything that names its owner ends with it.

    Each kind of znode has its calls and its rules in a part of its own.

    Thread-safe. Order: what one session writes is seen by all in that order. Idempotence:
    noted at each call. Crash: a call that raised `Unreachable` may have taken effect, so the
    caller reads before it decides again; ephemeral facts (nodes, leader locks) vanish by
    themselves within the session timeout.

    Attributes:
        session: what is known of the session.
        nodes: who lives.
        channels: the channels, their definitions and states.
        leader_locks: who leads which pipeline.
        epochs: how leaderships are numbered.
        positions: how far pipelines are, where that is stored with the arbiter.
        cutovers: the cut-overs that are under way.
        verifications: how far standing verification is.
        signals: requests to pipelines.
        loads: requests to load tables.
        history: past leaderships.
        actions: what operators did.
        alarms: who sends alarms, and what is stored of them.
    """

    def __init__(
        self,
        znodes: Znodes,
        *,
        root: str = "/setl",
        history_limit: int = 100,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Work under `root`, and keep `history_limit` history items of each pipeline."""
        if history_limit < 1:
            raise Invalid(f"the history limit must be at least 1, not {history_limit}")
        self._znodes = znodes
        self._paths = Paths.under(root)
        self._monotonic = monotonic
        self._stored: _CachedFacts | None = None
        tree = Tree(znodes, self._paths)
        self.session: Session = znodes
        self.nodes = Nodes(tree)
        self.channels = Channels(tree)
        self.epochs = Epochs(tree)
        self.leader_locks = LeaderLocks(tree, self.epochs)
        self.positions = Positions(tree)
        self.cutovers = Cutovers(tree)
        self.verifications = Verifications(tree)
        self.signals = Signals(tree)
        self.loads = Loads(tree)
        self.history = History(tree, history_limit)
        self.actions = Actions(tree)
        self.alarms = Alarms(tree)

    def start(self, timeout: float = 10.0, gives_up: Callable[[], bool] = lambda: False) -> None:
        """Connect, within `timeout` seconds, before anything else; nothing to do in memory.

        Args:
            timeout: seconds.
            gives_up: whether the caller waits no longer.

        Raises:
            Unreachable: no server answered in time, or before the caller gave up.
        """

    def facts(self) -> Facts:
        """Nodes, channels, leader locks and signals, read in a few round trips.

        What cannot be read at all (a damaged payload) is treated as the single reads do. While
        nothing has changed, it may be the same object again, which says just that.
        """
        # Both before anything is read: what changes meanwhile makes them others.
        news, change, now = self._znodes.news(), self._znodes.last_change(), self._monotonic()
        if self._stored is not None and self._stored.hold(news, change, now):
            return self._stored.facts
        facts = read_facts(self._znodes, self._paths)
        self._stored = None if news is None else _CachedFacts(news, change, now, facts)
        return facts

    def close(self) -> None:
        """End the session at once, so that others need not wait for its timeout."""
        self._znodes.close()
