"""Breadth-first search through all states that a protocol can reach.

A protocol is a first state and a function from a state to its `Step`s. States with the same key
count as one, so each is looked at once, and the first violation found has a shortest trace.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple


class Step(NamedTuple):
    """One action that is possible in a state.

    Attributes:
        label: who does what.
        state: the state afterwards.
        reliable: whether the action will happen if nothing else does: a process that is awake
            goes on, a fault need not happen and what is frozen need not move.
        progress: whether it is what the protocol is there for.
        violation: the property that it breaks, "" if none.
    """

    label: str
    state: Any
    reliable: bool = False
    progress: bool = False
    violation: str = ""


@dataclass(frozen=True, slots=True)
class Exploration:
    """What a search found.

    Attributes:
        states: how many different states were reached.
        steps: how many steps were taken between them.
        violation: the property that some path breaks, "" if none does.
        trace: a shortest path to the violation: each action, and the state after it.
    """

    states: int
    steps: int
    violation: str = ""
    trace: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        found = f"{self.states} states, {self.steps} steps: {self.violation or 'nothing violated'}"
        return "\n".join([found, *(f"  {label:<58} {state}" for label, state in self.trace)])


def explore(
    first: Any,
    steps_of: Callable[[Any], Iterable[Step]],
    *,
    key: Callable[[Any], Hashable] = lambda state: state,
    stuck: str = "",
    limit: int = 2_000_000,
) -> Exploration:
    """Search until a step violates a property, or until every state is known.

    Args:
        first: where it begins.
        steps_of: what can happen in a state.
        key: the same for states that differ in nothing that matters.
        stuck: name of the property that from every state reliable steps alone lead to one that
            makes progress; "" if it is not to be checked.
        limit: states after which the search is given up.

    Raises:
        OverflowError: there are more states than `limit`.
    """
    with _without_garbage_collection():
        return _explore(first, steps_of, key, stuck, limit)


def _explore(
    first: Any,
    steps_of: Callable[[Any], Iterable[Step]],
    key: Callable[[Any], Hashable],
    stuck: str,
    limit: int,
) -> Exploration:
    known: dict[Hashable, int] = {key(first): 0}
    came_from: list[tuple[int, str]] = [(0, "")]
    reliable: list[list[int]] = []  # for each state, those that reach it by a reliable step
    progressing: set[int] = set()
    queue, taken = [first], 0
    for at, state in enumerate(queue):  # the list grows while it is gone through
        for step in steps_of(state):
            taken += 1
            if step.violation:
                trace = (*_trace(queue, came_from, at), (step.label, step.state))
                return Exploration(len(known), taken, step.violation, trace)
            found = known.setdefault(key(step.state), len(queue))
            if found == len(queue):
                queue.append(step.state)
                came_from.append((at, step.label))
                if len(queue) > limit:
                    raise OverflowError(f"more than {limit} states")
            if stuck and step.reliable:
                if step.progress:
                    progressing.add(at)
                while len(reliable) < len(queue):
                    reliable.append([])
                reliable[found].append(at)
    if stuck:
        reliable += [[] for _ in range(len(queue) - len(reliable))]
        dead = _first_unreached(reliable, progressing)
        if dead is not None:
            return Exploration(len(known), taken, stuck, tuple(_trace(queue, came_from, dead)))
    return Exploration(len(known), taken)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    # States are never garbage, and looking through millions of tuples for it takes longer
    # than the search.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _first_unreached(leads_from: Sequence[Sequence[int]], goals: set[int]) -> int | None:
    """The earliest state from which no reliable path leads to a goal; None if all have one."""
    reached, queue = bytearray(len(leads_from)), list(goals)
    for at in queue:
        reached[at] = 1
    for at in queue:
        for before in leads_from[at]:
            if not reached[before]:
                reached[before] = 1
                queue.append(before)
    return next((at for at, found in enumerate(reached) if not found), None)


def _trace(
    queue: Sequence[Any], came_from: Sequence[tuple[int, str]], at: int
) -> Iterator[tuple[str, Any]]:
    path: list[tuple[str, Any]] = []
    while at:
        before, label = came_from[at]
        path.append((label, queue[at]))
        at = before
    return reversed(path)
