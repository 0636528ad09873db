"""A crash at every named point between election and acknowledgement (`setl.failpoints`).

Each point leaves a different state behind: rows written and not committed, committed and not
checkpointed, one task of two committed. From each, the next leader must end in the same state.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from setl import failpoints
from setl_drills.drill import Drill, DrillResult
from setl_drills.node import Node
from setl_drills.rehearsal import Rehearsal
from setl_drills.waiting import wait_for
from setl_drills.world import Needs, World

_STRIKE_LIMIT = 30.0
_TAKING = ("take.before_fence", "take.after_fence")
TWO_TASKS = 6_000
"""Rows of a transaction that one load deals out to two tasks."""


def crash_at(point: str, world: World, seed: int) -> DrillResult:
    """Kill the node that passes a point, from inside, at the very instruction."""
    search = seed % 2 == 0
    with Rehearsal(world, f"crash-at-{point}", seed, search=search) as rehearsal:
        rehearsal.play(rehearsal.random.uniform(0.3, 1.5))
        leader = rehearsal.leader()
        crash(rehearsal, leader, point)
        return rehearsal.finish()


def crash(rehearsal: Rehearsal, leader: Node, point: str) -> None:
    """Have a leader, or who takes over from it, die at a point, and wait for the next one."""
    if point in _TAKING:
        _crash_while_taking(rehearsal, leader, point)
    else:
        _crash_while_leading(rehearsal, leader, point)


def _crash_while_leading(rehearsal: Rehearsal, leader: Node, point: str) -> None:
    struck = rehearsal.led_by(leader)
    before = leader.processes()

    def strike() -> None:
        _arm(rehearsal, leader, point, "kill node")
        wait_for(f"{leader.nid} to die at {point}", lambda: not leader.running, _STRIKE_LIMIT)

    fault = rehearsal.fault(f"{leader.nid} is to die at {point}", strike, struck)
    fault.at = time.time()  # it has died a moment ago, and not when it was armed
    rehearsal.expect_takeover(fault, None)
    leader.wait_gone(before)
    rehearsal.world.restart_dead()


def _arm(rehearsal: Rehearsal, leader: Node, point: str, action: str) -> None:
    """Arm a point; one in a task is to be passed by a load of two tasks, with nothing before it.

    So one task is struck between its statements or after its commit, and the other one may
    commit or not.
    """
    if not point.startswith("task."):
        leader.arm(point, action)
        return
    rehearsal.pause_users()
    leader.arm(point, action)
    rehearsal.writers["a"].large(TWO_TASKS).join(_STRIKE_LIMIT)
    rehearsal.resume_users()


def _crash_while_taking(rehearsal: Rehearsal, leader: Node, point: str) -> None:
    """The leader dies, then whoever takes over dies while it does; the next one must do it."""
    others = rehearsal.world.others(leader)
    struck = rehearsal.led_by(leader)
    for node in others:
        node.arm(point, "kill node")
    fault = rehearsal.fault(
        f"SIGKILL to {leader.nid}; whoever follows is to die at {point}", leader.kill, struck
    )
    wait_for(
        f"a node to die at {point}",
        lambda: not all(node.running for node in others),
        _STRIKE_LIMIT,
    )
    for node in others:
        node.disarm()
    rehearsal.world.restart_dead()
    rehearsal.expect_takeover(fault, None)


def worker_crash_at(point: str, world: World, seed: int) -> DrillResult:
    """Kill one Python worker at a point in a task; the node lives and must repeat the load."""
    with Rehearsal(world, f"worker-crash-at-{point}", seed) as rehearsal:
        rehearsal.play(rehearsal.random.uniform(0.3, 1.5))
        leader = rehearsal.leader()

        def strike() -> None:
            _arm(rehearsal, leader, point, "kill")
            taken = leader.taken(point)
            wait_for(f"a worker to die at {point}", taken.exists, _STRIKE_LIMIT)

        struck = [k for k in rehearsal.led_by(leader) if k in rehearsal.marks.advances]
        fault = rehearsal.fault(f"a worker of {leader.nid} is to die at {point}", strike, struck)
        fault.at = time.time()
        rehearsal.expect_resumption(fault, fault.at)
        rehearsal.require(leader.running, f"{leader.nid} died with its worker")
        return rehearsal.finish()


def _drill(prefix: str, point: str, act: Callable[[str, World, int], DrillResult]) -> Drill:
    who = "the node" if prefix == "crash-at" else "one worker"
    return Drill(
        f"{prefix}-{point}",
        f"{who} dies at this point: {failpoints.POINTS[point]}",
        "the moment; even seeds with a search index",
        partial(act, point),
        Needs(search=prefix == "crash-at"),
    )


DRILLS = (
    *(
        _drill("crash-at", point, crash_at)
        for point in failpoints.POINTS
        if not point.startswith(("relay.", "ddl."))
    ),
    *(
        _drill("worker-crash-at", point, worker_crash_at)
        for point in failpoints.POINTS
        if point.startswith("task.")
    ),
)
