"""Switchovers and failovers that operators ask for, as the nodes' elections carry them out."""

from arbiter import requests
from arbiter.election import Action
from arbiter.requests import Requester
from arbiter.turns import ANY
from arbiter.values import ChannelState, SignalState
from tests.unit.arbiter.elected_node import PIPELINE, Node, lead, set_state

OPERATOR = Requester("root", 0.0)


def outcome(operator):
    signal = operator.signals.all(PIPELINE)[-1]
    return signal.state, signal.answer


def test_a_switchover_drains_then_hands_over_to_the_node_that_was_named(cluster, n1, n2, operator):
    n3 = Node(cluster, "n3")
    lead(cluster, n1, n2, n3)
    requests.switchover(operator, PIPELINE, ANY, OPERATOR, to="n3")
    assert n1.act() is Action.DRAIN
    assert outcome(operator) == (SignalState.PENDING, "")
    state = n1.cycle()
    assert (state.decision.action, state.leads) == (Action.STEP_DOWN, False)
    assert n2.act() is Action.WAIT
    cluster.advance(1)
    assert n2.act() is Action.WAIT
    assert n1.act() is Action.WAIT
    state = n3.cycle()
    assert state.decision.action is Action.LEAD
    assert state.reason == "node n3 campaigns at once: switchover by root"
    n3.cycle()
    assert state.leader_lock is not None
    assert outcome(operator) == (SignalState.DONE, f"n3 leads, {state.leader_lock.leadership}")
    assert [n.act() for n in (n1, n2, n3)] == [Action.FOLLOW, Action.FOLLOW, Action.LEAD]
    cluster.advance(60)
    assert [n.act() for n in (n1, n2, n3)] == [Action.FOLLOW, Action.FOLLOW, Action.LEAD]


def test_a_switchover_to_anybody_leaves_the_old_leader_out(cluster, n1, n2, operator):
    lead(cluster, n1, n2)
    requests.switchover(operator, PIPELINE, ANY, OPERATOR)
    assert n1.act() is Action.DRAIN
    assert n1.act() is Action.STEP_DOWN
    assert n1.act() is Action.WAIT
    assert n2.act() is Action.LEAD
    n2.cycle()
    assert outcome(operator)[0] is SignalState.DONE


def test_the_named_node_dies_before_it_can_take_over(cluster, n1, n2, operator):
    lead(cluster, n1, n2)
    requests.switchover(operator, PIPELINE, ANY, OPERATOR, to="n2")
    n1.act()
    assert n1.act() is Action.STEP_DOWN
    assert n1.act() is Action.WAIT
    n2.link.cut()
    cluster.advance(4.9)
    assert n1.act() is Action.WAIT
    cluster.advance(0.1)
    state = n1.cycle()
    assert state.decision.action is Action.LEAD
    n1.cycle()
    assert outcome(operator) == (
        SignalState.REFUSED,
        f"n1 leads, {state.leader_lock.leadership}: n2 did not take over",
    )


def test_the_named_node_went_away_before_the_time_came(cluster, n1, n2, operator):
    lead(cluster, n1, n2)
    due = cluster.clock.now() + 30
    requests.switchover(operator, PIPELINE, ANY, OPERATOR, to="n2", at=due)
    assert n1.act() is Action.LEAD
    n2.link.close()
    cluster.advance(30)
    assert n1.act() is Action.LEAD
    assert outcome(operator) == (SignalState.REFUSED, "there is no live node n2; live: n1")


def test_a_scheduled_switchover_happens_at_its_time(cluster, n1, n2, operator):
    lead(cluster, n1, n2)
    due = cluster.clock.now() + 30
    requests.switchover(operator, PIPELINE, ANY, OPERATOR, to="n2", at=due)
    cluster.advance(29.9)
    assert n1.act() is Action.LEAD
    cluster.advance(0.1)
    assert n1.act() is Action.DRAIN


def test_a_scheduled_switchover_is_dropped_when_the_leader_dies_before(cluster, n1, n2, operator):
    lead(cluster, n1, n2)
    requests.switchover(operator, PIPELINE, ANY, OPERATOR, to="n2", at=cluster.clock.now() + 100)
    n1.link.cut()
    cluster.advance(10)
    n2.cycle()
    cluster.advance(0.5)
    assert n2.act() is Action.LEAD
    n2.cycle()
    state, answer = outcome(operator)
    assert state is SignalState.REFUSED
    assert "dropped before its time" in answer


def test_a_switchover_of_a_cancelled_epoch_hands_over_all_the_same(cluster, n1, n2, operator):
    lead(cluster, n1, n2)
    requests.switchover(operator, PIPELINE, ANY, OPERATOR, to="n2")
    n1.busy = False
    assert n1.cycle(burnt_epoch=n1.epochs[-1]).decision.action is Action.STEP_DOWN
    assert n1.act() is Action.WAIT
    assert n2.act() is Action.LEAD


def test_a_failover_without_a_leader(cluster, n1, n2, operator):
    set_state(operator, ChannelState.PAUSE)
    for node in (n1, n2):
        node.cycle()
    cluster.advance(60)
    assert n1.act() is n2.act() is Action.WAIT
    requests.failover(operator, PIPELINE, ANY, OPERATOR, to="n2")
    assert n1.act() is Action.WAIT
    state = n2.cycle()
    assert state.leads
    assert state.decision.action is Action.HOLD
    n2.cycle()
    assert outcome(operator)[0] is SignalState.DONE


def test_a_failover_deposes_a_leader_that_does_not_answer(cluster, n1, n2, operator):
    lead(cluster, n1, n2)
    requests.failover(operator, PIPELINE, ANY, OPERATOR, to="n2")
    assert n2.act() is Action.LEAD
    assert n1.act() is Action.ABORT  # as soon as it looks again
    assert n1.act() is Action.FOLLOW


def test_the_named_node_dies_as_soon_as_it_leads(cluster, n1, n2, operator):
    """It answered nothing yet, so that the request is open; a node that is gone is not waited for.

    A session of ten seconds, then the five of a request: that would be two outages for one death.
    """
    lead(cluster, n1, n2)
    requests.switchover(operator, PIPELINE, ANY, OPERATOR, to="n2")
    n1.act()
    assert n1.act() is Action.STEP_DOWN
    taken = n2.campaign.cycle(n2.look(), busy=False, ready=True)
    assert taken.leads
    assert n1.act() is Action.FOLLOW
    n2.link.cut()
    cluster.advance(9.9)
    assert n1.act() is Action.FOLLOW
    cluster.advance(0.1)
    state = n1.cycle()
    assert state.decision.action is Action.LEAD
    n1.cycle()
    assert outcome(operator)[0] is SignalState.REFUSED
