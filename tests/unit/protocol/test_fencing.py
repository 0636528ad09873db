"""The fencing protocol explored exhaustively: it is safe, and without any of its parts it is not.

Run with ``-s`` to see how many states there are and the shortest way to each violation.
"""

import pytest

from arbiter.election import Action
from arbiter.errors import Contact
from tests.unit.protocol.effects import L1, S1, S2, S3, S4
from tests.unit.protocol.explore import explore
from tests.unit.protocol.protocol import Protocol, first
from tests.unit.protocol.rules import action
from tests.unit.protocol.state import Node, Run, State, Stray, key

CALM = {"operator": False, "rebuilds": False}


def search(protocol, nodes=2, seen=None, others=0):
    def steps(state):
        if seen is not None:
            seen.append(state)
        return protocol.steps(state)

    found = explore(first(nodes, others), steps, key=protocol.key, stuck=L1)
    print(f"\n{nodes} nodes, {protocol}:\n{found}")  # noqa: T201 - shown with -s
    return found


def test_no_interleaving_lets_an_old_epoch_commit_and_none_is_a_dead_end():
    seen = []
    found = search(Protocol(), seen=seen)
    assert not found.violation, str(found)
    assert_everything_happens(seen)


@pytest.mark.parametrize(
    ("nodes", "strays", "at_least"),
    [(2, 2, 10_000), (3, 0, 9_000)],
    ids=["two pieces of work left behind", "three nodes"],
)
def test_nor_does_one_with_more_of_everything(nodes, strays, at_least):
    found = search(Protocol(max_strays=strays, **CALM), nodes)
    assert not found.violation, str(found)
    # A search that stopped too early would find nothing either.
    assert found.states >= at_least


def test_a_node_of_another_kind_stays_out_of_it_and_is_in_nobodys_way():
    seen = []
    found = search(Protocol(max_strays=0, **CALM), seen=seen, others=1)
    assert not found.violation, str(found)
    assert all(state.nodes[2].run is None for state in seen)
    assert {state.leader_lock.node for state in seen if state.leader_lock} == {0, 1}
    assert any(state.nodes[2].frozen for state in seen)


def test_with_nodes_of_another_kind_alone_nobody_leads():
    found = explore(first(0, 2), Protocol(**CALM).steps, key=Protocol().key, stuck=L1)
    assert found.violation == L1
    assert not any(state.leader_lock for _, state in found.trace)


def assert_everything_happens(states):
    """What the model is about does occur in it."""
    assert len(states) > 60_000
    phases = {n.run.phase for s in states for n in s.nodes if n.run}
    assert phases == {"taking", "raised", "idle", "loading", "done", "fenced"}
    assert {s.wanted for s in states} == {"START", "PAUSE", "STOP"}
    assert {(x.kind, x.open) for s in states for x in s.strays} == {
        ("raise", False), ("load", False), ("load", True), ("store", False), ("store", True),
    }  # fmt: skip
    assert any(s.rebuilt for s in states)
    assert any(n.frozen and n.run and n.run.phase == "loading" for s in states for n in s.nodes)
    assert any(n.run and n.run.suspended for s in states for n in s.nodes)
    assert any(s.leader_lock and not s.leader_lock.own for s in states)
    both = [s for s in states if all(n.busy for n in s.nodes)]
    assert any(s.nodes[0].run.epoch != s.nodes[1].run.epoch for s in both)


@pytest.mark.parametrize(
    ("missing", "violation"),
    [
        ("compares", S1),
        ("keeps_lock", S1),
        ("waits", S1),
        ("raises_first", S1),
        ("spends", S1),
        ("ends_run", S1),
        ("checks_session", S1),
        ("below", S1),
        ("fences_checkpoint", S2),
        ("doubts", S3),
        ("only_rises", S4),
        ("kills", L1),
        ("kills_own", L1),
        ("renumbers", L1),
    ],
)
def test_every_protection_is_needed(missing, violation):
    rebuilds = missing in ("renumbers", "below", "only_rises")
    found = search(Protocol(**{missing: False}, operator=False, rebuilds=rebuilds))
    assert found.violation == violation, str(found)
    assert len(found.trace) > 2


def test_a_stale_transaction_of_another_node_is_what_the_lock_is_for():
    # The shortest trace without the lock is about one node; leave that hint.
    found = search(Protocol(keeps_lock=False, max_strays=0, **CALM))
    assert found.violation == S1
    labels = [label for label, _ in found.trace]
    assert labels[-1] == "A commits"
    assert labels.index("A begins a transaction") < labels.index("B raises the fence")
    assert "B selects" in labels


def test_states_that_count_as_one_hide_nothing():
    # The target refuses a run below its fence whatever it does, so its phase is left out of
    # the key. With it there are more states, and the same is found in them.
    protocol = Protocol(max_strays=0, **CALM)

    class Distinct(Protocol):
        def key(self, state):
            return key(state, refuses=False)

    coarse, fine = search(protocol), search(Distinct(max_strays=0, **CALM))
    assert coarse.states < fine.states
    assert not coarse.violation
    assert not fine.violation


# -- the rules that the nodes of the model follow ---------------------------------------------


def test_the_rules_are_those_of_the_election():
    assert action(Contact.CONNECTED) is Action.CAMPAIGN
    assert action(Contact.CONNECTED, holder="other") is Action.FOLLOW
    assert action(Contact.CONNECTED, holder="other", busy=True) is Action.ABORT
    assert action(Contact.CONNECTED, holder="own", busy=True) is Action.LEAD
    assert action(Contact.CONNECTED, holder="own", burnt_epoch=True) is Action.STEP_DOWN
    assert action(Contact.CONNECTED, holder="earlier") is Action.WAIT
    assert action(Contact.CONNECTED, holder="earlier", trust_nid=True) is Action.LEAD
    assert action(Contact.CONNECTED, holder="own", wanted="PAUSE", busy=True) is Action.HOLD
    assert action(Contact.CONNECTED, holder="own", wanted="STOP", busy=True) is Action.DRAIN
    assert action(Contact.CONNECTED, holder="own", wanted="STOP") is Action.STEP_DOWN
    assert action(Contact.CONNECTED, serves=False) is Action.WAIT
    assert action(Contact.CONNECTED, holder="own", busy=True, serves=False) is Action.LEAD
    assert action(Contact.SUSPENDED, busy=True) is Action.SUSPEND
    assert action(Contact.SUSPENDED, busy=True, late=True) is Action.ABORT
    assert action(Contact.LOST, busy=True) is Action.ABORT


def test_a_state_says_what_matters():
    state = State(
        (Node(frozen=True, run=Run(1, "loading")), Node(run=Run(2, suspended=True))),
        fence=1,
        strays=(Stray("load", 1, open=True),),
    )
    assert str(state) == (
        "A: frozen loading under epoch 1; B: taking under epoch 2 suspended; "
        "target: fence 1, applied 0, checkpoint 0; stray open load of epoch 1"
    )
