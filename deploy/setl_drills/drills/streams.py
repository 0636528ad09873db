"""The source's stream breaks off or goes away: rotated, purged, another server, another broker."""

from __future__ import annotations

import time
from functools import partial

from setl_drills.binlog import binlog_begin, binlog_end
from setl_drills.connections import working_transactions
from setl_drills.drill import Drill, DrillResult
from setl_drills.drill_run import DrillRun
from setl_drills.waiting import wait_for
from setl_drills.world import Needs, World
from setl_embedded import DatabaseServer

_FAILED_LIMIT = 60.0


def rotate(world: World, seed: int) -> DrillResult:
    """Rotate both binlogs under load, also inside a large transaction."""
    with DrillRun(world, "rotate-binlog", seed) as run:
        draw = run.random
        struck = [run.key("ab"), run.key("ba")]
        for _ in range(draw.randint(2, 4)):
            run.writers["a"].large(draw.randint(1_000, 4_000))
            run.play(draw.uniform(0.1, 0.8))
            fault = run.fault("FLUSH BINARY LOGS on both sites", partial(_flush, world), struck)
            run.expect_resumption(fault, fault.at)
        retries = {key: run.statuses.total(key, "retries") for key in struck}
        run.require(not any(retries.values()), f"a rotation caused retries: {retries}")
        return run.finish()


def replace_source(world: World, seed: int) -> DrillResult:
    """Replace site A by its replica, with other binlog files but the same GTIDs, at one address.

    Site A is source of one direction and target of the other, so fence and checkpoint move with
    the replica too.
    """
    with DrillRun(world, "source-replaced", seed) as run:
        draw = run.random
        run.play(draw.uniform(1.0, 2.0))
        struck = [run.key("ab"), run.key("ba")]
        for writer in run.writers.values():
            writer.pause()
        former = world.sites["a"]
        if draw.random() < 0.5:
            run.pause_users()  # else the replica takes over with changes still under way
        for node in world.nodes.values():
            node.cut("a")
        # What was sent before the links were cut may still be committed.
        wait_for("site a to be quiet", partial(_quiet, former), 30, interval=0.3)
        run.save_audit("a")
        fault = run.fault("site a is replaced by its replica", world.replace_site_a, struck)
        follower = world.sites["a"]
        run.replaced_site("a", former)
        run.writers["a"].move_to(follower)
        for node in world.nodes.values():
            node.heal()
        run.resume_users()
        run.expect_resumption(fault, time.time())
        run.play(1.0)
        result = run.finish()
        world.restore_replica()
        return result


def _quiet(site: DatabaseServer) -> bool:
    """Whether no transaction goes on and nothing is written any more.

    A sink's transaction that the cut came upon stays open: the server does not hear of its end.
    """
    before = binlog_end(site)
    time.sleep(0.5)
    return not working_transactions(site) and binlog_end(site) == before


def _flush(world: World) -> None:
    for site in world.sites.values():
        _execute(site, "FLUSH BINARY LOGS")


def _execute(site: DatabaseServer, statement: str) -> None:
    with site.connect() as connection, connection.cursor() as cursor:
        cursor.execute(statement)


def purge(world: World, seed: int) -> DrillResult:
    """Purge the binlog that a stopped pipeline needs: a final error, and a hint of it (I8)."""
    with DrillRun(world, "purge-binlog", seed) as run:
        run.play(run.random.uniform(0.5, 1.5))
        key = run.key("ab")
        run.pause_users()
        world.cluster.run("stop", run.channel)
        # What is purged holds no row of the drill's, so that both sites can still be equal.
        begin = binlog_end(world.sites["a"])
        site = world.sites["a"]
        run.say("the binlog of site a is purged past the checkpoint")
        _execute(site, "FLUSH BINARY LOGS")
        _execute(site, "CREATE DATABASE IF NOT EXISTS drill_other")
        _execute(site, "FLUSH BINARY LOGS")
        last = binlog_end(site)
        run.save_audit("a")
        # A server keeps what a connection still reads, and notices that one is gone when it has
        # something to send.
        wait_for("the purge", partial(_purged, site, last.file), 60, interval=0.5)
        run.result.evidence["purged"] = {"checkpoint near": str(begin), "to": str(last)}
        world.cluster.run("start", run.channel, "--no-wait")
        _expect_final(run, key)
        _repair(run, key)
        run.resume_users()
        return run.finish()


def _purged(site: DatabaseServer, file: str) -> bool:
    _execute(site, "CREATE DATABASE IF NOT EXISTS drill_other")
    _execute(site, f"PURGE BINARY LOGS TO '{file}'")
    return binlog_begin(site).file == file


def _expect_final(run: DrillRun, key: str) -> None:
    """The pipeline says that its position is lost, and does not try again and again."""
    wait_for(f"{key} to fail", lambda: run.statuses.latest(key).state == "failed", _FAILED_LIMIT)
    latest = run.statuses.latest(key)
    run.say(f"{key} failed: {latest.error}")
    run.result.evidence["error"] = latest.error
    run.require(
        "purged" in latest.error or "position" in latest.error,
        "the error does not name the position",
    )
    retries = run.statuses.total(key, "retries")
    time.sleep(3)
    run.statuses.look()
    after = run.statuses.total(key, "retries")
    run.require(after == retries, f"{key} tried again {after - retries} times in 3 s")


def _repair(run: DrillRun, key: str) -> None:
    """The operator's hint: stop, take a new position, start."""
    cluster = run.world.cluster
    cluster.run("stop", run.channel)
    done = cluster.run("position", "reset", key, "--to", "earliest", "--yes", check=False)
    if done.returncode != 0:
        run.problem(f"setl position reset: {done.stderr.strip() or done.stdout.strip()}")
    cluster.run("start", run.channel)


DRILLS = (
    Drill(
        "rotate-binlog",
        "binlogs are rotated under load; nothing is lost, doubled or retried",
        "how often and when",
        rotate,
    ),
    Drill(
        "purge-binlog",
        "the position is purged: one clear final error, repaired by `setl position reset`",
        "the moment",
        purge,
    ),
    Drill(
        "source-replaced",
        "site A is replaced by its replica with the same GTIDs in other files; nobody is asked",
        "the moment, and whether everything had arrived",
        replace_source,
        Needs(replica=True),
    ),
)
