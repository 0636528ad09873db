"""Every part of the machine dies in turn while changes stream (Flink CDC's type and phase matrix).

Select and the driver are one process here, the executor is Spark's JVM, and Load runs in its
Python workers. First load does not exist yet, so there is one phase: stream.
"""

from __future__ import annotations

import os
import signal
from functools import partial

from setl_drills.connections import connections
from setl_drills.drill import Drill, DrillResult
from setl_drills.drill_run import DrillRun
from setl_drills.processes import Role, send
from setl_drills.waiting import wait_for
from setl_drills.world import World

_ENDED_LIMIT = 30.0


def select_dies(world: World, seed: int) -> DrillResult:
    """The source ends the connection over which the leader reads its binlog, again and again."""
    with DrillRun(world, "matrix-stream-select", seed) as run:
        draw = run.random
        run.play(draw.uniform(0.5, 1.5))
        leader = run.leader()
        struck = [k for k in run.led_by(leader) if k in run.marks.advances]
        for _ in range(draw.randint(2, 4)):
            fault = run.fault(
                "the sources end all binlog connections", partial(_end_dumps, world), struck
            )
            run.expect_resumption(fault, fault.at)
            run.play(draw.uniform(0.2, 1.0))
        return run.finish()


def _end_dumps(world: World) -> None:
    ended = 0
    for site in world.sites.values():
        dumps = [ident for ident, does in connections(site).items() if does == "Binlog Dump"]
        with site.connect() as connection, connection.cursor() as cursor:
            for ident in dumps:
                cursor.execute(f"KILL {ident}")
                ended += 1
    if not ended:
        raise RuntimeError("nobody reads a binlog, so there is nothing to end")


def driver_dies(world: World, seed: int) -> DrillResult:
    """The driver dies inside a load that Spark has begun."""
    with DrillRun(world, "matrix-stream-driver", seed) as run:
        leader = run.leader()
        before, struck = leader.processes(), run.led_by(leader)

        def strike() -> None:
            # The task says when: the driver itself only waits for Spark then.
            leader.arm("task.before_load", "kill node")
            wait_for(f"{leader.nid} to die", lambda: not leader.running, _ENDED_LIMIT)

        fault = run.fault(f"the driver of {leader.nid} is to die in a load", strike, struck)
        run.expect_takeover(fault, None)
        leader.wait_gone(before)
        world.restart_dead()
        return run.finish()


def executor_dies(world: World, seed: int) -> DrillResult:
    """The JVM dies under the driver: the node cannot load any more, so another must."""
    with DrillRun(world, "matrix-stream-executor", seed) as run:
        run.play(run.random.uniform(0.5, 1.5))
        leader = run.leader()
        struck = run.led_by(leader)
        (jvm,) = leader.processes(Role.JVM)
        fault = run.fault(
            f"SIGKILL to the JVM of {leader.nid}",
            lambda: os.kill(jvm.pid, signal.SIGKILL),
            struck,
        )
        run.expect_resumption(fault, fault.at)
        world.restart_dead()
        return run.finish()


def load_dies(world: World, seed: int) -> DrillResult:
    """All Python workers of the leader die at a seeded moment; Spark starts others."""
    with DrillRun(world, "matrix-stream-load", seed) as run:
        draw = run.random
        run.writers["a"].large(draw.randint(4_000, 8_000))
        run.play(draw.uniform(0.5, 1.5))
        leader = run.leader()
        struck = [k for k in run.led_by(leader) if k in run.marks.advances]
        workers = leader.processes(Role.WORKER)
        run.require(workers, f"{leader.nid} has no Python workers")
        fault = run.fault(
            f"SIGKILL to {len(workers)} Python workers of {leader.nid}",
            lambda: send(workers, signal.SIGKILL),
            struck,
        )
        run.expect_resumption(fault, fault.at)
        run.require(leader.running, f"{leader.nid} died with its workers")
        return run.finish()


DRILLS = (
    Drill(
        "matrix-stream-select",
        "stream, select: binlog connections are ended (first load does not exist yet)",
        "how often and when",
        select_dies,
    ),
    Drill(
        "matrix-stream-driver",
        "stream, driver: it dies inside a load (first load does not exist yet)",
        "the users' transactions",
        driver_dies,
    ),
    Drill(
        "matrix-stream-executor",
        "stream, executor: the JVM dies under the driver (first load does not exist yet)",
        "the moment",
        executor_dies,
    ),
    Drill(
        "matrix-stream-load",
        "stream, load: all Python workers die (first load does not exist yet)",
        "the moment",
        load_dies,
    ),
)
