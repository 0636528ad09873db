"""Several pipelines on two nodes: one node dies, comes back, and gets its share again."""

import json
from collections import Counter

import pytest

from setl_embedded.ports import free_port
from tests.integration.two_nodes import TIMEOUT, Channel, command, is_warm, write
from tests.mysql_servers import dump_threads
from tests.waiting import eventually

CHANNELS = 2  # two pipelines each


@pytest.fixture
def channels(cluster, site_a, site_b):
    eventually(lambda: all(is_warm(cluster, nid) for nid in cluster.nodes), 280)
    made = [Channel(cluster, site_a, site_b, shared=True) for _ in range(CHANNELS)]
    for each in made:
        command(cluster, "apply", str(each.file))
        command(cluster, "start", each.name)
    yield made
    for each in made:
        command(cluster, "stop", each.name, check=False)


def listed(cluster, channels):
    """What `setl list` tells of each pipeline."""
    content = json.loads(command(cluster, "list", "-o", "json").stdout)[0]
    mine = tuple(f"{each.name}/" for each in channels)
    return [p for p in content["pipelines"] if p["pipeline"].startswith(mine)]


def leaders(cluster, channels):
    """The leader of each pipeline that runs and is not behind, by its full name."""
    return {
        p["pipeline"]: p["leader"]
        for p in listed(cluster, channels)
        if p["state"] == "running" and p["lag"] is not None and p["lag"] < 5
    }


def all_leaders(cluster, channels):
    """The leaders of all pipelines, as one look tells them in which all run."""

    def seen():
        found = list(leaders(cluster, channels).values())
        return found if len(found) == 2 * CHANNELS else None

    return eventually(seen, 60)


@pytest.mark.timeout(600)  # three JVMs start
def test_a_node_that_comes_back_gets_its_partition_again(channels, cluster):
    for each in channels:
        write(each.a, each.db, 1, 5)
    eventually(lambda: all(each.count(each.b) == 5 for each in channels), 60)
    # Whoever was held up when the channels started may lead nothing.
    gone = all_leaders(cluster, channels)[0]
    (stays,) = cluster.nodes.keys() - {gone}
    cluster.nodes[gone].kill()
    try:
        eventually(
            lambda: list(leaders(cluster, channels).values()) == [stays] * 2 * CHANNELS,
            TIMEOUT + 60,
        )
    finally:
        cluster.start_node(gone, free_port(), master="local[1]")
        eventually(lambda: is_warm(cluster, gone), 180)
    # It leads nothing by itself: what runs stays where it is.
    assert set(all_leaders(cluster, channels)) == {stays}
    # Its pipelines read each site's binlog on one connection, once they are at the end.
    for each in channels:
        write(each.a, each.db, 6, 5)
        write(each.b, each.db, 2001, 5)
    eventually(lambda: all(each.count(each.b) == 15 and each.equal() for each in channels), 60)
    for site in (channels[0].a, channels[0].b):
        eventually(lambda site=site: len(dump_threads(site)) == 1, 60)
    eventually(lambda: all(p["reads_with_others"] for p in listed(cluster, channels)), 60)

    planned = json.loads(command(cluster, "rebalance", "--dry-run", "-o", "json").stdout)
    assert [m["outcome"] for m in planned["moves"]] == ["planned"] * CHANNELS
    assert set(all_leaders(cluster, channels)) == {stays}
    done = json.loads(command(cluster, "rebalance", "-o", "json").stdout)["moves"]
    assert [(m["from"], m["to"], m["outcome"]) for m in done] == [(stays, gone, "done")] * CHANNELS
    assert [m["redelivered"] for m in done] == [0] * CHANNELS
    assert Counter(all_leaders(cluster, channels)) == {gone: CHANNELS, stays: CHANNELS}
    actions = json.loads(command(cluster, "history", "--actions", "-o", "json").stdout)
    assert [(a["what"], a["outcome"]) for a in actions if a["what"] == "rebalance"][-1:] == [
        ("rebalance", f"{CHANNELS} switchovers done")
    ]
    for each in channels:
        write(each.b, each.db, 1001, 5)
    eventually(lambda: all(each.count(each.a) == 20 and each.equal() for each in channels), 60)
