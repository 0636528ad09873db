"""The active node dies at once: SIGKILL (Patroni's recovery scenarios, DM's pod-kill)."""

from __future__ import annotations

from setl_drills.drill import Drill, DrillResult
from setl_drills.drill_run import DrillRun
from setl_drills.world import Needs, World


def kill_active(world: World, seed: int) -> DrillResult:
    """Kill the leader at a seeded moment, now and then inside a large transaction."""
    with DrillRun(world, "kill-active", seed, search=True, calm=True) as run:
        draw = run.random
        run.play(draw.uniform(1.0, 3.0))
        if draw.random() < 0.6:
            rows = draw.randint(4_000, 12_000)
            run.say(f"site a writes a transaction of {rows:,} rows")
            run.writers["a"].large(rows).join(30)
            run.play(draw.uniform(0.0, 0.8))
        leader = run.leader()
        before = leader.processes()
        struck = run.led_by(leader)
        fault = run.fault(f"SIGKILL to {leader.nid}", leader.kill, struck)
        run.expect_takeover(fault, run.takeover_bound)
        run.expect_history(fault)
        leader.wait_gone(before)
        world.restart_dead()
        run.play(1.0)
        return run.finish()


DRILLS = (
    Drill(
        "kill-active",
        "SIGKILL to the active node under load; the standby takes over within I4's bound",
        "the moment, and whether a large transaction is under way",
        kill_active,
        Needs(search=True),
    ),
)
