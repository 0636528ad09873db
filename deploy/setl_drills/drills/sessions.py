"""The arbiter goes away: one node's session expires, or the whole quorum stops.

The first is TiCDC's capture_local_fence_on_session_done, the second Patroni's start_outage.
"""

from __future__ import annotations

import time

from setl_drills.connections import open_transactions
from setl_drills.drill import Drill, DrillResult
from setl_drills.drill_run import DrillRun
from setl_drills.node import ZOOKEEPER
from setl_drills.setting import FENCE_TIMEOUT
from setl_drills.waiting import wait_for
from setl_drills.world import Needs, World

_STOP_LIMIT = 1.5
"""Seconds from LOST within which the write path must have stopped."""


def expire_session(world: World, seed: int) -> DrillResult:
    """Let the leader's session expire while its sink hangs in an open transaction."""
    with DrillRun(world, "expire-session", seed, calm=True) as run:
        draw = run.random
        run.play(draw.uniform(0.5, 2.0))
        leader = run.leader()
        struck = run.led_by(leader)
        leader.arm("task.before_commit", "hang 60")
        wait_for("a load transaction to hang", leader.taken("task.before_commit").exists, 20)
        fault = run.fault(
            f"{leader.nid} no longer reaches ZooKeeper while its sink hangs",
            lambda: leader.cut(ZOOKEEPER),
            struck,
        )
        wait_for(
            f"{leader.nid} to notice",
            lambda: _stopped_at(run.log_of(leader)),
            2 * world.session_timeout,
        )
        noticed = time.time()
        wait_for(
            "its hanging transaction to end",
            lambda: not _open_transactions(run, fault.epochs),
            20,
            # InnoDB renews its list of transactions only when nobody has read it for 0.1 s.
            interval=0.2,
        )
        stopped = time.time() - noticed
        run.say(f"the write path stopped {stopped:.2f} s after the session was given up")
        run.result.evidence["write path stopped after"] = stopped
        run.require(
            stopped <= _STOP_LIMIT,
            f"the write path stopped only {stopped:.2f} s after LOST, limit {_STOP_LIMIT} s",
        )
        run.expect_takeover(fault, run.takeover_bound + FENCE_TIMEOUT)
        leader.heal()
        run.play(1.0)
        return run.finish()


def _stopped_at(log: str) -> bool:
    return any("contact=lost" in line for line in log.splitlines())


def _open_transactions(run: DrillRun, epochs: dict[str, int]) -> list[int]:
    """Recorded connections of the old epochs that have a transaction open, or still run."""
    found: list[int] = []
    for site in run.world.sites.values():
        with site.connect() as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT conn_id FROM retl.setl_writer WHERE pipeline LIKE %s AND epoch <= %s",
                (f"{run.channel}/%", max(epochs.values())),
            )
            recorded = {int(row[0]) for row in cursor.fetchall()}
        found += sorted(recorded & open_transactions(site))
    return found


def quorum_lost(world: World, seed: int) -> DrillResult:
    """Stop the ZooKeeper quorum, and bring it back: nobody writes meanwhile, all resume alone."""
    with DrillRun(world, "quorum-lost", seed) as run:
        draw = run.random
        run.play(draw.uniform(0.5, 2.0))
        # With its leader. A leader that is left alone serves its sessions until it notices, which
        # takes longer than this lasts, and as long as it does nobody else can lead anything.
        everyone = sorted(world.zookeeper_members(), key=lambda m: m.mode != "leader")
        members = [everyone[0], *draw.sample(everyone[1:], draw.randint(1, 2))]
        struck = [run.key("ab"), run.key("ba")]

        def stop() -> None:
            for member in members:
                member.pause()

        fault = run.fault(f"SIGSTOP to {len(members)} of three ZooKeeper servers", stop, struck)
        deadline = fault.at + world.session_timeout
        run.play(world.session_timeout + draw.uniform(1.0, 4.0))
        for key in struck:
            late = run.marks.since(key, deadline)
            run.require(not late, f"{key}: {len(late)} loads after the session could have expired")
        run.say("the quorum is back")
        for member in members:
            member.resume()
        run.expect_resumption(fault, time.time(), world.session_timeout + 6.0)
        return run.finish()


DRILLS = (
    Drill(
        "expire-session",
        "a session expires while a sink hangs; the write path stops within about a second of LOST",
        "the moment",
        expire_session,
    ),
    Drill(
        "quorum-lost",
        "most ZooKeeper servers stop and come back; nobody writes meanwhile, all resume alone",
        "how many, which, and for how long",
        quorum_lost,
        Needs(quorum=True),
    ),
)
