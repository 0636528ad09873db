"""What a stored definition says to the election, whatever else is wrong with it."""

import pytest

from arbiter.turns import Preference
from arbiter.values import Channel, ChannelState, NodeInfo
from setl.node.roles import LOAD, RELAY, unserved
from setl.node.stored import pipelines_into, preference_of


def stored(**pipeline):
    definition = {"pipelines": [{"name": "p", **pipeline}]}
    return preference_of(Channel("shop", ChannelState.START, definition), "p")


@pytest.mark.parametrize(
    ("target", "needs"),
    [
        ({"type": "kafka"}, RELAY),
        ({"type": "mysql"}, LOAD),
        ({"type": "elasticsearch"}, LOAD),
        ({"type": ["kafka"]}, LOAD),
        ({}, LOAD),
        ("dts", LOAD),
        (None, LOAD),
    ],
)
def test_the_target_says_what_a_pipeline_needs(target, needs):
    assert stored(target=target) == Preference(needs=needs)


def test_a_source_of_dts_records_is_loaded_on_spark():
    assert stored(source={"type": "kafka"}, target={"type": "mysql"}).needs == LOAD


def test_preferences_are_stored_beside_it():
    nodes = {"prefer": ["r1", 2], "weights": {"r2": 0, "r3": "${SHARE}"}}
    found = stored(target={"type": "kafka"}, nodes=nodes)
    assert found == Preference(("r1", "2"), {"r2": 0.0}, RELAY)
    assert stored(nodes={"prefer": "r1", "weights": [1]}) == Preference(needs=LOAD)


def test_a_pipeline_that_is_not_there_is_loaded():
    assert preference_of(Channel("shop", ChannelState.STOP), "p") == Preference(needs=LOAD)


def node(nid, *serves, ready=True):
    return NodeInfo(nid, ready=ready, serves=serves) if serves else NodeInfo(nid, ready=ready)


@pytest.mark.parametrize(
    ("needs", "nodes", "missing"),
    [
        (RELAY, [], "needs a `setl relay` process; none is running"),
        (RELAY, [node("n1", LOAD)], "needs a `setl relay` process; none is running"),
        (LOAD, [node("r1", RELAY)], "needs a `setl node` process; none is running"),
        (RELAY, [node("n1", LOAD), node("r1", RELAY, ready=False)], ""),
        (RELAY, [node("old")], ""),
    ],
)
def test_what_is_missing_if_nobody_serves(needs, nodes, missing):
    assert unserved(Preference(needs=needs, weights={"r1": 0.0}), nodes) == missing


def test_which_pipelines_write_to_a_kind_of_target():
    targets = {"a": {"type": "mysql"}, "b": {"type": "elasticsearch"}, "c": {}, "d": None}
    pipelines = [{"name": name, "target": target} for name, target in targets.items()]
    channel = Channel("shop", ChannelState.STOP, {"pipelines": pipelines})
    assert [ident.pipeline for ident in pipelines_into(channel, "mysql")] == ["a", "c", "d"]
    assert [ident.pipeline for ident in pipelines_into(channel, "elasticsearch")] == ["b", "c", "d"]
