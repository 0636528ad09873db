"""What every arbiter must do, whatever is behind it."""

import threading
import uuid
from dataclasses import replace

import pytest

from arbiter.access import Access, Tls
from arbiter.errors import Conflict, Contact, Invalid, NotFound, Unreachable
from arbiter.journal import SIGNALS_KEPT
from arbiter.values import (
    EVERYTHING,
    AlarmSender,
    ChannelState,
    Facts,
    HistoryItem,
    Mainstem,
    MainstemStatus,
    NodeInfo,
    OperatorAction,
    PipelineId,
    Signal,
    SignalKind,
    SignalState,
)
from arbiter.zookeeper import ZooKeeperArbiter
from setl_embedded.zookeeper import ZooKeeperEnsemble
from setl_embedded.zookeeper_security import ZooKeeperSecurity
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.waiting import eventually

PIPELINE = PipelineId("shop", "there")
BACK = PipelineId("shop", "back")


class MemoryPlace:
    """Sessions over one cluster in memory."""

    def __init__(self):
        self.cluster = MemoryCluster()

    def join(self, **options):
        return MemoryArbiter(self.cluster, **options)

    def put(self, path, data):
        self.cluster.put(f"/setl{path}", data)

    def remove(self, path):
        self.cluster.remove(f"/setl{path}")


class ZooKeeperPlace:
    """Sessions under one root of a real server, or of an ensemble."""

    def __init__(self, hosts, access=None, **secured):
        self.hosts = hosts
        self.access = access
        self.secured = secured
        self.root = f"/contract-{uuid.uuid4().hex[:12]}"
        self.arbiters = []

    def join(self, **options):
        arbiter = ZooKeeperArbiter(self.hosts, root=self.root, access=self.access, **options)
        self.arbiters.append(arbiter)
        arbiter.start()
        return arbiter

    def _with_client(self, act):
        from kazoo.client import KazooClient

        client = KazooClient(self.hosts, **self.secured)
        client.start()
        try:
            act(client)
        finally:
            client.stop()
            client.close()

    def put(self, path, data):
        self._with_client(lambda client: client.set(self.root + path, data))

    def remove(self, path):
        self._with_client(lambda client: client.delete(self.root + path))

    def close(self):
        for arbiter in self.arbiters:
            arbiter.close()


@pytest.fixture
def memory_place():
    return MemoryPlace()


@pytest.fixture
def zookeeper_place(zookeeper):
    place = ZooKeeperPlace(zookeeper.hosts)
    yield place
    place.close()


@pytest.fixture(scope="session")
def secured_ensemble(stack_folder):
    """Three servers that speak TLS and want a login, as in earnest."""
    security = ZooKeeperSecurity(stack_folder / "secured", tls=True, accounts=["setl"])
    with ZooKeeperEnsemble(stack_folder / "secured", security=security) as ensemble:
        yield ensemble, security


@pytest.fixture
def ensemble_place(secured_ensemble):
    ensemble, security = secured_ensemble
    password = security.passwords["setl"]
    login = {"mechanism": "DIGEST-MD5", "username": "setl", "password": password}
    ca = str(security.ca)
    # All through one member: what one session writes, another sees at once only on the same
    # server. A follower may answer from a moment ago, which no rule of the arbiter minds.
    place = ZooKeeperPlace(
        ensemble.servers[0].hosts,
        Access(sasl=login, tls=Tls(ca=ca)),
        sasl_options=dict(login),
        use_ssl=True,
        ca=ca,
    )
    yield place
    place.close()


@pytest.fixture(
    params=[
        "memory_place",
        pytest.param("zookeeper_place", marks=pytest.mark.servers),
        pytest.param("ensemble_place", marks=pytest.mark.servers),
    ]
)
def place(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def a(place):
    arbiter = place.join()
    arbiter.put_channel("shop", {"channel": "shop"})
    return arbiter


@pytest.fixture
def b(place, a):
    return place.join()


# -- session --------------------------------------------------------------------------------


def test_a_joined_session_is_connected_and_was_alive_lately(a):
    assert a.contact() is Contact.CONNECTED
    assert a.session_id() != 0
    assert a.last_contact() > 0
    assert a.session_timeout == 10.0


def test_sessions_differ(a, b):
    assert a.session_id() != b.session_id()


def test_a_closed_session_is_lost_and_refuses_calls(a):
    a.close()
    assert a.contact() is Contact.LOST
    assert a.session_id() == 0
    with pytest.raises(Unreachable):
        a.channels()
    with pytest.raises(Unreachable):
        a.campaign(PIPELINE, "n1")
    a.close()


# -- nodes ----------------------------------------------------------------------------------


def test_nodes_are_announced_and_sorted(a, b):
    second = NodeInfo("n2", host="h2", pid=22, http="http://h2:1", started=2.5)
    first = NodeInfo("n1", host="hé1", pid=11, http="http://h1:1", started=1.5)
    a.announce(second)
    b.announce(first)
    assert list(a.nodes()) == [first, second]


def test_nodes_say_what_they_serve(a, b):
    relay = NodeInfo("n1", ready=True, serves=("relay",))
    a.announce(relay)
    b.announce(NodeInfo("n2", serves=("load", "relay")))
    assert [node.serves for node in a.nodes()] == [("relay",), ("load", "relay")]
    assert b.facts().nodes["n1"] == relay


def test_a_node_of_an_earlier_release_serves_everything(place, a):
    a.announce(NodeInfo("n1", serves=("relay",)))
    place.put("/nodes/n1", b'{"version":1,"host":"h1","ready":true}')
    assert list(a.nodes()) == [NodeInfo("n1", host="h1", ready=True, serves=EVERYTHING)]


def test_announcing_again_changes_what_is_known(a, b):
    a.announce(NodeInfo("n1", host="h1"))
    a.announce(NodeInfo("n1", host="h1"))
    a.announce(NodeInfo("n1", host="h2"))
    assert list(b.nodes()) == [NodeInfo("n1", host="h2")]


def test_a_node_id_belongs_to_one_session(a, b):
    a.announce(NodeInfo("n1", host="h1"))
    with pytest.raises(Conflict, match="'n1'"):
        b.announce(NodeInfo("n1", host="h2"))
    assert list(b.nodes()) == [NodeInfo("n1", host="h1")]
    a.close()
    b.announce(NodeInfo("n1", host="h2"))
    assert list(b.nodes()) == [NodeInfo("n1", host="h2")]


def test_a_node_goes_with_its_session(a, b):
    a.announce(NodeInfo("n1"))
    assert [node.nid for node in b.nodes()] == ["n1"]
    a.close()
    assert list(b.nodes()) == []


def test_an_unreadable_node_is_still_there(place, a):
    a.announce(NodeInfo("n1", host="h1", pid=3))
    place.put("/nodes/n1", b"{broken")
    assert list(a.nodes()) == [NodeInfo("n1")]


@pytest.mark.parametrize("name", ["", "a/b", "..", ".", "a b", "ä", "x" * 129, "n1\n"])
def test_names_that_are_no_path_component_are_refused(a, name):
    with pytest.raises(Invalid):
        a.announce(NodeInfo(name))
    with pytest.raises(Invalid):
        a.put_channel(name, {})
    with pytest.raises(Invalid):
        a.campaign(PipelineId("shop", name), "n1")
    with pytest.raises(Invalid):
        a.campaign(PIPELINE, name)


# -- channels -------------------------------------------------------------------------------


def test_a_new_channel_is_stopped(place):
    arbiter = place.join()
    assert list(arbiter.channels()) == []
    stored = arbiter.put_channel("shop", {"pipelines": [{"name": "there"}], "text": "grün 🌱"})
    assert stored.state is ChannelState.STOP
    assert stored.definition == {"pipelines": [{"name": "there"}], "text": "grün 🌱"}
    assert arbiter.channel("shop") == stored
    assert list(arbiter.channels()) == [stored]


def test_channels_are_sorted(a):
    a.put_channel("bank", {})
    a.put_channel("zoo", {})
    assert [channel.name for channel in a.channels()] == ["bank", "shop", "zoo"]


def test_a_missing_channel_is_not_found(a):
    with pytest.raises(NotFound, match="'nothing'"):
        a.channel("nothing")
    with pytest.raises(NotFound):
        a.campaign(PipelineId("nothing", "there"), "n1")
    with pytest.raises(NotFound):
        a.store_position(PipelineId("nothing", "there"), {}, None)
    with pytest.raises(NotFound):
        a.add_history(PipelineId("nothing", "there"), HistoryItem(1, "n1", "", 0.0))
    assert [channel.name for channel in a.channels()] == ["shop"]


def test_a_new_definition_keeps_the_state(a):
    a.set_state(a.channel("shop"), ChannelState.START)
    a.put_channel("shop", {"new": True})
    assert a.channel("shop").state is ChannelState.START
    assert a.channel("shop").definition == {"new": True}


def test_a_definition_is_replaced_only_as_it_was_read(a, b):
    seen = b.channel("shop")
    first = a.store_channel("shop", {"of": "a"}, a.channel("shop"))
    with pytest.raises(Conflict, match="changed meanwhile"):
        b.store_channel("shop", {"of": "b"}, seen)
    assert b.channel("shop") == first
    started = a.set_state(first, ChannelState.START)
    with pytest.raises(Conflict):
        b.store_channel("shop", {"of": "b"}, first)
    assert b.store_channel("shop", {"of": "b"}, started).state is ChannelState.START
    assert a.channel("shop").definition == {"of": "b"}


def test_a_channel_is_made_only_where_there_is_none_and_changed_only_where_there_is_one(a, b):
    made = a.store_channel("bank", {"of": "a"}, None)
    assert made.state is ChannelState.STOP
    with pytest.raises(Conflict):
        b.store_channel("bank", {"of": "b"}, None)
    assert b.channel("bank") == made
    a.remove_channel(made)
    with pytest.raises(Conflict):
        b.store_channel("bank", {"of": "b"}, made)
    assert [channel.name for channel in b.channels()] == ["shop"]


def test_a_state_is_changed_only_as_it_was_read(a, b):
    read = b.channel("shop")
    started = a.set_state(a.channel("shop"), ChannelState.START)
    assert a.channel("shop") == started
    with pytest.raises(Conflict):
        b.set_state(read, ChannelState.PAUSE)
    assert a.channel("shop").state is ChannelState.START
    again = b.set_state(b.channel("shop"), ChannelState.PAUSE)
    assert a.channel("shop") == again


def test_setting_the_same_state_is_a_new_revision(a):
    before = a.channel("shop")
    after = a.set_state(before, before.state)
    assert after.revision > before.revision


def test_the_state_of_a_missing_channel_cannot_be_set(place, a):
    read = a.channel("shop")
    place.remove("/channels/shop")
    with pytest.raises(NotFound):
        a.set_state(read, ChannelState.START)


def test_an_unreadable_channel_is_stopped_and_hides_no_other(place, a):
    a.set_state(a.put_channel("other", {"x": 1}), ChannelState.START)
    place.put("/channels/shop", b"\xff\x00not json")
    broken, fine = sorted(a.channels(), key=lambda channel: channel.name, reverse=True)
    assert (broken.state, broken.definition) == (ChannelState.STOP, {})
    assert (fine.state, fine.definition) == (ChannelState.START, {"x": 1})
    assert a.put_channel("shop", {"y": 1}).definition == {"y": 1}


def test_a_definition_that_is_too_large_is_refused(a):
    with pytest.raises(Invalid, match="1,000,000"):
        a.put_channel("shop", {"text": "x" * 1_000_000})
    assert a.channel("shop").definition == {"channel": "shop"}
    assert a.contact() is Contact.CONNECTED
    a.put_channel("shop", {"text": "x" * 999_000})
    assert len(a.channel("shop").definition["text"]) == 999_000


@pytest.mark.parametrize("value", [{1, 2}, float("nan"), b"bytes"])
def test_a_definition_that_is_no_json_is_refused(a, value):
    with pytest.raises(Invalid, match="channel shop"):
        a.put_channel("shop", {"value": value})


# -- mainstems ------------------------------------------------------------------------------


def test_nobody_leads_at_first(a):
    assert a.mainstem(PIPELINE) is None


def test_of_two_sessions_one_wins(a, b):
    mine = a.campaign(PIPELINE, "n1")
    assert (mine.nid, mine.status) == ("n1", MainstemStatus.TAKING)
    assert mine.session == a.session_id()
    assert b.campaign(PIPELINE, "n2") == mine
    assert a.mainstem(PIPELINE) == b.mainstem(PIPELINE) == mine


def test_campaigning_again_changes_nothing(a):
    mine = a.campaign(PIPELINE, "n1")
    assert a.campaign(PIPELINE, "n1") == mine


def test_pipelines_have_leaders_of_their_own(a, b):
    there, back = a.campaign(PIPELINE, "n1"), b.campaign(BACK, "n2")
    assert there.nid == "n1"
    assert back.nid == "n2"
    assert back.epoch > there.epoch


def test_the_epoch_grows_with_every_leadership(a, b):
    epochs = []
    for arbiter, nid in [(a, "n1"), (b, "n2"), (a, "n1"), (a, "n1"), (b, "n2")]:
        held = arbiter.campaign(PIPELINE, nid)
        assert held.nid == nid
        epochs.append(held.epoch)
        arbiter.resign(PIPELINE, held)
        assert a.mainstem(PIPELINE) is None
    assert epochs == sorted(set(epochs))


def test_a_closing_session_frees_the_mainstem(a, b):
    first = a.campaign(PIPELINE, "n1")
    a.close()
    assert b.mainstem(PIPELINE) is None
    assert b.campaign(PIPELINE, "n2").epoch > first.epoch


def test_a_mainstem_with_my_name_but_another_session_is_not_mine(a, b):
    theirs = a.campaign(PIPELINE, "n1")
    seen = b.campaign(PIPELINE, "n1")
    assert seen == theirs
    assert seen.session != b.session_id()
    with pytest.raises(Conflict):
        b.set_mainstem_status(PIPELINE, seen, MainstemStatus.OVERTAKE)
    b.resign(PIPELINE, seen)
    assert a.mainstem(PIPELINE) == theirs


def test_the_status_is_set_by_the_leader(a, b):
    held = a.campaign(PIPELINE, "n1")
    overtaken = a.set_mainstem_status(PIPELINE, held, MainstemStatus.OVERTAKE)
    assert overtaken.status is MainstemStatus.OVERTAKE
    assert (overtaken.epoch, overtaken.session, overtaken.nid) == (held.epoch, held.session, "n1")
    assert b.mainstem(PIPELINE) == overtaken
    # Which of the two values of one leadership is given does not matter.
    assert a.set_mainstem_status(PIPELINE, held, MainstemStatus.TAKING).epoch == held.epoch
    a.resign(PIPELINE, held)
    assert b.mainstem(PIPELINE) is None


def test_the_status_of_an_earlier_epoch_cannot_be_set(a, b):
    held = a.campaign(PIPELINE, "n1")
    a.resign(PIPELINE, held)
    with pytest.raises(Conflict, match=str(held.epoch)):
        a.set_mainstem_status(PIPELINE, held, MainstemStatus.OVERTAKE)
    theirs = b.campaign(PIPELINE, "n2")
    with pytest.raises(Conflict):
        a.set_mainstem_status(PIPELINE, held, MainstemStatus.OVERTAKE)
    b.resign(PIPELINE, theirs)
    mine = a.campaign(PIPELINE, "n1")
    with pytest.raises(Conflict):
        a.set_mainstem_status(PIPELINE, held, MainstemStatus.OVERTAKE)
    assert a.mainstem(PIPELINE) == mine


def test_resigning_an_earlier_epoch_leaves_the_present_one(a, b):
    old = a.campaign(PIPELINE, "n1")
    a.resign(PIPELINE, old)
    a.resign(PIPELINE, old)
    theirs = b.campaign(PIPELINE, "n2")
    a.resign(PIPELINE, old)
    assert a.mainstem(PIPELINE) == theirs
    b.resign(PIPELINE, theirs)
    mine = a.campaign(PIPELINE, "n1")
    a.resign(PIPELINE, old)
    assert a.mainstem(PIPELINE) == mine


def test_an_unreadable_mainstem_is_held_all_the_same(place, a, b):
    held = a.campaign(PIPELINE, "n1")
    place.put("/channels/shop/there/mainstem", b"")
    seen = b.campaign(PIPELINE, "n2")
    assert (seen.epoch, seen.session, seen.nid) == (held.epoch, a.session_id(), "?")


# -- positions ------------------------------------------------------------------------------


def test_positions_are_compared_and_set(a, b):
    assert a.stored_position(PIPELINE) is None
    revision = a.store_position(PIPELINE, {"file": "bin.1", "offset": 4}, None)
    assert b.stored_position(PIPELINE) == ({"file": "bin.1", "offset": 4}, revision)
    with pytest.raises(Conflict):
        b.store_position(PIPELINE, {"offset": 0}, None)
    stored_at = b.position_stored_at(PIPELINE)
    newer = b.store_position(PIPELINE, {"offset": 5}, revision)
    assert stored_at <= a.position_stored_at(PIPELINE) <= stored_at + 60
    assert a.position_stored_at(BACK) is None
    with pytest.raises(Conflict):
        a.store_position(PIPELINE, {"offset": 3}, revision)
    assert a.stored_position(PIPELINE) == ({"offset": 5}, newer)
    assert a.stored_position(BACK) is None


def test_a_position_that_is_not_there_cannot_be_replaced(a):
    with pytest.raises(Conflict):
        a.store_position(PIPELINE, {"offset": 1}, 0)
    assert a.stored_position(PIPELINE) is None


def test_an_unreadable_position_is_an_error_and_not_a_fresh_start(place, a):
    a.store_position(PIPELINE, {"offset": 1}, None)
    place.put("/channels/shop/there/position", b"[]")
    with pytest.raises(Invalid, match="shop/there"):
        a.stored_position(PIPELINE)
    a.replace_position(PIPELINE, {"offset": 2})
    assert a.stored_position(PIPELINE)[0] == {"offset": 2}
    a.replace_position(BACK, {"offset": 3})
    assert a.stored_position(BACK)[0] == {"offset": 3}


# -- history --------------------------------------------------------------------------------


def test_history_is_kept_in_order(a, b):
    assert list(a.history(PIPELINE)) == []
    first = HistoryItem(4, "n1", "first", 1.5)
    second = HistoryItem(2**40, "n2", "n1 was gone", 2.5, outage=0.75, redelivered=12)
    a.add_history(PIPELINE, first)
    b.add_history(PIPELINE, second)
    assert list(a.history(PIPELINE)) == [first, second]
    assert list(a.history(BACK)) == []


def test_history_is_trimmed(place, a):
    small = place.join(history_limit=3)
    items = [HistoryItem(n, "n1", "", float(n)) for n in range(12)]
    for item in items:
        small.add_history(PIPELINE, item)
    assert list(a.history(PIPELINE)) == items[-3:]


def test_history_of_the_newest_epoch_is_amended(a, b):
    old = HistoryItem(4, "n1", "first", 1.5)
    a.add_history(PIPELINE, old)
    a.add_history(PIPELINE, HistoryItem(5, "n2", "n1 was gone", 2.5))
    amended = HistoryItem(5, "n2", "n1 was gone", 2.5, outage=0.75, redelivered=3)
    b.add_history(PIPELINE, amended)
    assert list(a.history(PIPELINE)) == [old, amended]


def test_history_of_an_earlier_epoch_is_amended_in_its_place(a, b):
    """The leader before may say what it failed with once its successor is there already."""
    ended, successor = HistoryItem(4, "n1", "first", 1.5), HistoryItem(5, "n2", "n1 failed", 2.5)
    a.add_history(PIPELINE, ended)
    b.add_history(PIPELINE, successor)
    failed = replace(ended, error="Duplicate entry '1' for key 'PRIMARY'")
    a.add_history(PIPELINE, failed)
    assert list(b.history(PIPELINE)) == [failed, successor]
    late = HistoryItem(3, "n3", "never begun", 0.5, error="no Spark")
    a.add_history(PIPELINE, late)
    assert list(b.history(PIPELINE)) == [late, failed, successor]


def test_what_was_trimmed_does_not_come_back(place, a):
    small = place.join(history_limit=2)
    items = [HistoryItem(n, "n1", "", float(n)) for n in range(4)]
    for item in (*items, items[0]):
        small.add_history(PIPELINE, item)
    assert list(small.history(PIPELINE)) == items[-2:]


# -- actions --------------------------------------------------------------------------------


DONE = OperatorAction("anna@host", "switchover", "shop/there", 1.5)


def test_actions_are_kept_in_order_and_their_outcome_is_said_once(a, b):
    assert list(a.actions()) == []
    first, second = a.add_action(DONE), b.add_action(replace(DONE, by="bert", on="shop/ä"))
    assert first.id < second.id
    ended = b.end_action(first, "done: n2 leads", 2.5)
    assert (ended.outcome, ended.ended) == ("done: n2 leads", 2.5)
    assert list(a.actions()) == [ended, second]
    with pytest.raises(Conflict):
        a.end_action(first, "refused", 3.5)
    with pytest.raises(NotFound):
        a.end_action(replace(first, id="action-9999999999"), "refused", 3.5)
    assert list(b.actions()) == [ended, second]


def test_an_action_whose_session_ended_before_its_outcome_was_known_says_so(place, a):
    leaving = place.join()
    done, open_ = leaving.add_action(DONE), leaving.add_action(DONE)
    mine = a.add_action(DONE)
    leaving.end_action(done, "done", 2.5)
    assert [action.abandoned for action in a.actions()] == [False] * 3
    leaving.close()
    found = eventually(lambda: (kept := a.actions())[1].abandoned and kept)
    assert [(each.id, each.abandoned) for each in found] == [
        (done.id, False), (open_.id, True), (mine.id, False)
    ]  # fmt: skip
    later = a.end_action(open_, "done after all", 3.5)
    assert not a.actions()[1].abandoned
    assert later.outcome == "done after all"


def test_an_action_of_a_release_that_named_no_session_is_under_way(place, a):
    kept = a.add_action(DONE)
    text = b'{"version": 1, "by": "anna", "what": "start", "on": "shop", "at": 1.5}'
    place.put(f"/actions/{kept.id}", text)
    ((action),) = a.actions()
    assert (action.session, action.abandoned) == (0, False)


def test_what_is_ended_while_it_is_read_is_not_abandoned(place, a, monkeypatch):
    """A session ends in order between the look at its action and the look at the sessions."""
    leaving = place.join()
    kept = leaving.add_action(DONE)
    children = type(a._znodes).children

    def ends_meanwhile(znodes, path):
        if path.endswith("/acting"):
            monkeypatch.undo()
            leaving.end_action(kept, "done", 2.5)
            leaving.close()
            eventually(lambda: not children(znodes, path) or children(znodes, path) == mine)
        return children(znodes, path)

    mine = [f"{a.session_id():x}"]
    monkeypatch.setattr(type(a._znodes), "children", ends_meanwhile)
    ((action),) = a.actions()
    assert (action.outcome, action.abandoned) == ("done", False)


def test_actions_are_trimmed_and_very_long_texts_cut(a, monkeypatch):
    monkeypatch.setattr("arbiter.actions.ACTIONS_KEPT", 3)
    for n in range(6):
        a.add_action(replace(DONE, by=f"nr {n}", outcome="x" * 100_000))
    kept = a.actions()
    assert [action.by for action in kept] == ["nr 3", "nr 4", "nr 5"]
    assert all(action.outcome == "x" * 4000 for action in kept)


def test_an_unreadable_action_hides_no_other(place, a):
    first, second = a.add_action(DONE), a.add_action(DONE)
    place.put(f"/actions/{first.id}", b"{")
    assert list(a.actions()) == [second]


# -- facts ----------------------------------------------------------------------------------


def test_facts_of_an_empty_place(place):
    facts = place.join().facts()
    assert facts == Facts()


def test_facts_are_what_the_single_reads_say(a, b):
    a.announce(NodeInfo("n1", ready=True))
    b.announce(NodeInfo("n2", host="h", pid=3, http="http://x", started=1.0))
    a.put_channel("other", {"x": 1})
    a.put_channel("empty", {})
    a.set_state(a.channel("other"), ChannelState.START)
    held = a.campaign(PIPELINE, "n1")
    b.campaign(BACK, "n2")
    b.campaign(PipelineId("other", "p"), "n2")
    b.resign(BACK, b.mainstem(BACK))
    signal = a.send_signal(PIPELINE, Signal(SignalKind.ROLLBACK, by="me", epoch=held.epoch))
    facts = b.facts()
    assert list(facts.nodes.values()) == list(b.nodes())
    assert facts.nodes["n1"].ready
    assert list(facts.channels.values()) == list(b.channels())
    assert facts.mainstems == {
        PIPELINE: held,
        PipelineId("other", "p"): b.mainstem(PipelineId("other", "p")),
    }
    assert facts.signals == {PIPELINE: (signal,)}


# -- signals --------------------------------------------------------------------------------

WISH = Signal(SignalKind.SWITCHOVER, to="n2", at=5.0, leader="n1", epoch=9, by="me", sent=4.0)


def test_signals_are_kept_in_order(a, b):
    assert list(a.signals(PIPELINE)) == []
    first = a.send_signal(PIPELINE, WISH)
    second = b.send_signal(PIPELINE, replace(WISH, kind=SignalKind.FAILOVER, at=0.0))
    assert first.id
    assert replace(first, id="") == WISH
    assert list(b.signals(PIPELINE)) == [first, second]
    assert list(a.signals(BACK)) == []


def test_a_signal_is_answered_once(a, b):
    sent = a.send_signal(PIPELINE, WISH)
    answered = b.answer_signal(PIPELINE, sent, SignalState.DONE, "n2 leads")
    assert (answered.state, answered.answer) == (SignalState.DONE, "n2 leads")
    assert list(a.signals(PIPELINE)) == [answered]
    with pytest.raises(Conflict):
        a.answer_signal(PIPELINE, sent, SignalState.REFUSED, "no")
    assert list(a.signals(PIPELINE)) == [answered]


def test_a_signal_that_is_gone_cannot_be_answered(a):
    sent = a.send_signal(PIPELINE, WISH)
    with pytest.raises(NotFound):
        a.answer_signal(PIPELINE, replace(sent, id="signal-9999999999"), SignalState.DONE, "")


def test_a_signal_needs_a_channel(a):
    with pytest.raises(NotFound):
        a.send_signal(PipelineId("nowhere", "p"), WISH)


def test_answered_signals_are_trimmed_and_open_ones_are_not(a):
    open_ = a.send_signal(PIPELINE, WISH)
    for n in range(SIGNALS_KEPT + 5):
        sent = a.send_signal(PIPELINE, replace(WISH, by=f"nr {n}"))
        a.answer_signal(PIPELINE, sent, SignalState.DONE, "")
    kept = a.signals(PIPELINE)
    assert kept[0] == open_
    assert len(kept) <= SIGNALS_KEPT + 2
    assert kept[-1].by == f"nr {SIGNALS_KEPT + 4}"


# -- deposing -------------------------------------------------------------------------------


def test_a_leader_is_deposed_although_its_session_lives(a, b):
    held = a.campaign(PIPELINE, "n1")
    held = a.set_mainstem_status(PIPELINE, held, MainstemStatus.OVERTAKE)
    b.depose(PIPELINE, b.mainstem(PIPELINE))
    assert a.mainstem(PIPELINE) is None
    assert b.campaign(PIPELINE, "n2").epoch > held.epoch
    with pytest.raises(Conflict):
        a.set_mainstem_status(PIPELINE, held, MainstemStatus.OVERTAKE)


def test_only_the_leadership_that_was_seen_is_deposed(a, b):
    b.depose(PIPELINE, Mainstem("n1", MainstemStatus.TAKING, 1, 1))
    seen = a.campaign(PIPELINE, "n1")
    a.resign(PIPELINE, seen)
    new = a.campaign(PIPELINE, "n1")
    b.depose(PIPELINE, seen)
    assert b.mainstem(PIPELINE) == new


# -- epochs ---------------------------------------------------------------------------------


def test_the_base_is_0_until_it_is_raised(a, b):
    assert a.epoch_base() == 0
    assert a.raise_epoch_base(5_000_000_000_000) == 5_000_000_000_000
    assert b.epoch_base() == 5_000_000_000_000


def test_the_base_is_never_lowered(a, b):
    a.raise_epoch_base(500)
    assert b.raise_epoch_base(499) == 500
    assert b.raise_epoch_base(500) == 500
    assert a.epoch_base() == 500


def test_the_next_epoch_is_a_lower_bound_and_takes_nothing(a, b):
    coming = a.next_epoch()
    assert coming < a.next_epoch() < b.next_epoch()
    assert a.facts() == Facts(channels=a.facts().channels)
    held = a.campaign(PIPELINE, "n1")
    assert held.epoch > coming
    assert b.next_epoch() > held.epoch
    a.raise_epoch_base(1 << 40)
    assert b.next_epoch() > 1 << 40


@pytest.mark.parametrize("base", [-1, (1 << 62) + 1])
def test_bases_that_make_no_sense(a, base):
    with pytest.raises(Invalid):
        a.raise_epoch_base(base)


def test_leaderships_after_a_raise_are_above_it_and_earlier_ones_stay(a, b):
    held = a.campaign(PIPELINE, "n1")
    base = held.epoch + 1_000_000
    b.raise_epoch_base(base)
    assert a.campaign(PIPELINE, "n1") == held
    assert b.mainstem(PIPELINE) == held
    held = a.set_mainstem_status(PIPELINE, held, MainstemStatus.OVERTAKE)
    a.resign(PIPELINE, held)
    new = b.campaign(PIPELINE, "n2")
    assert new.epoch > base
    new = b.set_mainstem_status(PIPELINE, new, MainstemStatus.OVERTAKE)
    assert a.mainstem(PIPELINE) == new
    assert a.facts().mainstems == {PIPELINE: new}
    b.resign(PIPELINE, new)
    assert a.mainstem(PIPELINE) is None


def test_a_damaged_base_makes_nobody_leader_until_it_is_written_anew(place, a):
    a.raise_epoch_base(7)
    place.put("/epoch", b"{}")
    with pytest.raises(Invalid):
        a.campaign(PIPELINE, "n1")
    assert a.mainstem(PIPELINE) is None
    assert a.raise_epoch_base(8) == 8
    assert a.campaign(PIPELINE, "n1").epoch > 8


# -- wake-ups -------------------------------------------------------------------------------


def test_changes_wake_who_watches(a, b):
    woken = threading.Event()
    b.watch(woken.set)

    def wakes(act):
        """Each change must wake; what was due before must have come first."""
        wait_for_quiet(b, woken)
        result = act()
        assert woken.wait(20), "nobody was woken"
        return result

    wakes(lambda: a.put_channel("new", {}))
    wakes(lambda: a.put_channel("new", {"x": 1}))
    wakes(lambda: a.set_state(a.channel("shop"), ChannelState.START))
    held = wakes(lambda: a.campaign(PIPELINE, "n1"))
    wakes(lambda: a.set_mainstem_status(PIPELINE, held, MainstemStatus.OVERTAKE))
    wakes(lambda: a.resign(PIPELINE, held))
    wakes(lambda: a.send_signal(PIPELINE, WISH))
    wakes(lambda: a.send_signal(PIPELINE, WISH))
    wakes(lambda: a.campaign(PIPELINE, "n1"))
    wakes(lambda: a.campaign(PipelineId("new", "first"), "n1"))
    wakes(a.close)


def test_several_may_watch(a, b):
    first, second = threading.Event(), threading.Event()
    b.watch(first.set)
    b.watch(second.set)
    a.put_channel("new", {})
    assert first.wait(20)
    assert second.wait(20)


def wait_for_quiet(arbiter, woken):
    """Wait until the watches are armed and have been silent for a moment."""

    def silent():
        woken.clear()
        return not woken.wait(0.3)

    eventually(silent, 30)


# -- requests to load tables ---------------------------------------------------------------


def test_requests_to_load_tables_are_kept_in_order_and_changed_by_compare_and_set(a, b):
    first = a.add_load(PIPELINE, {"tables": ["shop.a"]})
    second = b.add_load(PIPELINE, {"tables": ["shop.ä"]})
    assert first.id < second.id
    assert [load.value for load in b.loads(PIPELINE)] == [first.value, second.value]
    changed = a.change_load(PIPELINE, first, {"state": "paused"})
    with pytest.raises(Conflict):
        b.change_load(PIPELINE, first, {"state": "done"})
    b.remove_load(PIPELINE, first)  # it was changed, so it stays
    assert list(b.loads(PIPELINE)) == [changed, second]
    b.remove_load(PIPELINE, changed)
    assert list(a.loads(PIPELINE)) == [second]
    with pytest.raises(Conflict):
        a.change_load(PIPELINE, changed, {})


def test_there_are_no_requests_to_load_tables_of_a_channel_that_is_not_there(a):
    assert list(a.loads(PipelineId("none", "there"))) == []
    with pytest.raises(NotFound):
        a.add_load(PipelineId("none", "there"), {})


# -- removing a channel --------------------------------------------------------------------


def test_a_channel_is_removed_with_all_that_is_below_it_and_epochs_go_on(a, b):
    held = a.campaign(PIPELINE, "n1")
    a.add_history(PIPELINE, HistoryItem(held.epoch, "n1", "why", 1.0))
    a.store_position(PIPELINE, {"at": 1}, None)
    stopped = a.set_state(a.channel("shop"), ChannelState.STOP)
    with pytest.raises(Conflict, match="somebody leads shop/there"):
        b.remove_channel(stopped)
    assert a.mainstem(PIPELINE) == held
    assert a.stored_position(PIPELINE) is not None
    a.resign(PIPELINE, held)
    b.remove_channel(stopped)
    with pytest.raises(NotFound):
        a.channel("shop")
    a.put_channel("shop", {"channel": "shop"})
    assert a.stored_position(PIPELINE) is None
    assert list(a.history(PIPELINE)) == []
    assert a.campaign(PIPELINE, "n1").epoch > held.epoch


def test_a_channel_that_runs_or_was_changed_meanwhile_is_not_removed(a):
    stopped = a.set_state(a.channel("shop"), ChannelState.STOP)
    a.store_position(PIPELINE, {"at": 1}, None)
    started = a.set_state(stopped, ChannelState.START)
    with pytest.raises(Invalid):
        a.remove_channel(started)
    with pytest.raises(Conflict):
        a.remove_channel(stopped)
    assert a.stored_position(PIPELINE) is not None


# -- cut-overs ------------------------------------------------------------------------------


def test_cutovers_are_compared_and_set(a, b):
    assert a.cutover(PIPELINE) is None
    revision = a.store_cutover(PIPELINE, {"step": "drain"}, None)
    assert b.cutover(PIPELINE) == ({"step": "drain"}, revision)
    with pytest.raises(Conflict):
        b.store_cutover(PIPELINE, {"step": "check"}, None)
    newer = b.store_cutover(PIPELINE, {"step": "done"}, revision)
    with pytest.raises(Conflict):
        a.store_cutover(PIPELINE, {"step": "verify"}, revision)
    with pytest.raises(Conflict):
        a.forget_cutover(PIPELINE, revision)
    assert a.cutover(PIPELINE) == ({"step": "done"}, newer)
    assert a.cutover(BACK) is None
    assert a.cutovers([BACK, PIPELINE]) == {PIPELINE: {"step": "done"}}
    a.forget_cutover(PIPELINE, newer)
    assert b.cutover(PIPELINE) is None


def test_what_verification_keeps_is_compared_and_set(place, a, b):
    assert a.verification(PIPELINE) is None
    revision = a.store_verification(PIPELINE, {"epoch": 5, "after": [{"hex": "ff"}, "é"]}, None)
    assert b.verification(PIPELINE) == ({"epoch": 5, "after": [{"hex": "ff"}, "é"]}, revision)
    with pytest.raises(Conflict):
        b.store_verification(PIPELINE, {"epoch": 4}, None)
    newer = b.store_verification(PIPELINE, {"epoch": 6}, revision)
    with pytest.raises(Conflict):
        a.store_verification(PIPELINE, {"epoch": 5}, revision)
    assert a.verification(PIPELINE) == ({"epoch": 6}, newer)
    assert a.verification(BACK) is None
    place.put("/channels/shop/there/verification", b"[]")
    empty, revision = a.verification(PIPELINE)
    assert empty == {}, "it begins anew"
    a.store_verification(PIPELINE, {"epoch": 7}, revision)
    channel = b.channel("shop")
    b.remove_channel(channel)
    with pytest.raises(NotFound):
        a.store_verification(PIPELINE, {"epoch": 7}, None)


def test_an_unreadable_cutover_is_an_error_and_not_none(place, a):
    a.store_cutover(PIPELINE, {"step": "drain"}, None)
    place.put("/channels/shop/there/cutover", b"[]")
    with pytest.raises(Invalid, match="shop/there"):
        a.cutover(PIPELINE)


# -- alarms ---------------------------------------------------------------------------------


def test_one_session_sends_alarms_until_it_ends(a, b):
    assert a.alarm_sender() is None
    mine = a.send_alarms(AlarmSender("n1", ("mail",)))
    assert mine == AlarmSender("n1", ("mail",), a.session_id())
    assert a.send_alarms(AlarmSender("n1", ("mail",))) == mine, "idempotent"
    assert b.send_alarms(AlarmSender("n2", ("mail",))) == mine
    assert b.alarm_sender() == mine
    a.close()
    eventually(lambda: b.alarm_sender() is None, 20)
    theirs = b.send_alarms(AlarmSender("n2", ("mail",)))
    assert theirs == AlarmSender("n2", ("mail",), b.session_id())


def test_a_session_that_is_named_in_a_sender_does_not_count(a, b):
    mine = a.send_alarms(AlarmSender("n1", ("mail",), session=b.session_id()))
    assert mine.session == a.session_id()
    assert b.send_alarms(AlarmSender("n1", ("mail",))) == mine, "the same node, another session"


def test_a_sender_that_tells_somebody_takes_the_place_of_one_that_tells_nobody(place, a, b):
    nobody = a.send_alarms(AlarmSender("n1"))
    assert b.send_alarms(AlarmSender("n2")) == nobody
    somebody = b.send_alarms(AlarmSender("n2", ("hook",)))
    assert somebody == AlarmSender("n2", ("hook",), b.session_id())
    assert a.send_alarms(AlarmSender("n1")) == somebody
    assert a.send_alarms(AlarmSender("n1", ("mail",))) == somebody
    place.put("/alarms/sender", b"[]")
    assert a.alarm_sender() == AlarmSender("", (), b.session_id()), "unreadable: tells nobody"
    assert a.send_alarms(AlarmSender("n1", ("mail",))).session == a.session_id()


KEPT = [("alarms", "store_alarms", "state"), ("silences", "store_silences", "silences")]


@pytest.mark.parametrize(("read", "store", "znode"), KEPT)
def test_what_is_kept_of_alarms_is_compared_and_set(place, a, b, read, store, znode):
    assert getattr(a, read)() is None
    with pytest.raises(Conflict):
        getattr(a, store)({"raised": []}, 0)
    revision = getattr(a, store)({"raised": [{"rule": "lag", "text": "é"}]}, None)
    assert getattr(b, read)() == ({"raised": [{"rule": "lag", "text": "é"}]}, revision)
    with pytest.raises(Conflict, match="somebody else"):
        getattr(b, store)({}, None)
    newer = getattr(b, store)({"raised": []}, revision)
    with pytest.raises(Conflict):
        getattr(a, store)({"raised": [1]}, revision)
    with pytest.raises(Invalid):
        getattr(a, store)({"raised": ["x" * 2_000_000]}, newer)
    assert getattr(a, read)() == ({"raised": []}, newer)
    others = {name for name, _, _ in KEPT} - {read}
    assert all(getattr(a, other)() is None for other in others), "each is kept by itself"
    place.put(f"/alarms/{znode}", b"[]")
    empty, revision = getattr(b, read)()
    assert empty == {}, "alarms that hold are raised again"
    getattr(b, store)({"raised": [2]}, revision)
    a.close()
    assert getattr(b, read)()[0] == {"raised": [2]}, "it outlives whoever wrote it"
