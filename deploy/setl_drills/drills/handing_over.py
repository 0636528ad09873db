"""Leaders change because an operator says so, at once or at a time; and pauses are respected.

Models: patronictl's switchover, and Patroni's pause in which nobody fails over.
"""

from __future__ import annotations

import json
import time
from typing import Any

from setl_drills.drill import Drill, DrillResult
from setl_drills.drill_run import DrillRun
from setl_drills.waiting import wait_for
from setl_drills.world import World

_SWITCH_LIMIT = 60.0
_EARLY = 0.5  # clocks of command and node are read at different moments


def switchover(world: World, seed: int) -> DrillResult:
    """Hand both directions over by command, under load and with large transactions under way."""
    with DrillRun(world, "switchover", seed) as run:
        draw = run.random
        for pipeline, site in draw.sample([("ab", "a"), ("ba", "b")], 2):
            run.play(draw.uniform(0.3, 1.0))
            if draw.random() < 0.7:
                run.writers[site].large(draw.randint(2_000, 6_000))
                run.play(draw.uniform(0.0, 0.8))
            leader = run.leader(pipeline)
            follower = draw.choice([n for n in world.others(leader) if n.warm()])
            key = run.key(pipeline)
            fault = run.fault(
                f"setl switchover of {pipeline} from {leader.nid} to {follower.nid}",
                lambda key=key, follower=follower: run_command(
                    run, "switchover", key, "--to", follower.nid, "--yes"
                ),
                [key],
            )
            run.expect_takeover(fault, None, planned=True)
            now = run.leader(pipeline)
            run.require(now is follower, f"{now.nid} leads {pipeline} instead of {follower.nid}")
        return _finish_without_redelivery(run)


def scheduled_switchover(world: World, seed: int) -> DrillResult:
    """Schedule a switchover; it happens at its time and not before, and redelivers nothing."""
    with DrillRun(world, "scheduled-switchover", seed) as run:
        delay = run.random.uniform(3.0, 5.0)
        leader, key = run.leader(), run.key("ab")
        due = time.time() + delay
        fault = run.fault(
            f"setl switchover of ab from {leader.nid}, in {delay:.1f} s",
            lambda: run_command(
                run, "switchover", key, "--at", f"+{delay:.1f}s", "--yes", "--no-wait"
            ),
            [key],
        )
        wait_for("the switchover", lambda: run.epoch(key) > fault.epochs[key], _SWITCH_LIMIT)
        switched = time.time()
        run.require(switched >= due - _EARLY, f"it switched {due - switched:.1f} s before its time")
        run.result.evidence["switched after due"] = switched - due
        fault.at = max(due, fault.at)
        run.expect_takeover(fault, None, planned=True)
        run.require(run.leader() is not leader, f"{leader.nid} leads as before")
        return _finish_without_redelivery(run)


def _finish_without_redelivery(run: DrillRun) -> DrillResult:
    result = run.finish()
    run.require(not result.redelivered, f"a switchover redelivered {result.redelivered} rows")
    return result


def crash_while_paused(world: World, seed: int) -> DrillResult:
    """Kill the leader of a paused channel: no node takes over before `resume`, then a standby."""
    with DrillRun(world, "crash-while-paused", seed) as run:
        draw = run.random
        run.play(draw.uniform(0.3, 1.0))
        leader = run.leader()
        struck = run.led_by(leader)
        run_command(run, "pause", run.channel)
        fault = run.fault(f"SIGKILL to {leader.nid} while paused", leader.kill, struck)
        run.play(world.session_timeout + draw.uniform(2.0, 3.0))
        for key in struck:
            leader_lock = run.epoch(key)
            run.require(
                leader_lock <= fault.epochs[key], f"{key} was taken over while it was paused"
            )
            late = run.marks.since(key, fault.at)
            run.require(not late, f"{key}: {len(late)} loads while it was paused")
        resumed = time.time()
        run_command(run, "resume", run.channel)
        fault.at = resumed
        run.expect_takeover(fault, None)
        world.restart_dead()
        return run.finish()


def run_command(run: DrillRun, *arguments: str) -> Any:
    """Run a setl command; a refusal is a problem of the drill."""
    done = run.world.cluster.run(*arguments, "-o", "json", check=False)
    run.result.evidence.setdefault("commands", []).append(
        {"command": arguments, "exit": done.returncode, "output": done.stdout + done.stderr}
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        run.problem(f"setl {' '.join(arguments)} exited with {done.returncode}: {said}")
        return {}
    return json.loads(done.stdout or "{}")


DRILLS = (
    Drill(
        "switchover",
        "both directions are handed over by command under load; nothing is redelivered",
        "the order, the moments, large transactions, and to whom",
        switchover,
    ),
    Drill(
        "scheduled-switchover",
        "a switchover is scheduled; it happens at its time and redelivers nothing",
        "the time",
        scheduled_switchover,
    ),
    Drill(
        "crash-while-paused",
        "the leader of a paused channel is killed; no node takes over before resume",
        "the moments",
        crash_while_paused,
    ),
)
