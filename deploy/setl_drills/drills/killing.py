"""The active node dies at once: SIGKILL (Patroni's recovery scenarios, DM's pod-kill)."""

from __future__ import annotations

from setl_drills.drill import Drill, DrillResult
from setl_drills.rehearsal import Rehearsal
from setl_drills.world import Needs, World


def kill_active(world: World, seed: int) -> DrillResult:
    """Kill the leader at a seeded moment, now and then inside a large transaction."""
    with Rehearsal(world, "kill-active", seed, search=True, calm=True) as rehearsal:
        draw = rehearsal.random
        rehearsal.play(draw.uniform(1.0, 3.0))
        if draw.random() < 0.6:
            rows = draw.randint(4_000, 12_000)
            rehearsal.say(f"site a writes a transaction of {rows:,} rows")
            rehearsal.writers["a"].large(rows).join(30)
            rehearsal.play(draw.uniform(0.0, 0.8))
        leader = rehearsal.leader()
        before = leader.processes()
        struck = rehearsal.led_by(leader)
        fault = rehearsal.fault(f"SIGKILL to {leader.nid}", leader.kill, struck)
        rehearsal.expect_takeover(fault, rehearsal.takeover_bound)
        leader.wait_gone(before)
        world.restart_dead()
        rehearsal.play(1.0)
        return rehearsal.finish()


DRILLS = (
    Drill(
        "kill-active",
        "SIGKILL to the active node under load; the standby takes over within I4's bound",
        "the moment, and whether a large transaction is under way",
        kill_active,
        Needs(search=True),
    ),
)
