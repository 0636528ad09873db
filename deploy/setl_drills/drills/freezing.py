"""The active node stops without dying: SIGSTOP, and SIGCONT later (Patroni's frozen_patroni).

The frozen node believes that it leads when it goes on. Its session is over by then, and another
node leads: nothing it still does may reach the target.
"""

from __future__ import annotations

import time

from setl_drills.connections import connections
from setl_drills.drill import Drill, DrillResult
from setl_drills.drill_run import DrillRun, Fault
from setl_drills.setting import FENCE_TIMEOUT
from setl_drills.waiting import wait_for
from setl_drills.world import World

_WARM_AGAIN = 15.0


def freeze_active(world: World, seed: int) -> DrillResult:
    """Freeze the leader past its session, and let it go on while another leads."""
    with DrillRun(world, "freeze-active", seed, calm=True) as run:
        draw = run.random
        if draw.random() < 0.5:
            run.writers["a"].large(draw.randint(3_000, 8_000))
        run.play(draw.uniform(1.0, 2.5))
        leader = run.leader()
        struck = run.led_by(leader)
        fault = run.fault(f"SIGSTOP to all of {leader.nid}", leader.freeze, struck)
        run.expect_takeover(fault, run.takeover_bound)
        run.expect_history(fault)
        run.play(draw.uniform(0.0, 2.0))
        run.say(f"SIGCONT to {leader.nid}")
        leader.thaw()
        _expect_quiet(run, fault)
        return run.finish()


def freeze_in_transaction(world: World, seed: int) -> DrillResult:
    """Freeze the leader while a load transaction of it is open and holds the fence's lock."""
    with DrillRun(world, "freeze-in-transaction", seed, calm=True) as run:
        draw = run.random
        run.play(draw.uniform(0.5, 1.5))
        leader = run.leader()
        struck = run.led_by(leader)
        leader.arm("task.before_commit", "hang 60")
        wait_for("a load transaction to hang", leader.taken("task.before_commit").exists, 20)
        open_writers = _writers(run)
        fault = run.fault(
            f"SIGSTOP to all of {leader.nid}, with a load transaction open", leader.freeze, struck
        )
        # Its connection is killed only after it has had its time.
        run.expect_takeover(fault, run.takeover_bound + FENCE_TIMEOUT)
        run.expect_history(fault)
        left = _alive(run, open_writers)
        run.say(f"SIGCONT to {leader.nid}")
        leader.thaw()
        _expect_quiet(run, fault)
        run.result.evidence["connections"] = {
            "recorded": [f"{site}: {ident}" for site, ident in open_writers],
            "alive after the take-over": [f"{site}: {ident}" for site, ident in left],
        }
        run.require(
            len(left) < len(open_writers), "the frozen transaction's connection was not ended"
        )
        return run.finish()


def _writers(run: DrillRun) -> list[tuple[str, int]]:
    """The recorded connections of this channel's pipelines that live: site and id."""
    found: list[tuple[str, int]] = []
    for name, site in run.world.sites.items():
        with site.connect() as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT conn_id FROM retl.setl_writer WHERE pipeline LIKE %s",
                (f"{run.channel}/%",),
            )
            recorded = [int(row[0]) for row in cursor.fetchall()]
        present = connections(site)
        found += [(name, ident) for ident in recorded if ident in present]
    return found


def _alive(run: DrillRun, writers: list[tuple[str, int]]) -> list[tuple[str, int]]:
    now = {name: connections(site) for name, site in run.world.sites.items()}
    return [(name, ident) for name, ident in writers if ident in now[name]]


def _expect_quiet(run: DrillRun, fault: Fault) -> None:
    """Watch the former leader come back: it must notice, and write nothing."""
    thawed = time.time()
    nodes = run.world.nodes.values()
    wait_for(
        "the thawed node to be a standby", lambda: all(n.warm() for n in nodes), _WARM_AGAIN * 2
    )
    run.play(1.0)
    for key in fault.struck:
        if key in run.marks.advances:
            stale = [a for a in run.marks.since(key, thawed) if a.epoch <= fault.epochs[key]]
            run.require(not stale, f"{key}: {len(stale)} loads of the old epoch after SIGCONT")


DRILLS = (
    Drill(
        "freeze-active",
        "SIGSTOP past the session timeout, then SIGCONT; the thawed node writes nothing",
        "the moments, and whether a large transaction is under way",
        freeze_active,
    ),
    Drill(
        "freeze-in-transaction",
        "SIGSTOP with a load transaction open; the standby ends its connection and takes over",
        "the moment",
        freeze_in_transaction,
    ),
)
