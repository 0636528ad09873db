"""Which leaderships are handed over when the load is to be spread again."""

from collections import Counter
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbiter.balancing import moves
from arbiter.turns import Preference
from arbiter.values import (
    Channel,
    ChannelState,
    Facts,
    LeaderLock,
    LeaderLockStatus,
    NodeInfo,
    PipelineId,
    Signal,
    SignalKind,
)


def ident(number):
    return PipelineId("shop", f"p{number:02}")


def facts(leads, *more, state=ChannelState.START, signals=(), **nodes):
    """Pipelines p00, p01, ... led by `leads`, with `more` nodes that lead nothing."""
    infos = {nid: NodeInfo(nid, ready=True) for nid in (*leads, *more)}
    infos.update(nodes)
    return Facts(
        nodes=infos,
        channels={"shop": Channel("shop", state)},
        leader_locks={
            ident(i): LeaderLock(nid, LeaderLockStatus.OVERTAKE, i + 1, i + 1)
            for i, nid in enumerate(leads)
        },
        signals=dict(signals),
    )


def after(seen, found):
    led = {pipeline: leader_lock.nid for pipeline, leader_lock in seen.leader_locks.items()}
    for move in found:
        assert led[move.pipeline] == move.leader != move.to
        led[move.pipeline] = move.to
    return Counter(led.values())


def test_a_node_that_joins_gets_its_partition():
    seen = facts(["n1"] * 6 + ["n2"] * 6, "n3")
    found = moves(seen, {})
    assert after(seen, found) == {"n1": 4, "n2": 4, "n3": 4}
    assert len(found) == 4
    assert found[0].reason in ("n1 leads 6, n3 leads 0", "n2 leads 6, n3 leads 0")


@given(st.lists(st.integers(0, 4), max_size=40), st.integers(1, 5))
def test_nobody_leads_more_than_the_mean_and_no_move_is_needless(owners, nodes):
    names = [f"n{i}" for i in range(nodes)]
    seen = facts([names[owner % nodes] for owner in owners], *names)
    found = moves(seen, {})
    counts = after(seen, found)
    low, high = len(owners) // nodes, ceil(len(owners) / nodes)
    assert all(low <= counts[nid] <= high for nid in names)
    before = Counter(m.nid for m in seen.leader_locks.values())
    too_many = sum(max(0, before[nid] - high) for nid in names)
    too_few = sum(max(0, low - before[nid]) for nid in names)
    assert len(found) == max(too_many, too_few)
    assert found == moves(seen, {})
    assert moves(seen, {}, at_most=2) == found[:2]


@given(st.data())
def test_with_any_preferences_each_move_is_allowed_and_gains(data):
    names = ["n1", "n2", "n3", "n4"]
    leads = data.draw(st.lists(st.sampled_from(names), max_size=12))
    not_ready = data.draw(st.sets(st.sampled_from([ident(i) for i in range(12)]), max_size=4))
    seen = facts(
        leads, *names, n4=NodeInfo("n4", ready=True, not_ready=dict.fromkeys(not_ready, "x"))
    )
    wishes = {
        pipeline: Preference(
            prefer=tuple(data.draw(st.permutations(names))[: data.draw(st.integers(0, 2))]),
            weights=data.draw(st.dictionaries(st.sampled_from(names), st.sampled_from([0, 1, 3]))),
        )
        for pipeline in seen.leader_locks
    }
    stay = data.draw(st.sets(st.sampled_from(sorted(seen.leader_locks, key=str) or [ident(0)])))
    closed = data.draw(st.sets(st.sampled_from(names), max_size=2))
    found = moves(seen, wishes, stay=stay, closed=closed)
    assert len({move.pipeline for move in found}) == len(found)
    counts = Counter(leads)
    for move in found:
        wish = wishes[move.pipeline]
        rank = [*wish.prefer, *(n for n in names if n not in wish.prefer)].index
        ranks = [min(rank(nid), len(wish.prefer)) for nid in (move.to, move.leader)]
        assert move.pipeline not in stay
        assert move.to not in closed
        assert wish.weights.get(move.to, 1) > 0
        assert move.to != "n4" or move.pipeline not in not_ready
        if wish.weights.get(move.leader, 1) > 0:
            shares = [
                (counts[move.to] + 1) / wish.weights.get(move.to, 1),
                counts[move.leader] / wish.weights.get(move.leader, 1),
            ]
            assert ranks[0] < ranks[1] or (ranks[0] == ranks[1] and shares[0] < shares[1])
        counts[move.leader] -= 1
        counts[move.to] += 1


def test_what_stays_counts_and_does_not_move():
    seen = facts(["n1"] * 4, "n2")
    found = moves(seen, {}, stay={ident(0), ident(1), ident(2)})
    assert [move.pipeline for move in found] == [ident(3)]
    assert not moves(seen, {}, stay=set(seen.leader_locks))


@pytest.mark.parametrize(
    "other",
    [
        NodeInfo("n2", ready=False),
        NodeInfo("n2", ready=True, serves=("relay",)),
        NodeInfo("n2", ready=True, not_ready={ident(i): "a file is missing" for i in range(4)}),
    ],
    ids=["cold", "of another kind", "lacks something"],
)
def test_a_node_that_is_no_candidate_gets_nothing(other):
    wishes = {ident(i): Preference(needs="load") for i in range(4)}
    assert not moves(facts(["n1"] * 4, n2=other), wishes)


def test_a_closed_node_gets_nothing():
    assert not moves(facts(["n1"] * 4, "n2"), {}, closed={"n2"})


def test_nothing_moves_of_a_channel_that_rests_or_while_a_change_is_asked_for():
    assert not moves(facts(["n1"] * 2, "n2", state=ChannelState.PAUSE), {})
    asked = {ident(i): (Signal(SignalKind.SWITCHOVER, id="s", epoch=1),) for i in range(3)}
    seen = facts(["n1"] * 4, "n2", signals=asked)
    assert [move.pipeline for move in moves(seen, {})] == [ident(3)]


def test_a_leader_that_is_gone_hands_nothing_over():
    seen = facts(["n1"] * 4, "n2")
    nodes = {"n2": seen.nodes["n2"]}
    assert not moves(Facts(nodes, seen.channels, seen.leader_locks), {})


def test_weights_and_preferences_are_those_of_take_over():
    seen = facts(["n1"] * 8, "n2")
    weights = Preference(weights={"n2": 3.0})
    found = moves(seen, dict.fromkeys(seen.leader_locks, weights))
    assert after(seen, found) == {"n1": 2, "n2": 6}
    assert found[0].reason == "n1 leads 8, n2 leads 0 (weights 1 and 3)"
    (back,) = moves(facts(["n1", "n2", "n1"]), {ident(0): Preference(prefer=("n2",))})
    assert (back.pipeline, back.to, back.reason) == (ident(0), "n2", "it prefers n2 to n1")
    (away,) = moves(facts(["n1", "n2", "n1"]), {ident(0): Preference(weights={"n1": 0.0})})
    assert (away.to, away.reason) == ("n2", "n1 is not to lead it")
