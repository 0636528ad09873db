"""What the model of the fencing protocol remembers: nodes, arbiter and target as plain values."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple


class Run(NamedTuple):
    """One leadership at work on a node, see `setl.run.run.PipelineRun`.

    Attributes:
        epoch: the leadership.
        phase: ``taking`` (has not raised the fence), ``raised``, ``idle`` (has selected, nothing
            is loading), ``loading`` (a transaction is open), ``done`` (it was committed, the
            checkpoint is not stored yet), ``fenced`` (over, refused by the target).
        position: the last change that it has applied or found applied.
        newest: whether it has selected, and no other run since.
        suspended: whether it may start no load (I3).
        stopping: whether it ends after what it is loading.
    """

    epoch: float
    phase: str = "taking"
    position: int = 0
    newest: bool = False
    suspended: bool = False
    stopping: bool = False


class Node(NamedTuple):
    """One node.

    Attributes:
        frozen: whether it does nothing at all, for who knows how long.
        run: what works, None if nothing does.
        burnt_epoch: see `arbiter.election.View.burnt_epoch`.
        serves: whether it serves this kind of pipeline.
    """

    frozen: bool = False
    run: Run | None = None
    burnt_epoch: float = 0
    serves: bool = True

    @property
    def busy(self) -> bool:
        return self.run is not None and self.run.phase != "fenced"


class Stray(NamedTuple):
    """Work that nobody waits for any more, but that may yet happen: the run is gone.

    Attributes:
        kind: ``raise`` (of the fence), ``load``, or ``store`` (of the checkpoint).
        epoch: on whose behalf.
        position: the change that it applies, or the checkpoint that it stores.
        open: whether its transaction is open, and holds the fence's row in share mode.
        tried_again: whether a task stands behind it that restarts if its connection is ended;
            otherwise it is what the server still does for a connection that was given up.
        newest: as in `Run`.
    """

    kind: str
    epoch: float
    position: int = 0
    open: bool = False
    tried_again: bool = True
    newest: bool = False


class LeaderLock(NamedTuple):
    """Who is active, according to the arbiter.

    Attributes:
        node: index of the node that made it.
        own: False if that was an earlier process of the node, whose session has not ended yet.
        epoch: number of the leadership.
    """

    node: int
    own: bool
    epoch: float


class State(NamedTuple):
    """Everything. An epoch with a fraction is one that an arbiter set up again gave.

    Attributes:
        nodes: the nodes.
        leader_lock: None if nobody is active.
        wanted: what the operator wants of the channel: START, PAUSE or STOP.
        rebuilt: whether the arbiter was set up again and counts from the beginning.
        fence: epoch in the target's fence, 0 if there is none.
        checkpoint: the stored one.
        applied: the last change that the target holds.
        strays: what lives on without a run.
        zxid: the highest epoch that the arbiter ever gave.
        low: the last one that it gave since it was set up again.
        selected: the highest epoch that has selected; nobody but the properties knows it.
    """

    nodes: tuple[Node, ...]
    leader_lock: LeaderLock | None = None
    wanted: str = "START"
    rebuilt: bool = False
    fence: float = 0
    checkpoint: int = 0
    applied: int = 0
    strays: tuple[Stray, ...] = ()
    zxid: float = 0
    low: float = 0
    selected: float = 0

    def __str__(self) -> str:
        parts = [_node_text(name, node) for name, node in zip("ABC", self.nodes, strict=False)]
        if self.leader_lock is not None:
            owner = "ABC"[self.leader_lock.node] + (
                "" if self.leader_lock.own else " (earlier process)"
            )
            parts.append(f"leader lock: {owner}, epoch {self.leader_lock.epoch:g}")
        parts.append(
            f"target: fence {self.fence:g}, applied {self.applied}, checkpoint {self.checkpoint}"
        )
        for stray in self.strays:
            how = " open" if stray.open else ""
            parts.append(f"stray{how} {stray.kind} of epoch {stray.epoch:g}")
        return "; ".join(parts + ["arbiter counts again"] * self.rebuilt)


def _node_text(name: str, node: Node) -> str:
    words = ["frozen"] * node.frozen
    if node.run is not None:
        words.append(f"{node.run.phase} under epoch {node.run.epoch:g}")
        words += ["suspended"] * node.run.suspended + ["stopping"] * node.run.stopping
    return f"{name}: {' '.join(words) or 'standby'}"


def key(state: State, *, refuses: bool) -> Hashable:
    """The same for states that differ in nothing that matters, of which there are finitely many.

    Epochs are only ever compared, so their ranks say everything. Positions matter relative to
    the checkpoint; how far one lies before it makes no difference. The nodes that serve the
    pipeline are alike, so which of them is A does not matter either.

    Args:
        state: the state.
        refuses: whether the target refuses everything from epochs below the fence. Then it does
            not matter how far a run of such an epoch is, unless it has a transaction open.
    """
    held, fence, zero = state.leader_lock, state.fence, state.checkpoint
    passed = fence if refuses else 0
    runs = [_what_matters(node.run, passed) for node in state.nodes]
    known = {fence, 0 if held is None else held.epoch}
    known.update([run.epoch for run in runs if run], [stray.epoch for stray in state.strays])
    rank = {epoch: i for i, epoch in enumerate(sorted(known))}
    nodes: list[tuple[Hashable, ...]] = []
    for i, (frozen, run, burnt_epoch, serves) in enumerate(state.nodes):
        leads: tuple[Hashable, ...] = ()
        works: tuple[Hashable, ...] = ()
        if held is not None and held.node == i:
            # Whether a run of this node is of this very leadership, and how that one ended.
            mine = run is not None and run.epoch == held.epoch
            leads = (rank[held.epoch], held.own, burnt_epoch == held.epoch, mine)
        if run is not None and runs[i] is not None:
            epoch, phase, position, *flags = run
            works = (rank[epoch], max(-1, position - zero), epoch >= state.selected, phase, *flags)
        busy = run is not None and run.phase != "fenced"
        nodes.append((serves, frozen, busy, leads, works))
    nodes.sort()
    strays = [
        (rank[epoch], max(-1, position - zero), *flags, kind)
        for kind, epoch, position, *flags in state.strays
    ]
    strays.sort()
    return *nodes, *strays, state.wanted, state.rebuilt, rank[fence], state.applied - zero


def _what_matters(run: Run | None, passed: float) -> Run | None:
    if run is None or run.phase == "fenced" or (run.epoch < passed and run.phase != "loading"):
        return None
    return run
