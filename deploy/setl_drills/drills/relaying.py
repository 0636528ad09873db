"""Relays die, freeze, and are handed over; the Kafka they write to goes away and comes back."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from setl import failpoints
from setl_drills.drill import Drill, DrillResult
from setl_drills.drill_run import TAKEOVER_ALLOWANCE, Fault
from setl_drills.drills.crashing import crash
from setl_drills.drills.handing_over import run_command
from setl_drills.node import ZOOKEEPER
from setl_drills.relaying import NEEDS, RelayDrillRun
from setl_drills.waiting import wait_for
from setl_drills.world import World

_LINGER = 0.5
"""Seconds that a relay's client holds records back in `freeze_relay`."""
_HANG_LIMIT = 20.0
_STANDBY_LIMIT = 30.0
_POINTS = (
    "take.before_fence",
    "take.after_fence",
    "load.before_job",
    "relay.appended",
    "load.after_job",
    "checkpoint.stored",
    "batch.acked",
)


def kill_relay(world: World, seed: int) -> DrillResult:
    """Kill the active relay at a seeded moment, now and then inside a large transaction."""
    with RelayDrillRun(world, "kill-relay", seed) as run:
        draw = run.random
        run.play(draw.uniform(0.5, 2.0))
        _write_large(run)
        leader = run.leader(run.relay("a"))
        struck = run.led_by(leader)
        fault = run.fault(f"SIGKILL to {leader.nid}", leader.kill, struck)
        run.expect_takeover(fault, run.takeover_bound)
        world.restart_dead()
        run.play(0.5)
        return run.finish()


def _write_large(run: RelayDrillRun) -> None:
    draw = run.random
    if draw.random() < 0.6:
        rows = draw.randint(3_000, 6_000)
        run.say(f"site a writes a transaction of {rows:,} rows")
        run.writers["a"].large(rows).join(_HANG_LIMIT)
        run.play(draw.uniform(0.0, 0.3))


def freeze_relay(world: World, seed: int, **target: Any) -> DrillResult:
    """Freeze the active relay with records on their way, and let it go on while another leads.

    Its client holds records back for a while, so that some are still in its queue: it sends them
    when it goes on, before it has learned that it no longer leads.
    """
    target = {"kafka": {"linger.ms": int(_LINGER * 1000)}, **target}
    with RelayDrillRun(world, "freeze-relay", seed, target=target) as run:
        draw = run.random
        run.play(draw.uniform(0.5, 1.5))
        if draw.random() < 0.5:
            run.writers["a"].large(draw.randint(3_000, 5_000)).join(_HANG_LIMIT)
        leader = run.leader(run.relay("a"))
        leader.arm("relay.appended", "hang 1")
        taken = leader.taken("relay.appended")
        wait_for(f"{leader.nid} to have records appended", taken.exists, _HANG_LIMIT, interval=0.01)
        struck = run.led_by(leader)
        fault = run.fault(f"SIGSTOP to {leader.nid}", leader.freeze, struck)
        # The new leader's client holds back a first heartbeat, then its first rows.
        run.expect_takeover(fault, run.takeover_bound + 2 * _LINGER)
        run.say(f"SIGCONT to {leader.nid}")
        leader.thaw()
        wait_for(f"{leader.nid} to be a standby", leader.warm, _STANDBY_LIMIT)
        run.play(1.5)
        return run.finish()


def kill_relay_and_node(world: World, seed: int) -> DrillResult:
    """Kill the active relay and the node that reads its topic at once."""
    with RelayDrillRun(world, "kill-relay-and-node", seed) as run:
        run.play(run.random.uniform(0.5, 2.0))
        leaders = run.leader(run.relay("a")), run.leader("ab")
        struck = [run.led_by(leader) for leader in leaders]

        def kill() -> None:
            for leader in leaders:
                leader.kill()

        names = " and ".join(leader.nid for leader in leaders)
        fault = run.fault(f"SIGKILL to {names}", kill, [*struck[0], *struck[1]])
        bound = run.takeover_bound
        # A node that took over has to wait for what the other relay writes.
        for keys, limit in zip(struck, (bound, bound + TAKEOVER_ALLOWANCE), strict=True):
            run.expect_takeover(Fault(fault.what, fault.at, fault.epochs, keys), limit)
        world.restart_dead()
        return run.finish()


def switchover_relay(world: World, seed: int) -> DrillResult:
    """Hand both relays over by command, under load; no record is written in vain."""
    with RelayDrillRun(world, "switchover-relay", seed) as run:
        draw = run.random
        for site in draw.sample("ab", 2):
            run.play(draw.uniform(0.3, 1.0))
            if draw.random() < 0.7:
                run.writers[site].large(draw.randint(2_000, 4_000))
            key = run.relay(site)
            leader = run.leader(key)
            (follower,) = world.others(leader)
            fault = run.fault(
                f"setl switchover of {key} from {leader.nid} to {follower.nid}",
                partial(run_command, run, "switchover", key, "--to", follower.nid, "--yes"),
                [key],
            )
            # Shorter than if anybody had to wait for a session to end.
            run.expect_takeover(fault, world.session_timeout + world.slack, planned=True)
            now = run.leader(key)
            run.require(now is follower, f"{now.nid} leads {key} instead of {follower.nid}")
        result = run.finish()
        run.require(not result.redelivered, f"a switchover redelivered {result.redelivered} rows")
        for key, count in run.redundant.items():
            run.require(not count, f"{key} wrote {count} rows that nobody sees")
        return result


def restart_kafka(world: World, seed: int) -> DrillResult:
    """Stop Kafka while relays write and nodes read, and start it again."""
    with RelayDrillRun(world, "kafka-restarted", seed) as run:
        draw = run.random
        run.play(draw.uniform(0.5, 2.0))
        _write_large(run)
        fault = run.fault("Kafka is stopped", world.kafka.stop, run.keys)
        run.play(draw.uniform(0.5, 3.0))
        run.say("Kafka is started")
        world.kafka.start()
        run.expect_resumption(fault, time.time())
        for node in world.processes.values():
            run.require(node.running, f"{node.nid} died with Kafka")
        return run.finish()


def relay_alone(world: World, seed: int) -> DrillResult:
    """Cut both relays off from ZooKeeper past their sessions, and heal the link of one.

    What it had under way was cancelled, and may be answered as if another had taken over. But it
    is its own successor, and must continue automatically.
    """
    with RelayDrillRun(world, "relay-alone", seed) as run:
        draw = run.random
        run.play(draw.uniform(0.5, 1.5))
        leader = run.leader(run.relay("a"))

        leader.arm("relay.appended", f"hang {world.session_timeout + 1:.0f}")
        taken = leader.taken("relay.appended")
        wait_for(f"{leader.nid} to have records appended", taken.exists, _HANG_LIMIT)

        def cut() -> None:
            for node in world.relays.values():
                node.cut(ZOOKEEPER)

        fault = run.fault("no relay reaches ZooKeeper any more", cut, run.topics)
        run.play(world.session_timeout + draw.uniform(1.5, 2.0))
        run.say(f"{leader.nid} reaches it again")
        leader.heal()
        run.expect_resumption(fault, time.time(), run.takeover_bound)
        world.heal()
        return run.finish()


def relay_crash_at(point: str, world: World, seed: int) -> DrillResult:
    """Kill the relay that passes a point, from inside, at the very instruction."""
    with RelayDrillRun(world, f"relay-crash-at-{point}", seed) as run:
        run.play(run.random.uniform(0.2, 1.0))
        crash(run, run.leader(run.relay("a")), point)
        return run.finish()


DRILLS = (
    Drill(
        "switchover-relay",
        "both relays are handed over by command under load; nothing is written to Kafka twice",
        "the order, the moments, and large transactions",
        switchover_relay,
        NEEDS,
    ),
    Drill(
        "freeze-relay",
        "SIGSTOP of the active relay with records on their way, then SIGCONT; Kafka fences it off",
        "the moment, and whether a large transaction is under way",
        freeze_relay,
        NEEDS,
    ),
    Drill(
        "relay-alone",
        "the only relay left loses ZooKeeper, and finds it again; it continues automatically",
        "the moments",
        relay_alone,
        NEEDS,
    ),
    Drill(
        "kafka-restarted",
        "Kafka stops and comes back while relays write and nodes read; nothing is lost",
        "the moments, and whether a large transaction is under way",
        restart_kafka,
        NEEDS,
    ),
    Drill(
        "kill-relay",
        "SIGKILL to the active relay under load; the topic has every row once, in order",
        "the moment, and whether a large transaction is under way",
        kill_relay,
        NEEDS,
    ),
    *(
        Drill(
            f"relay-crash-at-{point}",
            f"the relay dies at this point: {failpoints.POINTS[point]}",
            "the moment",
            partial(relay_crash_at, point),
            NEEDS,
        )
        for point in _POINTS
    ),
    Drill(
        "kill-relay-and-node",
        "SIGKILL to the active relay and to the node that reads its topic, at once",
        "the moment",
        kill_relay_and_node,
        NEEDS,
    ),
)
