from dataclasses import replace

import pytest

from arbiter.handover import EARLY, answers, handover_due, handover_in_vacancy, objection
from arbiter.turns import ANY, Preference
from arbiter.values import (
    ChannelState,
    LeaderLock,
    LeaderLockStatus,
    NodeInfo,
    PipelineId,
    Signal,
    SignalKind,
    SignalState,
)

NODES = {nid: NodeInfo(nid, ready=nid != "cold") for nid in ("n1", "n2", "cold")}
LEADER = LeaderLock("n1", LeaderLockStatus.OVERTAKE, 10, 1)
SWITCH = Signal(SignalKind.SWITCHOVER, id="s-1", to="n2", leader="n1", epoch=10, by="root")
FAIL = replace(SWITCH, kind=SignalKind.FAILOVER)
START, PAUSE, STOP = ChannelState.START, ChannelState.PAUSE, ChannelState.STOP


def said(*signals, leader_lock=LEADER, state=START, nodes=NODES, preference=ANY, now=100.0):
    found = answers(signals, leader_lock, state=state, nodes=nodes, preference=preference, now=now)
    return [(a.signal.id, a.state, a.text) for a in found]


def test_what_can_be_done_is_done_and_not_answered_yet():
    assert said(SWITCH) == []
    assert handover_due([SWITCH], LEADER, 100.0) is SWITCH
    assert handover_in_vacancy([SWITCH], 100.0) is SWITCH


def test_the_named_node_answers_when_it_leads():
    new = replace(LEADER, nid="n2", epoch=11)
    assert said(SWITCH, leader_lock=new) == [("s-1", SignalState.DONE, "n2 leads, epoch 11")]
    assert handover_due([SWITCH], new, 100.0) is None


def test_another_node_that_had_to_take_over_says_so():
    new = replace(LEADER, nid="n3", epoch=11)
    (answer,) = said(SWITCH, leader_lock=new)
    assert answer[1:] == (SignalState.REFUSED, "n3 leads, epoch 11: n2 did not take over")


def test_without_a_name_any_other_node_will_do():
    anyone = replace(SWITCH, to="")
    new = replace(LEADER, nid="n3", epoch=11)
    assert said(anyone, leader_lock=new)[0][1] is SignalState.DONE
    again = replace(LEADER, epoch=11)
    assert said(anyone, leader_lock=again)[0][1:] == (
        SignalState.REFUSED,
        "n1 leads, epoch 11: no other node took over",
    )


def test_answered_requests_and_other_kinds_mean_nothing():
    for signal in (
        replace(SWITCH, state=SignalState.DONE),
        replace(SWITCH, state=SignalState.REFUSED),
        replace(SWITCH, kind=SignalKind.ROLLBACK),
        replace(SWITCH, kind=SignalKind.RESTART),
    ):
        assert said(signal, leader_lock=replace(LEADER, epoch=11)) == []
        assert handover_due([signal], LEADER, 100.0) is None
        assert handover_in_vacancy([signal], 100.0) is None


def test_a_scheduled_request_waits_for_its_time():
    later = replace(SWITCH, at=200.0)
    assert handover_due([later], LEADER, 199.9) is None
    assert handover_due([later], LEADER, 200.0) is later
    assert said(later, nodes={}, now=199.0) == []
    assert said(later, nodes={}, now=200.0)[0][1] is SignalState.REFUSED


def test_a_scheduled_request_is_dropped_when_the_leader_changes():
    later = replace(SWITCH, at=200.0)
    (answer,) = said(later, leader_lock=replace(LEADER, nid="n2", epoch=11), now=100.0)
    assert answer[1] is SignalState.REFUSED
    assert "dropped before its time" in answer[2]


def test_clocks_that_differ_do_not_spoil_a_handover():
    later = replace(SWITCH, at=200.0)
    assert handover_in_vacancy([later], 200.0 - EARLY) is later
    assert handover_in_vacancy([later], 199.9 - EARLY) is None
    new = replace(LEADER, nid="n2", epoch=11)
    assert said(later, leader_lock=new, now=200.0 - EARLY)[0][1] is SignalState.DONE


@pytest.mark.parametrize(
    ("changes", "state", "why"),
    [
        ({"to": "n9"}, START, "there is no live node n9; live: cold, n1, n2"),
        ({"to": "cold"}, START, "node cold is not warm yet"),
        ({"to": "n1"}, START, "node n1 leads already"),
        ({}, PAUSE, "the channel is paused"),
        ({}, STOP, "the channel is stopped"),
        ({}, None, "the channel is gone"),
        ({"kind": SignalKind.FAILOVER}, PAUSE, ""),
        ({"kind": SignalKind.FAILOVER}, STOP, "the channel is stopped"),
        ({}, START, ""),
        ({"to": ""}, START, ""),
    ],
)
def test_objections(changes, state, why):
    signal = replace(SWITCH, **changes)
    assert objection(signal, "n1", state=state, nodes=NODES, preference=ANY) == why


def test_nobody_else_could_lead():
    alone = {"n1": NODES["n1"], "cold": NODES["cold"]}
    signal = replace(SWITCH, to="")
    why = objection(signal, "n1", state=START, nodes=alone, preference=ANY)
    assert why == "no other node is ready to lead"
    never = Preference(weights={"n2": 0.0})
    why = objection(signal, "n1", state=START, nodes=NODES, preference=never)
    assert why == "no other node is ready to lead"
    why = objection(SWITCH, "n1", state=START, nodes=NODES, preference=never)
    assert why == "node n2 never leads this pipeline: its weight is 0"


@pytest.mark.parametrize("request_", [SWITCH, FAIL])
def test_a_node_that_does_not_serve_the_pipeline_cannot_be_named(request_):
    nodes = {
        "n1": NodeInfo("n1", ready=True, serves=("relay",)),
        "n2": NodeInfo("n2", ready=True, serves=("load",)),
    }
    needs = Preference(needs="relay")
    why = objection(request_, "n1", state=START, nodes=nodes, preference=needs)
    assert why == (
        "node n2 never leads this pipeline: it leads load pipelines only, and this is a relay"
        " pipeline"
    )
    assert said(request_, nodes=nodes, preference=needs) == [("s-1", SignalState.REFUSED, why)]
    anybody = replace(request_, to="")
    why = objection(anybody, "n1", state=START, nodes=nodes, preference=needs)
    assert why == "no other node is ready to lead"
    nodes["n3"] = replace(nodes["n1"], nid="n3")
    assert not objection(anybody, "n1", state=START, nodes=nodes, preference=needs)


def test_a_node_that_lacks_something_is_named_with_it():
    pipeline = PipelineId("shop", "there")
    lacking = NodeInfo("n2", ready=True, not_ready={pipeline: "a variable is not set"})
    nodes = {"n1": NodeInfo("n1", ready=True), "n2": lacking}
    named = Signal(SignalKind.SWITCHOVER, to="n2")
    asked = {"state": START, "nodes": nodes, "preference": ANY, "pipeline": pipeline}
    why = "node n2 cannot lead this pipeline: a variable is not set"
    assert objection(named, "n1", **asked) == why
    anybody = Signal(SignalKind.SWITCHOVER)
    assert objection(anybody, "n1", **asked) == "no other node is ready to lead"
