"""Both sites write rows of their own while leaders come and go (TiCDC's bdr_mode)."""

from __future__ import annotations

from setl_drills.drill import Drill, DrillResult
from setl_drills.drill_run import DrillRun
from setl_drills.world import World


def two_way_failover(world: World, seed: int) -> DrillResult:
    """Large transactions on both sites, then a failover of each direction's leader in turn.

    Beside them, site A has the heartbeats, the checksums and the online schema change of a managed
    server.
    """
    with (
        DrillRun(world, "two-way-failover", seed, pace=25.0, calm=True) as run,
        run.other_tools() as tools,
    ):
        draw = run.random
        # The second time the first node may still be starting, which takes time from the others.
        bounds = (run.takeover_bound, None)
        for site, pipeline, bound in zip("ab", ("ab", "ba"), bounds, strict=True):
            run.writers["a"].large(draw.randint(3_000, 9_000))
            run.writers["b"].large(draw.randint(3_000, 9_000)).join(30)
            run.play(draw.uniform(0.0, 1.0))
            leader = run.leader(pipeline)
            struck = run.led_by(leader)
            fault = run.fault(
                f"SIGKILL to {leader.nid}, which leads what site {site} writes", leader.kill, struck
            )
            run.expect_takeover(fault, bound)
            world.restart_dead()
            if pipeline == "ab":
                world.repair(all_warm=False)  # a standby is needed once more
                run.pause_users()
                tools.change_online("entries")
                run.resume_users()
        tools.checksum()
        return run.finish()


DRILLS = (
    Drill(
        "two-way-failover",
        "large transactions on both sites and two failovers; nothing echoes, both sites are equal",
        "the sizes and the moments",
        two_way_failover,
    ),
)
