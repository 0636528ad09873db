"""Nodes of two releases in one cluster, as in a rolling upgrade and back, while clients write."""

import json
import os
import signal
import threading
from contextlib import contextmanager

import pytest

from setl_drills.nodes import Cluster
from setl_embedded.ports import free_port
from tests.earlier_release import unpack
from tests.integration.pipelines import execute, fresh_name, install_system_tables, rows
from tests.integration.two_nodes import Channel, command, is_warm
from tests.waiting import eventually

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]  # three nodes start after each other

CURRENT = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}


@pytest.fixture
def earlier(tmp_path):
    folder = tmp_path / "earlier"
    folder.mkdir()
    return unpack(folder)


@pytest.fixture
def mixed(earlier, zookeeper_of_cluster, site_a, site_b, tmp_path):
    """A cluster whose nodes and commands are of the earlier release."""
    environment = {
        "SITE_A_PASSWORD": site_a.password,
        "SITE_B_PASSWORD": site_b.password,
        "SETL_ROOT": f"/{fresh_name()}",
        **earlier,
    }
    for site in (site_a, site_b):
        install_system_tables(site)
    cluster = Cluster(tmp_path, zookeeper_of_cluster.hosts, environment)
    yield cluster
    cluster.stop()


@contextmanager
def writing(channel):
    """Inserts and updates at both sites, each in rows of its own, until the end."""
    stopping, written = threading.Event(), {channel.a: 0, channel.b: 0}

    def work(server, first):
        ident = first
        with server.connect() as connection, connection.cursor() as cursor:
            while not stopping.wait(0.3):
                cursor.execute(f"INSERT INTO {channel.db}.t VALUES ({ident}, 'new')")
                cursor.execute(f"UPDATE {channel.db}.t SET v = 'changed' WHERE id = {ident}")
                written[server] += 1
                ident += 2

    threads = [
        threading.Thread(target=work, args=each) for each in ((channel.a, 1), (channel.b, 2))
    ]
    for thread in threads:
        thread.start()
    try:
        yield written
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


def start(cluster, nid, release):
    cluster.start_node(nid, free_port(), master="local[1]", environment=release)


def stop(cluster, nid):
    """As a service manager stops it: the process alone is told, and drains."""
    process = cluster.nodes[nid]
    os.kill(process.pid, signal.SIGTERM)
    eventually(lambda: not process.running, 60)
    process.stop()


def goes_on(channel, written):
    """Both directions apply what is written from now on."""
    at = dict(written)
    for source, target, first in ((channel.a, channel.b, 1), (channel.b, channel.a, 2)):
        eventually(lambda source=source: written[source] > at[source] + 2, 60)
        last = first + 2 * (written[source] - 1)
        eventually(
            lambda target=target, last=last: execute(
                target, f"SELECT 1 FROM {channel.db}.t WHERE id = {last} AND v = 'changed'"
            ),
            60,
        )


def leaders(channel):
    return {each["leader"] for each in channel.listed().values()}


def test_nodes_of_two_releases_take_over_from_each_other(mixed, earlier, site_a, site_b):
    assert earlier["PYTHONPATH"] != CURRENT["PYTHONPATH"]
    start(mixed, "old", earlier)
    start(mixed, "new", CURRENT)
    eventually(lambda: all(is_warm(mixed, nid) for nid in mixed.nodes), 280)
    channel = Channel(mixed, site_a, site_b)
    mixed.run("apply", str(channel.file))
    mixed.run("start", channel.name)
    with writing(channel) as written:
        goes_on(channel, written)
        if len(leaders(channel)) == 1:
            # A node that was slow when the channel was started leaves both to the other one.
            mixed.run("switchover", f"{channel.name}/ba")
            goes_on(channel, written)
        assert leaders(channel) == {"old", "new"}
        # Commands of both releases see nodes of both.
        seen = [json.loads(mixed.run("list", "-o", "json").stdout)[0]["nodes"]]
        seen.append(json.loads(command(mixed, "list", "-o", "json").stdout)[0]["nodes"])
        assert [sorted(node["node"] for node in nodes) for nodes in seen] == [["new", "old"]] * 2

        stop(mixed, "old")  # its checkpoints are read by the new one
        goes_on(channel, written)
        assert leaders(channel) == {"new"}

        start(mixed, "old", earlier)
        eventually(lambda: is_warm(mixed, "old"), 280)
        stop(mixed, "new")  # and the other way round
        goes_on(channel, written)
        assert leaders(channel) == {"old"}
    eventually(channel.equal, 60)
    expected = [(2 * i + 1, "changed") for i in range(written[site_a])]
    expected += [(2 * i + 2, "changed") for i in range(written[site_b])]
    assert sorted(rows(site_a, f"{channel.db}.t")) == sorted(expected)
    past = json.loads(command(mixed, "history", "-o", "json").stdout)
    assert len(past) >= 5
    assert [each for each in past if each["error"] or each["redelivered"]] == []
    for each in mixed.status("old")["pipelines"]:
        assert each["figures"]["echoes_passed"] == 0
