"""What is refused before it is written down, and how answers are waited for."""

import pytest

from arbiter import requests
from arbiter.requests import Refused, Requester
from arbiter.turns import ANY, Preference
from arbiter.values import ChannelState, NodeInfo, PipelineId, SignalKind, SignalState
from tests.arbiter_in_memory import MemoryArbiter

PIPELINE = PipelineId("shop", "there")
ROOT = Requester("root", 100.0)


@pytest.fixture
def n1(cluster, operator):
    arbiter = MemoryArbiter(cluster)
    arbiter.nodes.announce(NodeInfo("n1", ready=True))
    arbiter.leader_locks.campaign(PIPELINE, "n1")
    return arbiter


@pytest.fixture
def n2(cluster, operator):
    arbiter = MemoryArbiter(cluster)
    arbiter.nodes.announce(NodeInfo("n2", ready=True))
    return arbiter


def refused(call, *args, **options):
    with pytest.raises(Refused) as caught:
        call(*args, **options)
    return str(caught.value)


@pytest.mark.parametrize("call", [requests.switchover, requests.failover])
def test_a_node_of_another_kind_cannot_be_made_the_leader(call, cluster, operator, n1):
    MemoryArbiter(cluster).nodes.announce(NodeInfo("r1", ready=True, serves=("relay",)))
    held = operator.leader_locks.one(PIPELINE)
    why = refused(call, operator, PIPELINE, Preference(needs="load"), ROOT, to="r1")
    assert why == (
        "node r1 never leads this pipeline: it leads relay pipelines only, and this is a load"
        " pipeline"
    )
    assert operator.leader_locks.one(PIPELINE) == held
    assert not operator.signals.all(PIPELINE)


def test_a_switchover_names_the_leadership_it_was_meant_for(operator, n1, n2):
    sent = requests.switchover(operator, PIPELINE, ANY, ROOT, to="n2", at=200.0)
    assert (sent.leader, sent.epoch) == ("n1", operator.leader_locks.one(PIPELINE).epoch)
    assert (sent.to, sent.at, sent.by, sent.sent) == ("n2", 200.0, "root", 100.0)
    assert list(operator.signals.all(PIPELINE)) == [sent]


def test_what_a_switchover_is_refused_for(operator, n1):
    switchover = (requests.switchover, operator, PIPELINE, ANY, ROOT)
    assert refused(*switchover, to="n9") == "there is no live node n9; live: n1"
    assert refused(*switchover, to="n1") == "node n1 leads already"
    assert refused(*switchover) == "no other node is ready to lead"
    requests.change_state(operator, "shop", ChannelState.PAUSE)
    assert refused(*switchover) == "the channel is paused"
    n1.close()
    assert refused(*switchover).startswith("no node leads shop/there")
    nowhere = PipelineId("nowhere", "p")
    assert "known: shop" in refused(requests.switchover, operator, nowhere, ANY, ROOT)
    assert list(operator.signals.all(PIPELINE)) == []


def test_one_change_of_the_leader_at_a_time(operator, n1, n2):
    requests.switchover(operator, PIPELINE, ANY, ROOT, at=200.0)
    assert "is scheduled already" in refused(requests.switchover, operator, PIPELINE, ANY, ROOT)
    (cancelled,) = requests.cancel(operator, PIPELINE, ROOT)
    assert (cancelled.state, cancelled.answer) == (SignalState.REFUSED, "taken back by root")
    requests.switchover(operator, PIPELINE, ANY, ROOT)
    assert "is under way already" in refused(requests.failover, operator, PIPELINE, ANY, ROOT)
    assert "no switchover" in refused(requests.cancel, operator, PIPELINE, ROOT)


def test_a_refused_failover_takes_nothing_away(operator, n1):
    refused(requests.failover, operator, PIPELINE, ANY, ROOT, to="n9")
    assert operator.leader_locks.one(PIPELINE) is not None


@pytest.mark.parametrize("kind", [SignalKind.ROLLBACK, SignalKind.RESTART])
def test_only_a_leader_can_be_asked(operator, cluster, kind):
    assert refused(requests.ask_leader, operator, PIPELINE, kind, ROOT).startswith("no node leads")


def test_answers_are_waited_for(operator, n1):
    sent = requests.ask_leader(operator, PIPELINE, SignalKind.ROLLBACK, ROOT)

    def answer(_seconds):
        n1.signals.answer(PIPELINE, sent, SignalState.DONE, "done")

    seen = requests.await_answer(operator, PIPELINE, sent, 5.0, wait=answer)
    assert (seen.state, seen.answer) == (SignalState.DONE, "done")


def test_an_answer_that_does_not_come(operator, n1):
    sent = requests.ask_leader(operator, PIPELINE, SignalKind.ROLLBACK, ROOT)
    seen = requests.await_answer(operator, PIPELINE, sent, 0.0)
    assert seen.state is SignalState.PENDING
