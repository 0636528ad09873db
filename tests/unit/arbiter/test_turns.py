from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbiter.turns import ANY, Preference, queues
from arbiter.values import EVERYTHING, Facts, LeaderLock, LeaderLockStatus, NodeInfo, PipelineId


def ident(name):
    return PipelineId("shop", name)


def facts(*nids, leads=(), cold=()):
    nodes = {nid: NodeInfo(nid, ready=nid not in cold) for nid in nids}
    leader_locks = {
        ident(f"led-{i}"): LeaderLock(nid, LeaderLockStatus.OVERTAKE, i + 1, i + 1)
        for i, nid in enumerate(leads)
    }
    return Facts(nodes=nodes, leader_locks=leader_locks)


def first_turns(vacant, facts, preferences=None):
    dealt = queues(vacant, facts, preferences or {})
    return [dealt[pipeline][0] for pipeline in sorted(vacant, key=str)]


def test_what_a_node_leads_already_counts():
    vacant = [ident("p1"), ident("p2")]
    assert first_turns(vacant, facts("n1", "n2", leads=["n1", "n1"])) == ["n2", "n2"]


def test_weights_are_shares():
    weights = Preference(weights={"n1": 3.0})
    vacant = [ident(f"p{i}") for i in range(8)]
    counts = Counter(first_turns(vacant, facts("n1", "n2"), dict.fromkeys(vacant, weights)))
    assert counts == {"n1": 6, "n2": 2}


def mixed():
    """Two nodes of each kind, one that does not say what it serves, and a cold one."""
    kinds = {"l1": "load", "l2": "load", "r1": "relay", "r2": "relay", "r3": "relay"}
    nodes = {nid: NodeInfo(nid, ready=nid != "r3", serves=(k,)) for nid, k in kinds.items()}
    return Facts(nodes={**nodes, "old": NodeInfo("old", ready=True)})


@pytest.mark.parametrize(
    ("wish", "seen", "queue"),
    [
        # The most preferred live node comes first, whatever it leads.
        (Preference(("n3", "n2")), facts("n1", "n2", "n3", leads=["n3", "n3", "n2"]),
         ("n3", "n2", "n1")),
        (Preference(("n3", "n2")), facts("n1", "n2", leads=["n2"]), ("n2", "n1")),
        # A cold node, one with the weight 0 and one that does not serve are in no queue.
        (Preference(("n1",), {"n2": 0.0}), facts("n1", "n2", "n3", cold=["n1"]), ("n3",)),
        (ANY, facts("n1", cold=["n1"]), ()),
        (Preference(("l1", "r2"), {"l2": 9.0, "r1": 0.0}, "relay"), mixed(), ("r2", "old")),
    ],
)  # fmt: skip
def test_the_queue_for_a_pipeline(wish, seen, queue):
    assert queues([ident("p")], seen, {ident("p"): wish}) == {ident("p"): queue}


def test_a_node_that_does_not_serve_a_pipeline_is_in_no_queue_for_it():
    wish = {ident("a"): Preference(needs="load"), ident("b"): Preference(needs="relay")}
    dealt = queues(wish, mixed(), wish)
    assert set(dealt[ident("a")]) == {"l1", "l2", "old"}
    assert set(dealt[ident("b")]) == {"r1", "r2", "old"}
    assert set(queues([ident("p")], mixed(), {})[ident("p")]) == {"l1", "l2", "r1", "r2", "old"}


def test_pipelines_of_one_kind_are_spread_over_the_nodes_that_serve_it():
    wish = {ident(f"p{i}"): Preference(needs="relay") for i in range(6)}
    counts = Counter(first_turns(list(wish), mixed(), wish))
    assert counts == {"r1": 2, "r2": 2, "old": 2}


@pytest.mark.parametrize(
    ("serves", "why"),
    [
        (("relay",), ""),
        (("load", "relay"), ""),
        (EVERYTHING, ""),
        (("load",), "it leads load pipelines only, and this is a relay pipeline"),
        (("load", "x"), "it leads load and x pipelines only, and this is a relay pipeline"),
    ],
)
def test_why_a_node_never_leads(serves, why):
    wish = Preference(needs="relay")
    assert wish.why_never("n1", serves) == why
    assert wish.served_by(serves) == (not why)
    assert Preference(weights={"n1": 0}).why_never("n1", EVERYTHING) == "its weight is 0"
    assert ANY.why_never("n1", EVERYTHING) == ""


names = st.sets(st.sampled_from([f"n{i}" for i in range(6)]), min_size=1)


@given(names, st.integers(1, 30), st.permutations(range(30)))
def test_every_node_comes_to_the_same_answer(nids, count, order):
    vacant = [ident(f"p{i}") for i in range(count)]
    shuffled = [vacant[i] for i in order if i < count]
    forward, backward = sorted(nids), sorted(nids, reverse=True)
    assert queues(vacant, facts(*forward), {}) == queues(shuffled, facts(*backward), {})


@given(names, st.integers(1, 40))
def test_no_node_is_dealt_more_than_its_partition(nids, count):
    vacant = [ident(f"p{i}") for i in range(count)]
    counts = Counter(first_turns(vacant, facts(*sorted(nids))))
    assert max(counts.values()) - min(counts[n] for n in nids) <= 1


def test_a_node_that_lacks_something_is_in_no_queue_for_that_pipeline():
    one, other = PipelineId("c", "one"), PipelineId("c", "other")
    nodes = {
        "n1": NodeInfo("n1", ready=True, not_ready={one: "a variable is not set"}),
        "n2": NodeInfo("n2", ready=True),
    }
    dealt = queues([one, other], Facts(nodes=nodes), {})
    assert dealt[one] == ("n2",)
    assert sorted(dealt[other]) == ["n1", "n2"]
