"""Networks fail in parts: one link, one way, for a while (Jepsen's partitions, TiCDC's)."""

from __future__ import annotations

import time

from setl_drills.drill import Drill, DrillResult
from setl_drills.node import ZOOKEEPER
from setl_drills.proxy import Direction
from setl_drills.rehearsal import Rehearsal
from setl_drills.setting import FENCE_TIMEOUT
from setl_drills.world import World


def cut_zookeeper(world: World, seed: int) -> DrillResult:
    """Cut the leader off from ZooKeeper only: it could still write, and must not."""
    with Rehearsal(world, "cut-zookeeper", seed, calm=True) as rehearsal:
        rehearsal.play(rehearsal.random.uniform(0.5, 2.0))
        leader = rehearsal.leader()
        struck = rehearsal.led_by(leader)
        fault = rehearsal.fault(
            f"{leader.nid} no longer reaches ZooKeeper", lambda: leader.cut(ZOOKEEPER), struck
        )
        rehearsal.expect_takeover(fault, rehearsal.takeover_bound)
        rehearsal.play(1.0)
        leader.heal()
        rehearsal.play(2.0)
        return rehearsal.finish()


def cut_target(world: World, seed: int) -> DrillResult:
    """Cut the leader off from both databases only: it stays the leader, and goes on later."""
    with Rehearsal(world, "cut-target", seed) as rehearsal:
        draw = rehearsal.random
        rehearsal.play(draw.uniform(0.5, 2.0))
        leader = rehearsal.leader()
        struck = [key for key in rehearsal.led_by(leader) if key in rehearsal.marks.advances]
        fault = rehearsal.fault(
            f"{leader.nid} no longer reaches the databases", lambda: leader.cut("a", "b"), struck
        )
        rehearsal.play(world.session_timeout + draw.uniform(0.0, 2.0))
        rehearsal.say("the links heal")
        leader.heal()
        rehearsal.expect_resumption(fault, time.time())
        return rehearsal.finish()


def cut_both(world: World, seed: int) -> DrillResult:
    """Cut the leader off from everything, as if its machine were unplugged; plug it in later."""
    with Rehearsal(world, "cut-both", seed, calm=True) as rehearsal:
        draw = rehearsal.random
        if draw.random() < 0.5:
            rehearsal.writers["a"].large(draw.randint(3_000, 8_000))
        rehearsal.play(draw.uniform(0.5, 1.5))
        leader = rehearsal.leader()
        struck = rehearsal.led_by(leader)
        fault = rehearsal.fault(
            f"{leader.nid} no longer reaches anything",
            lambda: leader.cut(ZOOKEEPER, "a", "b"),
            struck,
        )
        # A transaction of it may be open in the target, which nobody there knows to be dead.
        rehearsal.expect_takeover(fault, rehearsal.takeover_bound + FENCE_TIMEOUT)
        rehearsal.play(draw.uniform(0.0, 1.0))
        rehearsal.say("the links heal; what the old leader had sent arrives now")
        leader.heal()
        rehearsal.play(2.0)
        return rehearsal.finish()


def cut_one_way(world: World, seed: int) -> DrillResult:
    """Cut one direction of the leader's way to ZooKeeper, or of that to its target."""
    with Rehearsal(world, "cut-one-way", seed) as rehearsal:
        draw = rehearsal.random
        rehearsal.play(draw.uniform(0.5, 1.5))
        leader = rehearsal.leader()
        names = (ZOOKEEPER,) if draw.random() < 0.5 else ("a", "b")
        way = draw.choice((Direction.TO_SERVER, Direction.TO_CLIENT))
        struck = [key for key in rehearsal.led_by(leader) if key in rehearsal.marks.advances]
        servers = "ZooKeeper" if names == (ZOOKEEPER,) else "the databases"
        fault = rehearsal.fault(
            f"from {leader.nid}, nothing passes {way.value} {servers}",
            lambda: leader.cut(*names, direction=way),
            struck,
        )
        rehearsal.play(world.session_timeout + draw.uniform(1.0, 3.0))
        if names == (ZOOKEEPER,):
            # Whoever still hears it may keep its session; what counts is that it stopped.
            late = [
                a
                for key in struck
                for a in rehearsal.marks.since(key, fault.at + world.session_timeout)
                if a.epoch <= fault.epochs[key]
            ]
            rehearsal.require(not late, f"{len(late)} loads by a leader that ZooKeeper cannot hear")
        rehearsal.say("the links heal")
        leader.heal()
        rehearsal.expect_resumption(fault, time.time())
        rehearsal.play(1.0)
        return rehearsal.finish()


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
