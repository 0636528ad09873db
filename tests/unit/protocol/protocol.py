"""The protocol that keeps stale leaders from writing (I1-I3, I7), as steps between states.

Nodes take part in an election, whoever leads works on the target, and everything may go wrong
at any moment: each function below yields what can happen next in one part of the system.

What is left out, and why that hides nothing:

* Time. Whatever may happen after a delay may happen at once, and a session may expire before
  its node has stopped, as if I3's deadline did not exist: only the fence is relied upon.
* Batches and windows. A load is one transaction of the next change. Several tasks of a load are
  like one that stands still between two steps.
* The rows. Applying a change again, while no later run has selected, changes nothing (I12).
* Storing a checkpoint is one step. It locks the fence like a load, so whatever comes between
  its statements is what may come between those of a load.
* A look at the arbiter and what is done with the leader lock because of it are one step. The
  arbiter checks the version or the session of whatever is changed, so a late one is refused.
* What a node remembers of earlier leaders: it delays its pipeline controller and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from arbiter.election import Action
from arbiter.errors import Contact
from tests.unit.protocol.effects import (
    S4,
    committed,
    fenced,
    holder,
    is_locked,
    left_by,
    stored,
    with_node,
    with_run,
)
from tests.unit.protocol.explore import Step
from tests.unit.protocol.rules import action
from tests.unit.protocol.state import LeaderLock, Node, Run, State, Stray, key


@dataclass(frozen=True, slots=True)
class Protocol:
    """The protections, each of which may be left out to see what it is there for.

    Attributes:
        compares: a load transaction compares the fence's epoch with its own.
        keeps_lock: it keeps the fence's row locked until it ends.
        waits: raising the fence waits for the transactions that have it locked.
        only_rises: a fence that stands higher is left as it is.
        raises_first: the fence is raised before the checkpoint is read.
        fences_checkpoint: a checkpoint is stored under the fence.
        spends: an epoch under which a run was aborted is given up for another.
        ends_run: so is one under which Spark gave a job up, whose tasks may live on.
        kills: who raises the fence ends transactions that hold it for too long.
        kills_own: those of its own epoch, too, that an earlier attempt has left behind.
        checks_session: leadership is the session's, not the node id's.
        renumbers: epochs are raised above all earlier ones after the arbiter was set up again.
        below: until then it gives numbers below the fence's, and not by chance the same one.
        doubts: a commit without an answer is not taken for done.
        max_strays: how many pieces of work may be left behind at the same time.
        operator: whether an operator pauses, stops and deposes.
        rebuilds: whether the arbiter may be set up again.
    """

    compares: bool = True
    keeps_lock: bool = True
    waits: bool = True
    only_rises: bool = True
    raises_first: bool = True
    fences_checkpoint: bool = True
    spends: bool = True
    ends_run: bool = True
    kills: bool = True
    kills_own: bool = True
    checks_session: bool = True
    renumbers: bool = True
    below: bool = True
    doubts: bool = True
    max_strays: int = 1
    operator: bool = True
    rebuilds: bool = True

    def steps(self, state: State) -> Iterator[Step]:
        """Everything that can happen in a state."""
        for i, node in enumerate(state.nodes):
            name = "ABC"[i]
            if not node.frozen:
                yield from self._election(state, i, name)
                if node.run is not None:
                    yield from self._work(state, i, name, node.run)
                    yield from self._failures(state, i, name, node.run)
            yield from self._node_faults(state, i, name)
        yield from self._strays(state)
        yield from self._surroundings(state)

    # -- a node and the arbiter --------------------------------------------------------------

    def _election(self, state: State, i: int, name: str) -> Iterator[Step]:
        """What a node decides, whether it reaches the arbiter or not."""
        node, held = state.nodes[i], state.leader_lock
        owner = holder(held, i)
        what = action(
            Contact.CONNECTED,
            wanted=state.wanted,
            holder=owner,
            busy=node.busy,
            burnt_epoch=self.spends and held is not None and node.burnt_epoch == held.epoch,
            trust_nid=not self.checks_session,
            serves=node.serves,
        )
        yield from self._obey(state, i, f"{name} decides", what)
        if node.busy:
            what = action(Contact.SUSPENDED, busy=True)
            yield from self._obey(state, i, f"{name}, cut off,", what, fault=True)
            what = action(Contact.SUSPENDED, busy=True, late=True)
            yield from self._obey(state, i, f"{name}, cut off for long,", what, fault=True)
            if owner != "own":
                what = action(Contact.LOST, busy=True)
                yield from self._obey(state, i, f"{name}, its session lost,", what)

    def _obey(
        self, state: State, i: int, label: str, what: Action, *, fault: bool = False
    ) -> Iterator[Step]:
        label = f"{label} {what.value}"
        node = state.nodes[i]
        run = node.run if node.busy else None
        if what is Action.LEAD and state.leader_lock is not None:
            yield from self._lead(state, i, label, state.leader_lock.epoch)
            return
        if what is Action.ABORT and run is not None:
            gone = node._replace(run=None, burnt_epoch=run.epoch)
            yield from self._left(state, i, label, gone, fault=fault)
            return
        after = state
        if what is Action.SUSPEND and run is not None:
            after = with_run(state, i, run._replace(suspended=True))
        elif what in (Action.HOLD, Action.DRAIN) and run is not None:
            after = with_run(state, i, run._replace(stopping=True))
        elif what is Action.CAMPAIGN:
            after = self._numbered(state, LeaderLock(i, True, 0))
        elif run is None:
            after = with_run(state, i, None)
            if what is Action.STEP_DOWN:
                after = after._replace(leader_lock=None)
        if after != state:
            yield Step(label, after, reliable=not fault)

    def _lead(self, state: State, i: int, label: str, epoch: float) -> Iterator[Step]:
        node = state.nodes[i]
        run = node.run
        if run is None or (run.phase == "fenced" and run.epoch != epoch):
            yield Step(label, with_run(state, i, Run(epoch)), reliable=True)
        elif run.epoch != epoch:
            yield from self._left(state, i, label, node._replace(run=None, burnt_epoch=run.epoch))
        elif run.suspended:
            yield Step(label, with_run(state, i, run._replace(suspended=False)), reliable=True)

    def _numbered(self, state: State, held: LeaderLock) -> State:
        """The leader lock under the arbiter's next number.

        One that was set up again gives numbers that the target has left behind, but they grow.
        """
        if state.rebuilt:
            low = (state.low + state.fence) / 2 if self.below else state.fence
            return state._replace(leader_lock=held._replace(epoch=low), low=low)
        epoch = state.zxid + 1
        return state._replace(leader_lock=held._replace(epoch=epoch), zxid=epoch)

    # -- a run and the target ----------------------------------------------------------------

    def _work(self, state: State, i: int, name: str, run: Run) -> Iterator[Step]:
        """What a run does next, if nothing fails."""
        phase = run.phase
        if phase == ("taking" if self.raises_first else "raised"):
            yield from self._raise(state, i, name, run)
        elif phase in ("taking", "raised"):
            yield self._select(state, i, name, run)
        elif phase == "idle" and run.stopping:
            yield Step(f"{name}'s run ends", with_run(state, i, None), reliable=True)
        elif phase == "idle" and not run.suspended:
            if self.compares and run.epoch != state.fence:
                yield Step(f"{name} is fenced", fenced(state, i, run), reliable=True)
            else:
                after = with_run(state, i, run._replace(phase="loading"))
                yield Step(f"{name} begins a transaction", after, reliable=True)
        elif phase == "loading":
            done = run._replace(phase="done", position=run.position + 1)
            yield committed(f"{name} commits", with_run(state, i, done), done)
        elif phase == "done":
            if self.fences_checkpoint and run.epoch != state.fence:
                yield Step(f"{name} is fenced", fenced(state, i, run), reliable=True)
            else:
                after = with_run(state, i, run._replace(phase="idle"))
                yield stored(f"{name} stores its checkpoint", after, run)

    def _raise(self, state: State, i: int, name: str, run: Run) -> Iterator[Step]:
        if self.waits and self.keeps_lock and is_locked(state):
            if self.kills:
                after = self._killed(state, run.epoch)
                if after != state:
                    yield Step(f"{name} ends stale transactions", after, reliable=True)
        elif state.fence > run.epoch and self.only_rises:
            yield Step(f"{name} is fenced", fenced(state, i, run), reliable=True)
        else:
            phase = "raised" if self.raises_first else "idle"
            after = with_run(state, i, run._replace(phase=phase))
            yield self._raised(f"{name} raises the fence", after, run.epoch)

    def _raised(self, label: str, state: State, epoch: float) -> Step:
        violation = S4 if epoch < state.fence else ""
        after = state._replace(fence=epoch)
        after = after._replace(
            strays=tuple(s for s in after.strays if not self._is_refused(after, s))
        )
        return Step(label, after, reliable=True, violation=violation)

    def _select(self, state: State, i: int, name: str, run: Run) -> Step:
        """Read the checkpoint and go on from there; what began before is stale from now.

        Unless a run of a higher epoch has selected already: then this one is what is stale.
        """
        phase = "idle" if self.raises_first else "raised"
        newest = run.epoch >= state.selected
        selected = run._replace(phase=phase, position=state.checkpoint, newest=newest)
        if newest:
            nodes = tuple(
                n._replace(run=n.run._replace(newest=False)) if n.run else n for n in state.nodes
            )
            strays = tuple(s._replace(newest=False) for s in state.strays)
            state = state._replace(nodes=nodes, strays=strays, selected=run.epoch)
        return Step(f"{name} selects", with_run(state, i, selected), reliable=True)

    def _killed(self, state: State, epoch: float) -> State:
        """End what holds the fence for an older epoch, or for an earlier attempt of this one.

        A load whose connection is gone is tried again by its task, over another one.
        """

        def is_stale(other: float) -> bool:
            return other < epoch or (self.kills_own and other == epoch)

        nodes = tuple(
            n._replace(run=n.run._replace(phase="idle"))
            if n.run and n.run.phase == "loading" and is_stale(n.run.epoch)
            else n
            for n in state.nodes
        )
        strays = tuple(
            s._replace(open=False) if s.open and is_stale(s.epoch) else s
            for s in state.strays
            if s.tried_again or not (s.open and is_stale(s.epoch))
        )
        return state._replace(nodes=nodes, strays=strays)

    def _failures(self, state: State, i: int, name: str, run: Run) -> Iterator[Step]:
        """What can go wrong with what a run does, and what it does then."""
        again = Run(run.epoch, suspended=run.suspended, stopping=run.stopping)
        if run.phase == "loading":
            idle = run._replace(phase="idle")
            done = run._replace(position=run.position + 1)
            yield committed(
                f"{name} commits, without an answer", with_run(state, i, idle), done, fault=True
            )
            believed = idle if self.doubts else done._replace(phase="done")
            after = with_run(state, i, believed)
            yield Step(f"{name} sends a commit that does not arrive", after)
            yield Step(f"{name}'s load fails", with_run(state, i, again))
        is_storing = run.phase == "done" and run.epoch == state.fence
        if (run.phase == "loading" or is_storing) and self._has_room(state):
            kind = "store" if is_storing else "load"
            left = left_by(run, kind, is_open=True)._replace(tried_again=False)
            after = self._add(with_run(state, i, again), left)
            yield Step(f"{name} has no answer, the server goes on with the {kind}", after)
        if run.phase in ("idle", "loading") and self._has_room(state):
            node = state.nodes[i]
            ended = node._replace(run=None, burnt_epoch=run.epoch)
            left = left_by(run, "load", is_open=run.phase == "loading")
            after = with_node(state, i, ended if self.ends_run else node._replace(run=again))
            yield Step(f"{name}'s Spark job fails, and a task lives on", self._add(after, left))

    # -- what goes wrong around them ----------------------------------------------------------

    def _node_faults(self, state: State, i: int, name: str) -> Iterator[Step]:
        node, held = state.nodes[i], state.leader_lock
        after = state
        if held is not None and held.node == i and held.own:
            expired = state._replace(leader_lock=None)
            yield Step(f"{name}'s session expires", expired, reliable=node.frozen)
            after = state._replace(leader_lock=held._replace(own=False))
        if node.frozen:
            yield Step(f"{name} thaws", with_node(state, i, node._replace(frozen=False)))
        elif any(n.serves and not n.frozen for k, n in enumerate(state.nodes) if k != i):
            yield Step(f"{name} freezes", with_node(state, i, node._replace(frozen=True)))
        fresh = Node(serves=node.serves)
        if after is not state or node != fresh:
            yield from self._left(after, i, f"{name} is killed and starts again", fresh, fault=True)

    def _left(
        self, state: State, i: int, label: str, node: Node, *, fault: bool = False
    ) -> Iterator[Step]:
        """A run is given up; what it was doing ends with it, or not."""
        run, after = state.nodes[i].run, with_node(state, i, node)
        yield Step(label, after, reliable=not fault)
        if run is None or not self._has_room(state):
            return
        kind = {"taking": "raise", "idle": "load", "loading": "load", "done": "store"}.get(
            run.phase
        )
        if kind is not None:
            left = left_by(run, kind, is_open=run.phase == "loading")
            yield Step(f"{label}, its {kind} lives on", self._add(after, left), reliable=not fault)

    def _strays(self, state: State) -> Iterator[Step]:
        for at, stray in enumerate(state.strays):
            gone = state._replace(strays=state.strays[:at] + state.strays[at + 1 :])
            name = f"the stray {stray.kind} of epoch {stray.epoch:g}"
            allowed = stray.epoch == state.fence
            if stray.kind == "raise":
                if not (self.waits and self.keeps_lock and is_locked(gone)):
                    epoch = max(stray.epoch, state.fence)
                    step = self._raised(f"{name} takes effect", gone, epoch)
                    yield step._replace(reliable=False)
            elif stray.kind == "store":
                if stray.open or allowed or not self.fences_checkpoint:
                    yield stored(f"{name} takes effect", gone, stray)._replace(reliable=False)
                else:
                    yield Step(f"{name} is fenced", gone)
            elif stray.open:
                yield committed(f"{name} commits", gone, stray, fault=True)
            elif allowed or not self.compares:
                begun = self._add(gone, stray._replace(open=True))
                yield Step(f"{name} begins a transaction", begun)
            else:
                yield Step(f"{name} is fenced", gone)

    def _surroundings(self, state: State) -> Iterator[Step]:
        """The arbiter, the target and the operator."""
        held = state.leader_lock
        if held is not None and not held.own:
            after = state._replace(leader_lock=None)
            yield Step("the session of the process before expires", after, reliable=True)
        if held is not None and self.operator:
            yield Step("the operator deposes the leader", state._replace(leader_lock=None))
        for wanted in ("START", "PAUSE", "STOP"):
            if wanted != state.wanted and self.operator:
                after = state._replace(wanted=wanted)
                yield Step(f"the operator says {wanted}", after, reliable=wanted == "START")
        if is_locked(state):
            after = self._killed(state, math.inf)
            yield Step("the target restarts", after)
        if self.rebuilds and not state.rebuilt and state.fence:
            after = state._replace(leader_lock=None, rebuilt=True, low=state.fence - 1)
            yield Step("the arbiter is set up again", after)
        elif state.rebuilt and self.renumbers:
            after = state._replace(rebuilt=False)
            if held is not None:
                after = self._numbered(after, held)
            yield Step("the operator raises the epochs", after, reliable=True)

    def key(self, state: State) -> Hashable:
        """What tells a state from others, see `tests.unit.protocol.state.key`."""
        return key(state, refuses=self.compares and self.fences_checkpoint)

    def _add(self, state: State, stray: Stray) -> State:
        if self._is_refused(state, stray):
            return state
        return state._replace(strays=(*state.strays, stray))

    def _is_refused(self, state: State, stray: Stray) -> bool:
        """Whether it can do nothing any more: the fence has passed its epoch."""
        protected = self.compares and self.fences_checkpoint
        return protected and not stray.open and stray.epoch < state.fence

    def _has_room(self, state: State) -> bool:
        return len(state.strays) < self.max_strays


def first(nodes: int, others: int = 0) -> State:
    """Everything is started, nothing has happened yet.

    Args:
        nodes: how many serve the pipeline.
        others: how many further ones serve other kinds of pipelines.
    """
    return State((Node(),) * nodes + (Node(serves=False),) * others)
