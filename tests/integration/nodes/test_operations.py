"""What an operator does to two real nodes: hand over, fail over, pause, move, raise epochs."""

import json
import shutil
import signal
import time

import pytest

from setl_drills.processes import send, tree
from tests.integration.pipelines import execute
from tests.integration.two_nodes import TIMEOUT, command, is_warm, write
from tests.loading import rows_of
from tests.mysql_servers import binlog_status
from tests.waiting import eventually


def as_json(cluster, *arguments):
    return json.loads(command(cluster, *arguments, "-o", "json").stdout)


def other(cluster, nid):
    return next(n for n in cluster.nodes if n != nid)


def pipeline(channel, name="ab"):
    return f"{channel.name}/{name}"


def test_rollback_and_restart(channel, cluster):
    write(channel.a, channel.db, 1, 10)
    eventually(lambda: channel.count(channel.b) == 10, 30)
    before = channel.listed()["ab"]
    for what in ("rollback", "restart"):
        done = as_json(cluster, "signal", what, pipeline(channel))
        assert done["outcome"] == "done", done
    write(channel.a, channel.db, 11, 10)
    eventually(lambda: channel.count(channel.b) == 20, 30)
    eventually(lambda: channel.listed()["ab"]["rows_total"] == 20, 30)
    after = channel.listed()["ab"]
    assert (after["leader"], after["epoch"]) == (before["leader"], before["epoch"])


def test_a_failover_from_a_frozen_leader(channel, cluster):
    leader = channel.leader()
    standby = other(cluster, leader)
    write(channel.a, channel.db, 1, 10)
    eventually(lambda: channel.count(channel.b) == 10, 30)
    frozen = tree(cluster.nodes[leader].pid)
    send(frozen, signal.SIGSTOP)
    try:
        write(channel.a, channel.db, 11, 10)
        began = time.monotonic()
        done = as_json(cluster, "failover", pipeline(channel), "--to", standby)
        assert (done["outcome"], done["to"]) == ("done", standby)
        assert time.monotonic() - began < TIMEOUT + 30
        eventually(lambda: channel.count(channel.b) == 20, 30)
    finally:
        send(frozen, signal.SIGCONT)
    eventually(lambda: is_warm(cluster, leader), 60)
    write(channel.a, channel.db, 21, 10)
    eventually(lambda: channel.count(channel.b) == 30, 30)
    assert channel.leader() == standby


def test_a_position_is_shown_and_moved(channel, cluster):
    name = pipeline(channel)
    write(channel.a, channel.db, 1, 10)
    eventually(lambda: channel.count(channel.b) == 10, 30)
    command(cluster, "stop", channel.name)
    (before,) = as_json(cluster, "position", "show", name)
    assert (before["stored_in"], before["rows"], before["problems"]) == ("target", 10, [])
    assert before["fence_epoch"] == before["stored_by_epoch"]
    execute(channel.b, f"DELETE FROM {channel.db}.t WHERE id = 3")
    write(channel.a, channel.db, 11, 10)
    with channel.a.connect() as connection:
        file, offset = binlog_status(connection)
    write(channel.a, channel.db, 21, 10)
    inside = command(
        cluster, "position", "reset", name, "--to", f"{file}:{offset - 3}", check=False
    )
    assert inside.returncode == 2, inside.stdout + inside.stderr
    assert "not the beginning of an event" in inside.stderr
    commit = next(
        row for row in execute(channel.a, f"SHOW BINLOG EVENTS IN '{file}'") if row[4] == offset
    )
    inside = command(cluster, "position", "reset", name, "--to", f"{file}:{commit[1]}", check=False)
    assert "inside a transaction" in inside.stderr
    gone = command(cluster, "position", "reset", name, "--to", "nothing.000007:4", check=False)
    assert "nothing.000007" in gone.stderr
    assert gone.returncode == 4
    moved = as_json(cluster, "position", "reset", name, "--to", f"{file}:{offset}")
    assert moved["after"]["generation"] == moved["before"]["generation"] + 1
    assert moved["after"]["rows"] == 10
    (shown,) = as_json(cluster, "position", "show", name)
    assert shown["resume"].startswith(f"{file}:{offset} ")
    assert shown["fence_epoch"] == moved["epoch"]
    assert shown["behind"] > 0
    command(cluster, "start", channel.name)
    eventually(lambda: channel.count(channel.b) == 19, 30, message="rows behind the position only")
    command(cluster, "stop", channel.name)
    command(cluster, "position", "reset", name, "--to", before["resume"].split(" ")[0])
    command(cluster, "start", channel.name)
    eventually(lambda: channel.count(channel.b) == 29, 30)
    assert channel.leader("ab") != ""


@pytest.mark.parametrize("position", ["earliest", "now"])
def test_more_positions(channel, cluster, position):
    command(cluster, "stop", channel.name)
    to = time.strftime("%Y-%m-%dT%H:%M:%S%z") if position == "now" else position
    moved = as_json(cluster, "position", "reset", pipeline(channel), "--to", to)
    assert moved["after"]["resume"].partition(" ")[0].endswith(":4")


def test_epochs_are_raised_after_zookeeper_was_set_up_again(channel, cluster, zookeeper_of_cluster):
    write(channel.a, channel.db, 1, 10)
    eventually(lambda: channel.count(channel.b) == 10, 30)
    assert command(cluster, "epoch", "show", channel.name).returncode == 0
    # What was led under a ZooKeeper that had counted far.
    execute(
        channel.b,
        f"UPDATE retl.setl_fence SET epoch = {1 << 40} WHERE pipeline = '{pipeline(channel)}'",
    )
    zookeeper_of_cluster.stop()
    shutil.rmtree(zookeeper_of_cluster.folder / "data")
    zookeeper_of_cluster.start()
    command(cluster, "apply", str(channel.file))
    eventually(lambda: all(is_warm(cluster, nid) for nid in cluster.nodes), 60)
    refused = command(cluster, "start", channel.name, check=False)
    assert refused.returncode == 1
    assert f"the target is at epoch {1 << 40}" in refused.stderr
    shown = command(cluster, "epoch", "show", check=False)
    assert shown.returncode == 1
    assert f"the target knows epoch {1 << 40}" in shown.stdout
    raised = as_json(cluster, "epoch", "raise")
    assert raised["base"] == 1 << 40
    assert pipeline(channel) in raised["deposed"]
    write(channel.a, channel.db, 11, 10)
    eventually(lambda: channel.count(channel.b) == 20, 60)
    assert command(cluster, "epoch", "show").returncode == 0
    again = as_json(cluster, "epoch", "raise")
    assert (again["outcome"], again["base"]) == ("unchanged", 1 << 40)


@pytest.mark.parametrize("fence", ["lower", "gone"])
def test_a_target_that_was_restored_from_a_backup_is_brought_up_to_date(channel, cluster, fence):
    write(channel.a, channel.db, 1, 10)
    eventually(lambda: channel.count(channel.b) == 10, 30)
    command(cluster, "pause", channel.name)
    where = f"WHERE pipeline = '{pipeline(channel)}'"
    # The backup has the first ten rows, and what setl kept in the target then.
    ((backup,),) = rows_of(channel.b, f"SELECT checkpoint FROM retl.setl_checkpoint {where}")
    command(cluster, "resume", channel.name)
    write(channel.a, channel.db, 11, 10)
    eventually(lambda: channel.count(channel.b) == 20, 30)
    epoch = rows_of(channel.b, f"SELECT epoch FROM retl.setl_fence {where}")[0][0]
    lost = f"DELETE FROM retl.setl_fence {where}"
    if fence == "lower":
        lost = f"UPDATE retl.setl_fence SET epoch = epoch - 1 {where}"
    with channel.b.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute(lost)
        cursor.execute(f"UPDATE retl.setl_checkpoint SET checkpoint = %s {where}", (backup,))
        cursor.execute(f"DELETE FROM {channel.db}.t WHERE id > 10")
        connection.commit()
    write(channel.a, channel.db, 21, 10)
    eventually(lambda: channel.count(channel.b) == 30, 60)
    assert rows_of(channel.b, f"SELECT epoch FROM retl.setl_fence {where}")[0][0] > epoch
    assert channel.leader() != ""


def test_a_target_without_its_checkpoint_is_no_new_pipeline(channel, cluster):
    """The channel's `start` is its source's end, so what lies between would be lost unseen."""
    write(channel.a, channel.db, 1, 10)
    eventually(lambda: channel.count(channel.b) == 10, 30)
    command(cluster, "stop", channel.name)
    write(channel.a, channel.db, 11, 10)
    where = f"WHERE pipeline = '{pipeline(channel)}'"
    execute(channel.b, f"DELETE FROM retl.setl_checkpoint {where}")
    shown = command(cluster, "position", "show", pipeline(channel), check=False)
    assert shown.returncode == 3
    assert "has none: it was set back" in shown.stderr
    started = command(cluster, "start", channel.name, check=False)
    assert started.returncode == 1
    assert "beginning at `start` without being told to could lose changes" in started.stderr
    assert channel.count(channel.b) == 10
    command(cluster, "stop", channel.name)
    command(cluster, "position", "reset", pipeline(channel), "--to", "earliest", "--yes")
    command(cluster, "start", channel.name)
    eventually(lambda: channel.count(channel.b) == 20, 60)
