"""Leaders change because an operator says so, at once or at a time; and pauses are respected.

Models: patronictl's switchover, and Patroni's pause in which nobody fails over.
"""

from __future__ import annotations

import json
import time
from typing import Any

from setl_drills.drill import Drill, DrillResult
from setl_drills.rehearsal import Rehearsal
from setl_drills.waiting import wait_for
from setl_drills.world import World

_SWITCH_LIMIT = 60.0
_EARLY = 0.5  # clocks of command and node are read at different moments


def switchover(world: World, seed: int) -> DrillResult:
    """Hand both directions over by command, under load and with large transactions under way."""
    with Rehearsal(world, "switchover", seed) as rehearsal:
        draw = rehearsal.random
        for pipeline, site in draw.sample([("ab", "a"), ("ba", "b")], 2):
            rehearsal.play(draw.uniform(0.3, 1.0))
            if draw.random() < 0.7:
                rehearsal.writers[site].large(draw.randint(2_000, 6_000))
                rehearsal.play(draw.uniform(0.0, 0.8))
            leader = rehearsal.leader(pipeline)
            follower = draw.choice([n for n in world.others(leader) if n.warm()])
            key = rehearsal.key(pipeline)
            fault = rehearsal.fault(
                f"setl switchover of {pipeline} from {leader.nid} to {follower.nid}",
                lambda key=key, follower=follower: run_command(
                    rehearsal, "switchover", key, "--to", follower.nid, "--yes"
                ),
                [key],
            )
            rehearsal.expect_takeover(fault, None, planned=True)
            now = rehearsal.leader(pipeline)
            rehearsal.require(
                now is follower, f"{now.nid} leads {pipeline} instead of {follower.nid}"
            )
        return _finish_without_redelivery(rehearsal)


def scheduled_switchover(world: World, seed: int) -> DrillResult:
    """Schedule a switchover; it happens at its time and not before, and redelivers nothing."""
    with Rehearsal(world, "scheduled-switchover", seed) as rehearsal:
        delay = rehearsal.random.uniform(3.0, 5.0)
        leader, key = rehearsal.leader(), rehearsal.key("ab")
        due = time.time() + delay
        fault = rehearsal.fault(
            f"setl switchover of ab from {leader.nid}, in {delay:.1f} s",
            lambda: run_command(
                rehearsal, "switchover", key, "--at", f"+{delay:.1f}s", "--yes", "--no-wait"
            ),
            [key],
        )
        wait_for("the switchover", lambda: rehearsal.epoch(key) > fault.epochs[key], _SWITCH_LIMIT)
        switched = time.time()
        rehearsal.require(
            switched >= due - _EARLY, f"it switched {due - switched:.1f} s before its time"
        )
        rehearsal.result.evidence["switched after due"] = switched - due
        fault.at = max(due, fault.at)
        rehearsal.expect_takeover(fault, None, planned=True)
        rehearsal.require(rehearsal.leader() is not leader, f"{leader.nid} leads as before")
        return _finish_without_redelivery(rehearsal)


def _finish_without_redelivery(rehearsal: Rehearsal) -> DrillResult:
    result = rehearsal.finish()
    rehearsal.require(not result.redelivered, f"a switchover redelivered {result.redelivered} rows")
    return result


def crash_while_paused(world: World, seed: int) -> DrillResult:
    """Kill the leader of a paused channel: nobody takes over before `resume`, then a standby."""
    with Rehearsal(world, "crash-while-paused", seed) as rehearsal:
        draw = rehearsal.random
        rehearsal.play(draw.uniform(0.3, 1.0))
        leader = rehearsal.leader()
        struck = rehearsal.led_by(leader)
        run_command(rehearsal, "pause", rehearsal.channel)
        fault = rehearsal.fault(f"SIGKILL to {leader.nid} while paused", leader.kill, struck)
        rehearsal.play(world.session_timeout + draw.uniform(2.0, 3.0))
        for key in struck:
            mainstem = rehearsal.epoch(key)
            rehearsal.require(
                mainstem <= fault.epochs[key], f"{key} was taken over while it was paused"
            )
            late = rehearsal.marks.since(key, fault.at)
            rehearsal.require(not late, f"{key}: {len(late)} loads while it was paused")
        resumed = time.time()
        run_command(rehearsal, "resume", rehearsal.channel)
        fault.at = resumed
        rehearsal.expect_takeover(fault, None)
        world.restart_dead()
        return rehearsal.finish()


def run_command(rehearsal: Rehearsal, *arguments: str) -> Any:
    """Run a setl command; a refusal is a problem of the drill."""
    done = rehearsal.world.cluster.run(*arguments, "-o", "json", check=False)
    rehearsal.result.evidence.setdefault("commands", []).append(
        {"command": arguments, "exit": done.returncode, "output": done.stdout + done.stderr}
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        rehearsal.problem(f"setl {' '.join(arguments)} exited with {done.returncode}: {said}")
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
        "the leader of a paused channel is killed; nobody takes over before resume",
        "the moments",
        crash_while_paused,
    ),
)
