"""Nodes that lack something, are refused, or are full, and who leads then."""

import pytest

from arbiter import requests
from arbiter.values import ChannelState
from setl.errors import LoginRefusedError, NodeFullError, NodeNotReadyError, UntrustedServerError
from setl.run.measured.figures import RunState
from tests.unit.node.candidate import PIPELINE, Node
from tests.waiting import eventually


def test_a_node_that_lacks_something_leaves_the_lead_to_another(cluster, operator):
    first, second = Node(cluster), Node(cluster, "n2")
    first.build_failure = NodeNotReadyError("the processor mine:f cannot be imported")
    first.tick()
    second.tick()
    cluster.advance(0.5)
    first.tick()
    first.idle()
    first.tick()
    assert operator.leader_locks.one(PIPELINE) is None
    assert "cannot be imported" in first.controller.not_ready
    assert first.state is RunState.FAILED
    second.tick()
    cluster.advance(0.5)
    eventually(lambda: (second.tick(), second.state is RunState.RUNNING)[1])
    first.tick()
    figures = first.controller.status().figures
    assert figures.state is RunState.STANDBY
    assert "cannot be imported" in figures.error
    second.controller.close(5)
    for _ in range(5):
        cluster.advance(10)
        first.tick()
        first.idle()
    assert operator.leader_locks.one(PIPELINE) is None, "it does not try again by itself"
    assert first.state is RunState.FAILED
    first.build_failure = None
    requests.change_state(operator, "shop", ChannelState.START)
    eventually(lambda: (cluster.advance(1), first.tick(), first.state is RunState.RUNNING)[2])
    assert first.controller.not_ready == ""
    first.runs[0].ends.set()
    first.idle()


def refused_nodes(cluster, *nids, kind=LoginRefusedError):
    nodes = [Node(cluster, nid) for nid in nids]
    for node in nodes:
        node.build_failure = kind("MySQL: Access denied [1045]")
    return nodes


def absorb(cluster, nodes, seconds=30):
    for _ in range(2 * seconds):
        for node in nodes:
            node.tick()
            node.idle()
            node.tell_others()
        cluster.advance(0.5)


@pytest.mark.parametrize("kind", [LoginRefusedError, UntrustedServerError])
def test_a_node_whose_login_is_refused_leaves_the_lead_to_one_whose_is_not(cluster, operator, kind):
    first, second = nodes = refused_nodes(cluster, "n1", "n2", kind=kind)
    first.tick()
    second.build_failure = None
    second.may_build.set()
    cluster.advance(0.5)
    first.tick()
    first.idle()
    first.tick()
    assert operator.leader_locks.one(PIPELINE) is None
    first.tell_others()
    eventually(lambda: (cluster.advance(1), second.tick(), second.state is RunState.RUNNING)[2])
    first.tick()
    status = first.controller.status()
    assert "[1045]" in status.not_ready
    assert (status.figures.state, status.leader) == (RunState.STANDBY, "n2")
    for run in second.runs:
        run.ends.set()
    second.idle()
    assert [node.builds for node in nodes] == [1, 1]


@pytest.mark.parametrize("kind", [LoginRefusedError, UntrustedServerError])
def test_where_all_logins_are_refused_the_last_node_stores_the_lead_and_says_why(
    cluster, operator, kind
):
    nodes = refused_nodes(cluster, "n1", "n2", "n3", kind=kind)
    absorb(cluster, nodes)
    assert [node.builds for node in nodes] == [1, 1, 1], "nobody tries again by itself"
    leader = operator.leader_locks.one(PIPELINE)
    states = {node.nid: node.state for node in nodes}
    assert states.pop(leader.nid) is RunState.FAILED
    assert set(states.values()) == {RunState.STANDBY}
    assert [n.nid for n in nodes if not n.controller.not_ready] == [leader.nid]
    # One that joins may have another password.
    (fourth,) = refused_nodes(cluster, "n4")
    absorb(cluster, [*nodes, fourth])
    assert operator.leader_locks.one(PIPELINE).nid == "n4"
    assert [node.builds for node in (*nodes, fourth)] == [1, 1, 1, 1]
    # Somebody fixes the account.
    for node in (*nodes, fourth):
        node.build_failure = None
    requests.change_state(operator, "shop", ChannelState.START)
    fourth.tick()
    eventually(lambda: fourth.state is RunState.RUNNING)
    fourth.runs[0].ends.set()
    fourth.idle()


def test_a_node_whose_login_was_refused_tries_again_if_no_other_is_left(cluster, operator):
    nodes = refused_nodes(cluster, "n1", "n2")
    absorb(cluster, nodes)
    led, other = nodes if operator.leader_locks.one(PIPELINE).nid == "n1" else nodes[::-1]
    led.arbiter.link.cut()  # killed: its session expires in ten seconds
    other.build_failure = None

    def takes_over():
        cluster.advance(1)
        other.tick()
        return other.state is RunState.RUNNING

    eventually(takes_over)
    other.runs[0].ends.set()
    other.idle()


def test_a_node_with_a_full_disk_leaves_the_lead_to_another_for_a_while(cluster, operator):
    first, second = Node(cluster), Node(cluster, "n2")
    first.build_failure = NodeFullError("No space left on device")
    first.tick()
    cluster.advance(0.5)
    first.tick()
    first.idle()
    first.tick()
    first.tell_others()
    assert operator.leader_locks.one(PIPELINE) is None, "it is not this node that renews its epoch"
    eventually(lambda: (cluster.advance(1), second.tick(), second.state is RunState.RUNNING)[2])
    first.tick()
    assert "No space left" in first.controller.not_ready
    cluster.advance(60)
    first.tick()
    assert first.controller.not_ready == "", "somebody may have made room"
    second.runs[0].ends.set()
    second.idle()


def test_a_full_disk_of_the_only_node_is_tried_again(cluster, operator):
    node = Node(cluster)
    node.build_failure = NodeFullError("No space left on device")
    eventually(lambda: (cluster.advance(1), node.tick(), node.builds >= 3)[2])
    assert node.controller.not_ready == ""
    node.build_failure = None
    eventually(lambda: (cluster.advance(5), node.tick(), node.state is RunState.RUNNING)[2])
    node.runs[0].ends.set()
    node.idle()


def test_what_a_node_lacked_is_forgotten_with_its_channel(cluster, operator):
    """A channel that is stored again comes to the revision at which a run had failed."""
    node = Node(cluster)
    node.build_failure = NodeNotReadyError("the processor mine:f cannot be imported")
    node.tick()
    cluster.advance(0.5)
    node.tick()
    node.idle()
    node.tick()
    failed_at = operator.channels.one("shop").revision
    stopped = operator.channels.set_state(operator.channels.one("shop"), ChannelState.STOP)
    node.tick()
    operator.channels.remove(stopped)
    operator.channels.put("shop", {})
    requests.change_state(operator, "shop", ChannelState.START)
    assert operator.channels.one("shop").revision == failed_at
    node.tick()
    assert node.controller.not_ready == ""


def test_a_node_that_is_seen_to_lack_something_never_takes_the_lead(cluster, operator):
    missing_for = ["the environment variable DB is not set"]
    node = Node(cluster, missing_for=lambda _: missing_for[0])
    for _ in range(4):
        node.tick()
        cluster.advance(10)
    assert operator.leader_locks.one(PIPELINE) is None
    assert not node.runs
    assert node.controller.status().not_ready == missing_for[0]
    assert "cannot lead this pipeline, and no node does" in node.controller.status().decision
    missing_for[0] = ""
    eventually(lambda: (cluster.advance(1), node.tick(), node.state is RunState.RUNNING)[2])
    missing_for[0] = "the file is gone"
    node.tick()
    assert operator.leader_locks.one(PIPELINE) is not None, "what runs does not need it any more"
    node.runs[0].ends.set()
    node.idle()
