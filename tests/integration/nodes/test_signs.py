"""What commands, metrics and probes say of a pipeline that does not run is true."""

import os
import re
import urllib.error
import urllib.request
from unittest.mock import patch

import pytest

from setl_embedded.ports import free_port
from tests.integration.pipelines import execute
from tests.integration.two_nodes import Channel, command, is_warm, write
from tests.waiting import eventually


@pytest.fixture
def secret_channel(cluster, site_a, site_b):
    """A channel with a variable that is there where it is applied, and on no node."""
    eventually(lambda: all(is_warm(cluster, nid) for nid in cluster.nodes), 280)
    channel = Channel(cluster, site_a, site_b)
    channel.file.write_text(channel.file.read_text().replace("SITE_B_PASSWORD", "N3_PASSWORD"))
    with patch.dict(os.environ, {"N3_PASSWORD": site_b.password}):
        command(cluster, "apply", str(channel.file))
    yield channel
    command(cluster, "stop", channel.name, check=False)
    node = cluster.nodes.pop("n3", None)
    if node is not None:
        node.stop(timeout=20)
        del cluster.http["n3"]  # where other tests ask each node


def get(cluster, nid, path):
    """Status code and body of a node's answer."""
    try:
        with urllib.request.urlopen(f"{cluster.http[nid]}{path}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def lag_metric(cluster, nid, channel, pipeline="ab"):
    _, text = get(cluster, nid, "/metrics")
    name = f'setl_lag_seconds{{channel="{channel}",pipeline="{pipeline}"}}'
    found = re.findall(re.escape(name) + r" (\S+)", text)
    assert found, "this node does not tell it now"
    return float(found[0])


def stays_behind(cluster, nid, channel):
    """The metric grows, and a probe that asks for less says no."""
    first = eventually(lambda: lag_metric(cluster, nid, channel), 30)
    eventually(lambda: lag_metric(cluster, nid, channel) > first + 1, 30)
    eventually(lambda: get(cluster, nid, f"/readiness?lag=2&pipeline={channel}/ab")[0] == 503, 30)
    return True


def test_a_node_that_has_the_secret_leads_and_the_others_say_what_they_lack(
    secret_channel, cluster, site_b
):
    channel, why = secret_channel, "the environment variable N3_PASSWORD is not set"
    failed = command(cluster, "start", channel.name, check=False)
    assert failed.returncode == 1
    assert "but failed" in failed.stderr
    for nid in ("n1", "n2"):
        assert f"{nid}: {why}" in failed.stderr
    status = command(cluster, "status", channel.name, "-o", "json").stdout
    assert why in status
    assert get(cluster, "n1", f"/standby/{channel.name}/ab")[0] == 503
    secret = {"N3_PASSWORD": site_b.password}
    cluster.start_node("n3", free_port(), master="local[1]", environment=secret)
    eventually(lambda: channel.leader("ab") == channel.leader("ba") == "n3", 280)
    # It begins at the end of the source's binlog, wherever that is when it has looked there.
    eventually(lambda: {p["state"] for p in channel.listed().values()} == {"running"}, 60)
    write(channel.a, channel.db, 1, 10)
    eventually(lambda: channel.count(channel.b) == 10, 60)
    tree = command(cluster, "topology", channel.name, "-o", "json").stdout
    assert tree.count(f'"not_ready": "{why}') == 4, "two nodes cannot lead either pipeline"
    refused = command(cluster, "switchover", f"{channel.name}/ab", "--to", "n1", check=False)
    assert refused.returncode == 1
    assert "cannot lead this pipeline" in refused.stderr


def test_lag_grows_in_a_pause_and_in_a_failure_that_start_reports(channel, cluster):
    write(channel.a, channel.db, 1, 10)
    eventually(lambda: channel.count(channel.b) == 10, 60)
    leader = channel.leader()
    path = f"/readiness?lag=20&pipeline={channel.name}/ab"
    eventually(lambda: get(cluster, leader, path)[0] == 200, 60)
    command(cluster, "pause", channel.name)
    assert stays_behind(cluster, leader, channel.name)
    execute(channel.b, f"RENAME TABLE {channel.db}.t TO {channel.db}.hidden")
    write(channel.a, channel.db, 11, 1)
    failed = command(cluster, "start", channel.name, check=False)
    assert failed.returncode == 1
    assert f"{channel.name}/ab: failed on {leader}" in failed.stderr
    assert stays_behind(cluster, leader, channel.name)
    execute(channel.b, f"RENAME TABLE {channel.db}.hidden TO {channel.db}.t")
    command(cluster, "start", channel.name)
    eventually(lambda: channel.count(channel.b) == 11, 60)
    eventually(lambda: lag_metric(cluster, leader, channel.name) < 10, 60)
