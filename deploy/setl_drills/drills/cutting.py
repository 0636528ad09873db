"""Networks fail in parts: one link, one way, for a while (Jepsen's partitions, TiCDC's)."""

from __future__ import annotations

import time

from setl_drills.drill import Drill, DrillResult
from setl_drills.drill_run import DrillRun
from setl_drills.node import ZOOKEEPER
from setl_drills.proxy import Direction
from setl_drills.setting import FENCE_TIMEOUT
from setl_drills.world import World


def cut_zookeeper(world: World, seed: int) -> DrillResult:
    """Cut the leader off from ZooKeeper only: it could still write, and must not."""
    with DrillRun(world, "cut-zookeeper", seed, calm=True) as run:
        run.play(run.random.uniform(0.5, 2.0))
        leader = run.leader()
        struck = run.led_by(leader)
        fault = run.fault(
            f"{leader.nid} no longer reaches ZooKeeper", lambda: leader.cut(ZOOKEEPER), struck
        )
        run.expect_takeover(fault, run.takeover_bound)
        run.play(1.0)
        leader.heal()
        run.play(2.0)
        return run.finish()


def cut_target(world: World, seed: int) -> DrillResult:
    """Cut the leader off from both databases only: it stays the leader, and goes on later."""
    with DrillRun(world, "cut-target", seed) as run:
        draw = run.random
        run.play(draw.uniform(0.5, 2.0))
        leader = run.leader()
        struck = [key for key in run.led_by(leader) if key in run.marks.advances]
        fault = run.fault(
            f"{leader.nid} no longer reaches the databases", lambda: leader.cut("a", "b"), struck
        )
        run.play(world.session_timeout + draw.uniform(0.0, 2.0))
        run.say("the links heal")
        leader.heal()
        run.expect_resumption(fault, time.time())
        return run.finish()


def cut_both(world: World, seed: int) -> DrillResult:
    """Cut the leader off from everything, as if its machine were unplugged; plug it in later."""
    with DrillRun(world, "cut-both", seed, calm=True) as run:
        draw = run.random
        if draw.random() < 0.5:
            run.writers["a"].large(draw.randint(3_000, 8_000))
        run.play(draw.uniform(0.5, 1.5))
        leader = run.leader()
        struck = run.led_by(leader)
        fault = run.fault(
            f"{leader.nid} no longer reaches anything",
            lambda: leader.cut(ZOOKEEPER, "a", "b"),
            struck,
        )
        # A transaction of it may be open in the target, which nobody there knows to be dead.
        run.expect_takeover(fault, run.takeover_bound + FENCE_TIMEOUT)
        run.play(draw.uniform(0.0, 1.0))
        run.say("the links heal; what the old leader had sent arrives now")
        leader.heal()
        run.play(2.0)
        return run.finish()


def cut_one_way(world: World, seed: int) -> DrillResult:
    """Cut one direction of the leader's way to ZooKeeper, or of that to its target."""
    with DrillRun(world, "cut-one-way", seed) as run:
        draw = run.random
        run.play(draw.uniform(0.5, 1.5))
        leader = run.leader()
        names = (ZOOKEEPER,) if draw.random() < 0.5 else ("a", "b")
        way = draw.choice((Direction.TO_SERVER, Direction.TO_CLIENT))
        struck = [key for key in run.led_by(leader) if key in run.marks.advances]
        servers = "ZooKeeper" if names == (ZOOKEEPER,) else "the databases"
        fault = run.fault(
            f"from {leader.nid}, nothing passes {way.value} {servers}",
            lambda: leader.cut(*names, direction=way),
            struck,
        )
        run.play(world.session_timeout + draw.uniform(1.0, 3.0))
        if names == (ZOOKEEPER,):
            # Whoever still hears it may keep its session; what counts is that it stopped.
            late = [
                a
                for key in struck
                for a in run.marks.since(key, fault.at + world.session_timeout)
                if a.epoch <= fault.epochs[key]
            ]
            run.require(not late, f"{len(late)} loads by a leader that ZooKeeper cannot hear")
        run.say("the links heal")
        leader.heal()
        run.expect_resumption(fault, time.time())
        run.play(1.0)
        return run.finish()


DRILLS = (
    Drill(
        "cut-zookeeper",
        "the leader loses ZooKeeper but not its databases; it stops, the standby takes over",
        "the moment",
        cut_zookeeper,
    ),
    Drill(
        "cut-target",
        "the leader loses its databases but not ZooKeeper; it goes on when they are back",
        "the moment and for how long",
        cut_target,
    ),
    Drill(
        "cut-both",
        "the leader loses everything; what it had sent arrives after the standby took over",
        "the moments, and whether a large transaction is under way",
        cut_both,
    ),
    Drill(
        "cut-one-way",
        "bytes pass in one direction only, to or from ZooKeeper or the databases",
        "which servers, which direction, for how long",
        cut_one_way,
    ),
)
