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
from setl_drills.drill_run import DrillRun
from setl_drills.node import Node
from setl_drills.waiting import wait_for
from setl_drills.world import Needs, World

_STRIKE_LIMIT = 30.0
_TAKING = ("take.before_fence", "take.after_fence")
TWO_TASKS = 6_000
"""Rows of a transaction that one load distributes to two tasks."""


def crash_at(point: str, world: World, seed: int) -> DrillResult:
    """Kill the node that passes a point, from inside, at the very instruction."""
    search = seed % 2 == 0
    with DrillRun(world, f"crash-at-{point}", seed, search=search) as run:
        run.play(run.random.uniform(0.3, 1.5))
        leader = run.leader()
        crash(run, leader, point)
        return run.finish()


def crash(run: DrillRun, leader: Node, point: str) -> None:
    """Have a leader, or who takes over from it, die at a point, and wait for the next one."""
    if point in _TAKING:
        _crash_while_taking(run, leader, point)
    else:
        _crash_while_leading(run, leader, point)


def _crash_while_leading(run: DrillRun, leader: Node, point: str) -> None:
    struck = run.led_by(leader)
    before = leader.processes()

    def strike() -> None:
        _arm(run, leader, point, "kill node")
        wait_for(f"{leader.nid} to die at {point}", lambda: not leader.running, _STRIKE_LIMIT)

    fault = run.fault(f"{leader.nid} is to die at {point}", strike, struck)
    fault.at = time.time()  # it has died a moment ago, and not when it was armed
    run.expect_takeover(fault, None)
    leader.wait_gone(before)
    run.world.restart_dead()


def _arm(run: DrillRun, leader: Node, point: str, action: str) -> None:
    """Arm a point; one in a task is to be passed by a load of two tasks, with nothing before it.

    So one task is struck between its statements or after its commit, and the other one may
    commit or not.
    """
    if not point.startswith("task."):
        leader.arm(point, action)
        return
    run.pause_users()
    leader.arm(point, action)
    run.writers["a"].large(TWO_TASKS).join(_STRIKE_LIMIT)
    run.resume_users()


def _crash_while_taking(run: DrillRun, leader: Node, point: str) -> None:
    """The leader dies, then whoever takes over dies while it does; the next one must do it."""
    others = run.world.others(leader)
    struck = run.led_by(leader)
    for node in others:
        node.arm(point, "kill node")
    fault = run.fault(
        f"SIGKILL to {leader.nid}; whoever follows is to die at {point}", leader.kill, struck
    )
    wait_for(
        f"a node to die at {point}",
        lambda: not all(node.running for node in others),
        _STRIKE_LIMIT,
    )
    for node in others:
        node.disarm()
    run.world.restart_dead()
    run.expect_takeover(fault, None)


def worker_crash_at(point: str, world: World, seed: int) -> DrillResult:
    """Kill one Python worker at a point in a task; the node lives and must repeat the load."""
    with DrillRun(world, f"worker-crash-at-{point}", seed) as run:
        run.play(run.random.uniform(0.3, 1.5))
        leader = run.leader()

        def strike() -> None:
            _arm(run, leader, point, "kill")
            taken = leader.taken(point)
            wait_for(f"a worker to die at {point}", taken.exists, _STRIKE_LIMIT)

        struck = [k for k in run.led_by(leader) if k in run.marks.advances]
        fault = run.fault(f"a worker of {leader.nid} is to die at {point}", strike, struck)
        fault.at = time.time()
        run.expect_resumption(fault, fault.at)
        run.require(leader.running, f"{leader.nid} died with its worker")
        return run.finish()


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
        if not point.startswith(("relay.", "ddl.", "tables.", "create."))
    ),
    *(
        _drill("worker-crash-at", point, worker_crash_at)
        for point in failpoints.POINTS
        if point.startswith("task.")
    ),
)
