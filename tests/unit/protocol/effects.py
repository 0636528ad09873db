"""What a step of the model does to its state, and which property it would break."""

from __future__ import annotations

from tests.unit.protocol.explore import Step
from tests.unit.protocol.state import LeaderLock, Node, Run, State, Stray

S1 = "S1: a transaction commits after a later run has selected"
S2 = "S2: a checkpoint is stored after a later run has selected"
S3 = "S3: a change is skipped"
S4 = "S4: the fence's epoch falls"
L1 = "L1: no node that is awake can ever commit again"


def holder(held: LeaderLock | None, i: int) -> str:
    """Whose the leader lock is, seen from node `i`: see `tests.unit.protocol.rules.action`."""
    if held is None:
        return ""
    if held.node != i:
        return "other"
    return "own" if held.own else "earlier"


def with_node(state: State, i: int, node: Node) -> State:
    return state._replace(nodes=(*state.nodes[:i], node, *state.nodes[i + 1 :]))


def with_run(state: State, i: int, run: Run | None) -> State:
    return with_node(state, i, state.nodes[i]._replace(run=run))


def fenced(state: State, i: int, run: Run) -> State:
    return with_run(state, i, Run(run.epoch, "fenced"))


def left_by(run: Run, kind: str, *, is_open: bool) -> Stray:
    """What lives on of a run that is given up."""
    position = run.position + 1 if kind == "load" else run.position
    return Stray(kind, run.epoch, position, is_open, newest=run.newest)


def is_locked(state: State) -> bool:
    """Whether a transaction holds the fence's row in share mode."""
    return any(s.open for s in state.strays) or any(
        n.run is not None and n.run.phase == "loading" for n in state.nodes
    )


def committed(label: str, state: State, by: Run | Stray, *, fault: bool = False) -> Step:
    """The change at `by.position` is in the target."""
    violation = "" if by.newest else S1
    if by.position > state.applied + 1:
        violation = S3
    after = state._replace(applied=max(state.applied, by.position))
    return Step(label, after, reliable=not fault, progress=not fault, violation=violation)


def stored(label: str, state: State, by: Run | Stray) -> Step:
    """The checkpoint is where `by` has come to."""
    violation = "" if by.newest and by.position >= state.checkpoint else S2
    if by.position > state.applied:
        violation = S3
    after = state._replace(checkpoint=by.position)
    return Step(label, after, reliable=True, violation=violation)
