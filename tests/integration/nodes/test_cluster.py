"""Two real nodes and the commands that people type, through pause, failover and an outage."""

import json
import os
import re
import stat
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import yaml

from setl_embedded.ports import free_port
from tests.integration import wires
from tests.integration.pipelines import execute
from tests.integration.spark_cluster import descendants, listening_addresses
from tests.integration.two_nodes import TOKEN, command, is_warm, write
from tests.waiting import eventually

POST = (
    "POST /switchover HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    "content-length: 2\r\nconnection: close\r\n\r\n{}"
)


def test_a_channel_is_checked_applied_started_paused_and_stopped(channel, cluster):
    assert "are right" in cluster.run("check", str(channel.file)).stdout
    write(channel.a, channel.db, 1, 10)
    write(channel.b, channel.db, 1001, 10)
    eventually(lambda: channel.count(channel.a) == channel.count(channel.b) == 20, 30)
    assert cluster.run("pause", channel.name).stdout.strip().endswith("PAUSE")
    before = channel.listed()["ab"]
    assert before["state"] == "paused"
    write(channel.a, channel.db, 11, 5)
    assert channel.leader() == before["leader"]
    assert channel.count(channel.b) == 20
    cluster.run("start", channel.name)
    eventually(lambda: channel.count(channel.b) == 25, 30)
    assert channel.listed()["ab"]["epoch"] == before["epoch"]
    cluster.run("stop", channel.name)
    assert channel.listed()["ab"]["leader"] == ""
    write(channel.a, channel.db, 21, 5)
    command(cluster, "start", channel.name)
    eventually(lambda: channel.count(channel.b) == 30, 30)
    verified = cluster.run("verify", channel.name, "--master", "local[1]", "-o", "json")
    assert [v["differences"] for v in json.loads(verified.stdout)] == [0, 0]


def test_a_stranger_reads_no_value_of_the_row_that_stops_a_pipeline(channel, cluster, tmp_path):
    value, table = "alice.liddell-4711@private.example", f"{channel.db}.t"
    execute(channel.b, "SET sql_log_bin = 0", f"ALTER TABLE {table} ADD UNIQUE (v)")
    execute(
        channel.a,
        f"ALTER TABLE {table} COMMENT '{value}'",
        f"INSERT INTO {table} VALUES (1, '{value}'), (2, '{value}')",
    )
    eventually(lambda: channel.listed()["ab"]["state"] == "failed", 60)
    name, leader = f"{channel.name}/ab", channel.leader()
    pages = ("/", f"/console/channels/{channel.name}", f"/console/pipelines/{name}")
    programs = ("status", "cluster", "readiness", "health", "history", "metrics",
                f"leader/{name}", f"standby/{name}")  # fmt: skip
    for http in cluster.http.values():
        for path in programs:
            assert value not in asked(f"{http}/{path}"), path
        for page in pages:
            assert value not in asked(f"{http}{page}", Accept="text/html"), page
    shown = asked(f"{cluster.http[leader]}/status")
    assert f"table {table}, the server's code 1062)" in shown
    # Who has the token, and who reads ZooKeeper without it.
    known = {"Authorization": f"Bearer {TOKEN}"}
    for path in ("status", "cluster", "readiness", f"leader/{name}"):
        assert value in asked(f"{cluster.http[leader]}/{path}", **known), path
    assert value in command(cluster, "status", channel.name).stdout
    report = tmp_path / "report.yaml"
    command(cluster, "doctor", "-f", str(report))
    assert f"table {table}, the server's code 1062)" in json.dumps(
        yaml.safe_load(report.read_text())
    )
    assert value not in report.read_text()


def asked(address, **headers):
    """What a node answers, whatever its code is."""
    request = urllib.request.Request(address, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()


def test_what_differs_is_repaired_sent_again_or_loaded_again(channel, cluster, spark_command):
    table = f"{channel.db}.t"
    damage = (
        "SET sql_log_bin = 0",  # as a restored backup would, so that it is no change of B
        f"UPDATE {table} SET v = 'other' WHERE id IN (2, 3)",
        f"DELETE FROM {table} WHERE id = 4",
        f"INSERT INTO {table} (id, v) VALUES (5001, 'extra'), (5002, 'extra')",
    )
    write(channel.a, channel.db, 1, 30)
    eventually(lambda: channel.count(channel.b) == 30, 30)
    execute(channel.b, *damage)
    only = ("--pipeline", "ab")
    done = spark_command(cluster, "verify", channel.name, *only, check=False)
    assert done.returncode == 1
    assert "'other'" in done.stdout
    done = spark_command(cluster, "verify", channel.name, *only, "--repair", "-o", "json")
    assert "5 keys of" in done.stderr
    assert [v["differences"] for v in json.loads(done.stdout)] == [0]
    assert channel.equal()
    execute(channel.b, *damage)
    pipeline = f"{channel.name}/ab"
    command(cluster, "resend", pipeline, "--table", table, "--where", "id < 4")
    spark_command(cluster, "load", pipeline, "--table", table, "--replace")
    assert channel.equal()
    listed = json.loads(command(cluster, "load", "list", pipeline, "-o", "json").stdout)
    assert [(row["reason"], row["state"]) for row in listed] == [
        ("repair", "done"), ("resend", "done"), ("load", "done"), ("repair", "done"),
    ]  # fmt: skip
    none = ("--where", "none = 1")
    refused = command(cluster, "resend", pipeline, "--table", table, *none, check=False)
    assert refused.returncode == 1
    assert "none" in refused.stderr
    assert channel.listed()["ab"]["state"] == "running"


def test_a_node_that_leaves_in_order_redelivers_nothing(channel, cluster):
    write(channel.a, channel.db, 1, 200, size=10)
    eventually(lambda: channel.count(channel.b) == 200, 30)
    leader = channel.leader()
    cluster.nodes[leader].stop(timeout=60)
    try:
        eventually(lambda: channel.leader() not in ("", leader), 30)
        write(channel.a, channel.db, 1001, 10)
        eventually(lambda: channel.count(channel.b) == 210, 30)

        def counted():
            reported = channel.listed()["ab"]
            return reported if reported.get("rows_applied") == 10 else None

        # Rows are counted a moment after they can be seen.
        assert eventually(counted, 30)["rows_redelivered"] == 0
    finally:
        cluster.start_node(leader, free_port(), master="local[1]")
        eventually(lambda: is_warm(cluster, leader), 180)


def test_a_stranger_gets_nothing_at_any_port_of_a_node(channel, cluster):
    """Every port is of this machine, and one that docs/pages/security.md names: it refuses."""
    write(channel.a, channel.db, 1, 1)
    eventually(lambda: channel.count(channel.b) == 1, 30)
    for nid, node in cluster.nodes.items():
        found = []
        below = descendants(node.pid)
        for pid, said in {node.pid: "setl node", **below}.items():
            for address, port in listening_addresses({pid}):
                assert address in ("127.0.0.1", "::1"), (said, address)
                found.append(what_turns_a_stranger_away(said, port, cluster.http[nid]))
        assert sorted(set(found)) == ["JVM", "Spark", "http"]
        assert found.count("Spark") == 2, "the driver and its blocks"
        (jvm,) = [c for c in below.values() if "SparkSubmit" in c]
        # Python processes and the JVM ask each other for no password where nobody else gets in.
        (text,) = re.findall(r"unix\.domain\.socket\.dir=(\S+)", jvm)
        folder = Path(text)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert folder.stat().st_uid == os.getuid()
        sockets = unix_sockets({node.pid, *below})
        assert sockets
        assert {Path(path).parent for path in sockets} == {folder}
        assert "spark.authenticate=true" in jvm
        assert "spark.authenticate.secret" not in jvm


def what_turns_a_stranger_away(process, port, http):
    if "SparkSubmit" in process:
        obeys = wires.gateway_obeys(port)
        if obeys is None:
            assert wires.NO_SECRET in wires.spark_request(port)
            return "Spark"
        assert obeys is False
        return "JVM"
    assert http.endswith(f":{port}"), process
    assert b"HTTP/1.1 401 " in wires.answer(port, POST.encode())  # without the token
    return "http"


def unix_sockets(pids):
    """The paths of sockets of these processes that are files."""
    found = set()
    for pid in pids:
        try:
            sockets = psutil.Process(pid).net_connections("unix")
        except psutil.NoSuchProcess:
            continue  # it has just ended
        found |= {each.laddr for each in sockets if each.laddr}
    return found


def test_what_a_stranger_sees_when_names_are_wrong(cluster):
    done = cluster.run("status", "nonsense", check=False)
    assert done.returncode == 2
    assert "there is no channel and no pipeline 'nonsense'" in done.stderr
    done = cluster.run("list", "--zookeeper", f"127.0.0.1:{free_port()}", check=False)
    assert done.returncode == 3
    assert "127.0.0.1" in done.stderr
