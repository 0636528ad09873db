"""What every arbiter must do, whatever is behind it."""

import threading
import uuid
from dataclasses import replace

import pytest

from arbiter.access import Access, Tls
from arbiter.errors import Conflict, Contact, Invalid, NotFound, Unreachable
from arbiter.journal import MAX_SIGNALS
from arbiter.values import (
    EVERYTHING,
    AlarmSender,
    ChannelState,
    Facts,
    HistoryItem,
    LeaderLock,
    LeaderLockStatus,
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


class MemoryStore:
    """Sessions over one cluster in memory."""

    def __init__(self):
        self.cluster = MemoryCluster()

    def join(self, **options):
        return MemoryArbiter(self.cluster, **options)

    def put(self, path, data):
        self.cluster.put(f"/setl{path}", data)

    def remove(self, path):
        self.cluster.remove(f"/setl{path}")


class ZooKeeperStore:
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
def memory_store():
    return MemoryStore()


@pytest.fixture
def zookeeper_store(zookeeper):
    position = ZooKeeperStore(zookeeper.hosts)
    yield position
    position.close()


@pytest.fixture(scope="session")
def secured_ensemble(stack_folder):
    """Three servers that speak TLS and want a login, as in earnest."""
    security = ZooKeeperSecurity(stack_folder / "secured", tls=True, accounts=["setl"])
    with ZooKeeperEnsemble(stack_folder / "secured", security=security) as ensemble:
        yield ensemble, security


@pytest.fixture
def ensemble_store(secured_ensemble):
    ensemble, security = secured_ensemble
    password = security.passwords["setl"]
    login = {"mechanism": "DIGEST-MD5", "username": "setl", "password": password}
    ca = str(security.ca)
    # All through one member: what one session writes, another sees at once only on the same
    # server. A follower may answer from a moment ago, which no rule of the arbiter minds.
    position = ZooKeeperStore(
        ensemble.servers[0].hosts,
        Access(sasl=login, tls=Tls(ca=ca)),
        sasl_options=dict(login),
        use_ssl=True,
        ca=ca,
    )
    yield position
    position.close()


@pytest.fixture(
    params=[
        "memory_store",
        pytest.param("zookeeper_store", marks=pytest.mark.servers),
        pytest.param("ensemble_store", marks=pytest.mark.servers),
    ]
)
def position(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def a(position):
    arbiter = position.join()
    arbiter.channels.put("shop", {"channel": "shop"})
    return arbiter


@pytest.fixture
def b(position, a):
    return position.join()


# -- session --------------------------------------------------------------------------------


def test_a_joined_session_is_connected_and_was_alive_lately(a):
    assert a.session.contact() is Contact.CONNECTED
    assert a.session.session_id() != 0
    assert a.session.last_contact() > 0
    assert a.session.session_timeout == 10.0


def test_sessions_differ(a, b):
    assert a.session.session_id() != b.session.session_id()


def test_a_closed_session_is_lost_and_refuses_calls(a):
    a.close()
    assert a.session.contact() is Contact.LOST
    assert a.session.session_id() == 0
    with pytest.raises(Unreachable):
        a.channels.all()
    with pytest.raises(Unreachable):
        a.leader_locks.campaign(PIPELINE, "n1")
    a.close()


# -- nodes ----------------------------------------------------------------------------------


def test_nodes_are_announced_and_sorted(a, b):
    second = NodeInfo("n2", host="h2", pid=22, http="http://h2:1", started=2.5)
    first = NodeInfo("n1", host="hé1", pid=11, http="http://h1:1", started=1.5)
    a.nodes.announce(second)
    b.nodes.announce(first)
    assert list(a.nodes.all()) == [first, second]


def test_nodes_say_what_they_serve(a, b):
    relay = NodeInfo("n1", ready=True, serves=("relay",))
    a.nodes.announce(relay)
    b.nodes.announce(NodeInfo("n2", serves=("load", "relay")))
    assert [node.serves for node in a.nodes.all()] == [("relay",), ("load", "relay")]
    assert b.facts().nodes["n1"] == relay


def test_a_node_of_an_earlier_release_serves_everything(position, a):
    a.nodes.announce(NodeInfo("n1", serves=("relay",)))
    position.put("/nodes/n1", b'{"version":1,"host":"h1","ready":true}')
    assert list(a.nodes.all()) == [NodeInfo("n1", host="h1", ready=True, serves=EVERYTHING)]


def test_announcing_again_changes_what_is_known(a, b):
    a.nodes.announce(NodeInfo("n1", host="h1"))
    a.nodes.announce(NodeInfo("n1", host="h1"))
    a.nodes.announce(NodeInfo("n1", host="h2"))
    assert list(b.nodes.all()) == [NodeInfo("n1", host="h2")]


def test_a_node_id_belongs_to_one_session(a, b):
    a.nodes.announce(NodeInfo("n1", host="h1"))
    with pytest.raises(Conflict, match="'n1'"):
        b.nodes.announce(NodeInfo("n1", host="h2"))
    assert list(b.nodes.all()) == [NodeInfo("n1", host="h1")]
    a.close()
    b.nodes.announce(NodeInfo("n1", host="h2"))
    assert list(b.nodes.all()) == [NodeInfo("n1", host="h2")]


def test_a_node_goes_with_its_session(a, b):
    a.nodes.announce(NodeInfo("n1"))
    assert [node.nid for node in b.nodes.all()] == ["n1"]
    a.close()
    assert list(b.nodes.all()) == []


def test_an_unreadable_node_is_still_there(position, a):
    a.nodes.announce(NodeInfo("n1", host="h1", pid=3))
    position.put("/nodes/n1", b"{broken")
    assert list(a.nodes.all()) == [NodeInfo("n1")]


@pytest.mark.parametrize("name", ["", "a/b", "..", ".", "a b", "ä", "x" * 129, "n1\n"])
def test_names_that_are_no_path_component_are_refused(a, name):
    with pytest.raises(Invalid):
        a.nodes.announce(NodeInfo(name))
    with pytest.raises(Invalid):
        a.channels.put(name, {})
    with pytest.raises(Invalid):
        a.leader_locks.campaign(PipelineId("shop", name), "n1")
    with pytest.raises(Invalid):
        a.leader_locks.campaign(PIPELINE, name)


# -- channels -------------------------------------------------------------------------------


def test_a_new_channel_is_stopped(position):
    arbiter = position.join()
    assert list(arbiter.channels.all()) == []
    stored = arbiter.channels.put("shop", {"pipelines": [{"name": "there"}], "text": "grün 🌱"})
    assert stored.state is ChannelState.STOP
    assert stored.definition == {"pipelines": [{"name": "there"}], "text": "grün 🌱"}
    assert arbiter.channels.one("shop") == stored
    assert list(arbiter.channels.all()) == [stored]


def test_channels_are_sorted(a):
    a.channels.put("bank", {})
    a.channels.put("zoo", {})
    assert [channel.name for channel in a.channels.all()] == ["bank", "shop", "zoo"]


def test_a_missing_channel_is_not_found(a):
    with pytest.raises(NotFound, match="'nothing'"):
        a.channels.one("nothing")
    with pytest.raises(NotFound):
        a.leader_locks.campaign(PipelineId("nothing", "there"), "n1")
    with pytest.raises(NotFound):
        a.positions.store(PipelineId("nothing", "there"), {}, None)
    with pytest.raises(NotFound):
        a.history.add(PipelineId("nothing", "there"), HistoryItem(1, "n1", "", 0.0))
    assert [channel.name for channel in a.channels.all()] == ["shop"]


def test_a_new_definition_stores_the_state(a):
    a.channels.set_state(a.channels.one("shop"), ChannelState.START)
    a.channels.put("shop", {"new": True})
    assert a.channels.one("shop").state is ChannelState.START
    assert a.channels.one("shop").definition == {"new": True}


def test_a_definition_is_replaced_only_as_it_was_read(a, b):
    seen = b.channels.one("shop")
    first = a.channels.store("shop", {"of": "a"}, a.channels.one("shop"))
    with pytest.raises(Conflict, match="changed meanwhile"):
        b.channels.store("shop", {"of": "b"}, seen)
    assert b.channels.one("shop") == first
    started = a.channels.set_state(first, ChannelState.START)
    with pytest.raises(Conflict):
        b.channels.store("shop", {"of": "b"}, first)
    assert b.channels.store("shop", {"of": "b"}, started).state is ChannelState.START
    assert a.channels.one("shop").definition == {"of": "b"}


def test_a_channel_is_made_only_where_there_is_none_and_changed_only_where_there_is_one(a, b):
    made = a.channels.store("bank", {"of": "a"}, None)
    assert made.state is ChannelState.STOP
    with pytest.raises(Conflict):
        b.channels.store("bank", {"of": "b"}, None)
    assert b.channels.one("bank") == made
    a.channels.remove(made)
    with pytest.raises(Conflict):
        b.channels.store("bank", {"of": "b"}, made)
    assert [channel.name for channel in b.channels.all()] == ["shop"]


def test_a_state_is_changed_only_as_it_was_read(a, b):
    read = b.channels.one("shop")
    started = a.channels.set_state(a.channels.one("shop"), ChannelState.START)
    assert a.channels.one("shop") == started
    with pytest.raises(Conflict):
        b.channels.set_state(read, ChannelState.PAUSE)
    assert a.channels.one("shop").state is ChannelState.START
    again = b.channels.set_state(b.channels.one("shop"), ChannelState.PAUSE)
    assert a.channels.one("shop") == again


def test_setting_the_same_state_is_a_new_revision(a):
    before = a.channels.one("shop")
    after = a.channels.set_state(before, before.state)
    assert after.revision > before.revision


def test_the_state_of_a_missing_channel_cannot_be_set(position, a):
    read = a.channels.one("shop")
    position.remove("/channels/shop")
    with pytest.raises(NotFound):
        a.channels.set_state(read, ChannelState.START)


def test_an_unreadable_channel_is_stopped_and_hides_no_other(position, a):
    a.channels.set_state(a.channels.put("other", {"x": 1}), ChannelState.START)
    position.put("/channels/shop", b"\xff\x00not json")
    broken, fine = sorted(a.channels.all(), key=lambda channel: channel.name, reverse=True)
    assert (broken.state, broken.definition) == (ChannelState.STOP, {})
    assert (fine.state, fine.definition) == (ChannelState.START, {"x": 1})
    assert a.channels.put("shop", {"y": 1}).definition == {"y": 1}


def test_a_definition_that_is_too_large_is_refused(a):
    with pytest.raises(Invalid, match="1,000,000"):
        a.channels.put("shop", {"text": "x" * 1_000_000})
    assert a.channels.one("shop").definition == {"channel": "shop"}
    assert a.session.contact() is Contact.CONNECTED
    a.channels.put("shop", {"text": "x" * 999_000})
    assert len(a.channels.one("shop").definition["text"]) == 999_000


@pytest.mark.parametrize("value", [{1, 2}, float("nan"), b"bytes"])
def test_a_definition_that_is_no_json_is_refused(a, value):
    with pytest.raises(Invalid, match="channel shop"):
        a.channels.put("shop", {"value": value})


# -- leader locks ------------------------------------------------------------------------------


def test_nobody_leads_at_first(a):
    assert a.leader_locks.one(PIPELINE) is None


def test_of_two_sessions_one_wins(a, b):
    mine = a.leader_locks.campaign(PIPELINE, "n1")
    assert (mine.nid, mine.status) == ("n1", LeaderLockStatus.TAKING)
    assert mine.session == a.session.session_id()
    assert b.leader_locks.campaign(PIPELINE, "n2") == mine
    assert a.leader_locks.one(PIPELINE) == b.leader_locks.one(PIPELINE) == mine


def test_campaigning_again_changes_nothing(a):
    mine = a.leader_locks.campaign(PIPELINE, "n1")
    assert a.leader_locks.campaign(PIPELINE, "n1") == mine


def test_pipelines_have_leaders_of_their_own(a, b):
    there, back = a.leader_locks.campaign(PIPELINE, "n1"), b.leader_locks.campaign(BACK, "n2")
    assert there.nid == "n1"
    assert back.nid == "n2"
    assert back.epoch > there.epoch


def test_the_epoch_grows_with_every_leadership(a, b):
    epochs = []
    for arbiter, nid in [(a, "n1"), (b, "n2"), (a, "n1"), (a, "n1"), (b, "n2")]:
        held = arbiter.leader_locks.campaign(PIPELINE, nid)
        assert held.nid == nid
        epochs.append(held.epoch)
        arbiter.leader_locks.release(PIPELINE, held)
        assert a.leader_locks.one(PIPELINE) is None
    assert epochs == sorted(set(epochs))


def test_leaderships_are_counted_for_each_pipeline(a, b):
    numbers = []
    for arbiter, nid in [(a, "n1"), (b, "n2"), (a, "n1")]:
        held = arbiter.leader_locks.campaign(PIPELINE, nid)
        assert a.leader_locks.campaign(PIPELINE, "n1").number == held.number
        assert b.leader_locks.campaign(PIPELINE, "n2").number == held.number
        raised = arbiter.leader_locks.set_status(PIPELINE, held, LeaderLockStatus.OVERTAKE)
        read = b.leader_locks.one(PIPELINE)
        assert read == raised
        assert (read.number, read.epoch, read.session) == (held.number, held.epoch, held.session)
        assert read.leadership == f"leadership {held.number}"
        numbers.append(held.number)
        arbiter.leader_locks.release(PIPELINE, held)
    assert numbers == [1, 2, 3]
    assert a.leader_locks.campaign(BACK, "n1").number == 1


def test_two_who_campaign_at_once_never_have_the_same_number(a, b):
    """Whoever wins: each leadership has a number of its own, and none is left out."""
    held, ended = {}, threading.Event()

    def leads_and_releases(arbiter, nid):
        while not ended.is_set():
            lock = arbiter.leader_locks.campaign(PIPELINE, nid)
            if lock.session == arbiter.session.session_id():
                held[lock.epoch] = lock.number
                arbiter.leader_locks.release(PIPELINE, lock)

    threads = [
        threading.Thread(target=leads_and_releases, args=each) for each in ((a, "n1"), (b, "n2"))
    ]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: len(held) >= 30)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert [number for _, number in sorted(held.items())] == list(range(1, len(held) + 1))


def test_leaderships_before_the_first_that_was_counted_are_those_of_the_history(position, a, b):
    """A release that did not count has left a history, and no number."""
    position.put("/channels/shop", b"{}")
    for epoch in (3, 5):
        a.history.add(PIPELINE, HistoryItem(epoch, "n1", "", float(epoch)))
    held = a.leader_locks.campaign(PIPELINE, "n1")
    assert held.number == 3
    a.history.add(PIPELINE, HistoryItem(held.epoch, "n1", "", 9.0, number=held.number))
    assert [item.number for item in b.history.all(PIPELINE)] == [0, 0, 3]
    a.leader_locks.release(PIPELINE, held)
    position.put("/channels/shop/there/leaderships", b"damaged")
    assert b.leader_locks.campaign(PIPELINE, "n2").number == 4


def test_a_leadership_of_a_release_that_did_not_count_has_no_number(position, a, b):
    held = a.leader_locks.campaign(PIPELINE, "n1")
    position.put(
        "/channels/shop/there/mainstem",
        b'{"version": 1, "nid": "n1", "status": "OVERTAKE", "session": "0x1", "base": 0}',
    )
    seen = b.leader_locks.campaign(PIPELINE, "n2")
    assert (seen.number, seen.leadership) == (0, f"epoch {held.epoch}")
    a.leader_locks.release(PIPELINE, a.leader_locks.one(PIPELINE))
    assert b.leader_locks.campaign(PIPELINE, "n2").number == 2


def test_a_closing_session_frees_the_leader_lock(a, b):
    first = a.leader_locks.campaign(PIPELINE, "n1")
    a.close()
    assert b.leader_locks.one(PIPELINE) is None
    assert b.leader_locks.campaign(PIPELINE, "n2").epoch > first.epoch


def test_a_leader_lock_with_my_name_but_another_session_is_not_mine(a, b):
    theirs = a.leader_locks.campaign(PIPELINE, "n1")
    seen = b.leader_locks.campaign(PIPELINE, "n1")
    assert seen == theirs
    assert seen.session != b.session.session_id()
    with pytest.raises(Conflict):
        b.leader_locks.set_status(PIPELINE, seen, LeaderLockStatus.OVERTAKE)
    b.leader_locks.release(PIPELINE, seen)
    assert a.leader_locks.one(PIPELINE) == theirs


def test_the_status_is_set_by_the_leader(a, b):
    held = a.leader_locks.campaign(PIPELINE, "n1")
    overtaken = a.leader_locks.set_status(PIPELINE, held, LeaderLockStatus.OVERTAKE)
    assert overtaken.status is LeaderLockStatus.OVERTAKE
    assert (overtaken.epoch, overtaken.session, overtaken.nid) == (held.epoch, held.session, "n1")
    assert b.leader_locks.one(PIPELINE) == overtaken
    # Which of the two values of one leadership is given does not matter.
    assert a.leader_locks.set_status(PIPELINE, held, LeaderLockStatus.TAKING).epoch == held.epoch
    a.leader_locks.release(PIPELINE, held)
    assert b.leader_locks.one(PIPELINE) is None


def test_the_status_of_an_earlier_epoch_cannot_be_set(a, b):
    held = a.leader_locks.campaign(PIPELINE, "n1")
    a.leader_locks.release(PIPELINE, held)
    with pytest.raises(Conflict, match="leadership 1 of shop/there is over"):
        a.leader_locks.set_status(PIPELINE, held, LeaderLockStatus.OVERTAKE)
    theirs = b.leader_locks.campaign(PIPELINE, "n2")
    with pytest.raises(Conflict):
        a.leader_locks.set_status(PIPELINE, held, LeaderLockStatus.OVERTAKE)
    b.leader_locks.release(PIPELINE, theirs)
    mine = a.leader_locks.campaign(PIPELINE, "n1")
    with pytest.raises(Conflict):
        a.leader_locks.set_status(PIPELINE, held, LeaderLockStatus.OVERTAKE)
    assert a.leader_locks.one(PIPELINE) == mine


def test_resigning_an_earlier_epoch_leaves_the_present_one(a, b):
    old = a.leader_locks.campaign(PIPELINE, "n1")
    a.leader_locks.release(PIPELINE, old)
    a.leader_locks.release(PIPELINE, old)
    theirs = b.leader_locks.campaign(PIPELINE, "n2")
    a.leader_locks.release(PIPELINE, old)
    assert a.leader_locks.one(PIPELINE) == theirs
    b.leader_locks.release(PIPELINE, theirs)
    mine = a.leader_locks.campaign(PIPELINE, "n1")
    a.leader_locks.release(PIPELINE, old)
    assert a.leader_locks.one(PIPELINE) == mine


def test_an_unreadable_leader_lock_is_held_all_the_same(position, a, b):
    held = a.leader_locks.campaign(PIPELINE, "n1")
    position.put("/channels/shop/there/mainstem", b"")
    seen = b.leader_locks.campaign(PIPELINE, "n2")
    assert (seen.epoch, seen.session, seen.nid) == (held.epoch, a.session.session_id(), "?")


# -- positions ------------------------------------------------------------------------------


def test_positions_are_compared_and_set(a, b):
    assert a.positions.read(PIPELINE) is None
    revision = a.positions.store(PIPELINE, {"file": "bin.1", "offset": 4}, None)
    assert b.positions.read(PIPELINE) == ({"file": "bin.1", "offset": 4}, revision)
    with pytest.raises(Conflict):
        b.positions.store(PIPELINE, {"offset": 0}, None)
    stored_at = b.positions.stored_at(PIPELINE)
    newer = b.positions.store(PIPELINE, {"offset": 5}, revision)
    assert stored_at <= a.positions.stored_at(PIPELINE) <= stored_at + 60
    assert a.positions.stored_at(BACK) is None
    with pytest.raises(Conflict):
        a.positions.store(PIPELINE, {"offset": 3}, revision)
    assert a.positions.read(PIPELINE) == ({"offset": 5}, newer)
    assert a.positions.read(BACK) is None


def test_a_position_that_is_not_there_cannot_be_replaced(a):
    with pytest.raises(Conflict):
        a.positions.store(PIPELINE, {"offset": 1}, 0)
    assert a.positions.read(PIPELINE) is None


def test_an_unreadable_position_is_an_error_and_not_a_fresh_start(position, a):
    a.positions.store(PIPELINE, {"offset": 1}, None)
    position.put("/channels/shop/there/position", b"[]")
    with pytest.raises(Invalid, match="shop/there"):
        a.positions.read(PIPELINE)
    a.positions.replace(PIPELINE, {"offset": 2})
    assert a.positions.read(PIPELINE)[0] == {"offset": 2}
    a.positions.replace(BACK, {"offset": 3})
    assert a.positions.read(BACK)[0] == {"offset": 3}


# -- history --------------------------------------------------------------------------------


def test_history_is_stored_in_order(a, b):
    assert list(a.history.all(PIPELINE)) == []
    first = HistoryItem(4, "n1", "first", 1.5)
    second = HistoryItem(2**40, "n2", "n1 was gone", 2.5, outage=0.75, redelivered=12)
    a.history.add(PIPELINE, first)
    b.history.add(PIPELINE, second)
    assert list(a.history.all(PIPELINE)) == [first, second]
    assert list(a.history.all(BACK)) == []


def test_history_is_trimmed(position, a):
    small = position.join(history_limit=3)
    items = [HistoryItem(n, "n1", "", float(n)) for n in range(12)]
    for item in items:
        small.history.add(PIPELINE, item)
    assert list(a.history.all(PIPELINE)) == items[-3:]


def test_history_of_the_newest_epoch_is_amended(a, b):
    old = HistoryItem(4, "n1", "first", 1.5)
    a.history.add(PIPELINE, old)
    a.history.add(PIPELINE, HistoryItem(5, "n2", "n1 was gone", 2.5))
    amended = HistoryItem(5, "n2", "n1 was gone", 2.5, outage=0.75, redelivered=3)
    b.history.add(PIPELINE, amended)
    assert list(a.history.all(PIPELINE)) == [old, amended]


def test_history_of_an_earlier_epoch_is_amended_in_its_position(a, b):
    """The leader before may say what it failed with once its successor is there already."""
    ended, successor = HistoryItem(4, "n1", "first", 1.5), HistoryItem(5, "n2", "n1 failed", 2.5)
    a.history.add(PIPELINE, ended)
    b.history.add(PIPELINE, successor)
    failed = replace(ended, error="Duplicate entry '1' for key 'PRIMARY'")
    a.history.add(PIPELINE, failed)
    assert list(b.history.all(PIPELINE)) == [failed, successor]
    late = HistoryItem(3, "n3", "never begun", 0.5, error="no Spark")
    a.history.add(PIPELINE, late)
    assert list(b.history.all(PIPELINE)) == [late, failed, successor]


def test_what_was_trimmed_does_not_come_back(position, a):
    small = position.join(history_limit=2)
    items = [HistoryItem(n, "n1", "", float(n)) for n in range(4)]
    for item in (*items, items[0]):
        small.history.add(PIPELINE, item)
    assert list(small.history.all(PIPELINE)) == items[-2:]


# -- actions --------------------------------------------------------------------------------


DONE = OperatorAction("anna@host", "switchover", "shop/there", 1.5)


def test_actions_are_stored_in_order_and_their_outcome_is_said_once(a, b):
    assert list(a.actions.all()) == []
    first, second = a.actions.add(DONE), b.actions.add(replace(DONE, by="bert", on="shop/ä"))
    assert first.id < second.id
    ended = b.actions.end(first, "done: n2 leads", 2.5)
    assert (ended.outcome, ended.ended) == ("done: n2 leads", 2.5)
    assert list(a.actions.all()) == [ended, second]
    with pytest.raises(Conflict):
        a.actions.end(first, "refused", 3.5)
    with pytest.raises(NotFound):
        a.actions.end(replace(first, id="action-9999999999"), "refused", 3.5)
    assert list(b.actions.all()) == [ended, second]


def test_an_action_whose_session_ended_before_its_outcome_was_known_says_so(position, a):
    leaving = position.join()
    done, open_ = leaving.actions.add(DONE), leaving.actions.add(DONE)
    mine = a.actions.add(DONE)
    leaving.actions.end(done, "done", 2.5)
    assert [action.abandoned for action in a.actions.all()] == [False] * 3
    leaving.close()
    found = eventually(lambda: (stored := a.actions.all())[1].abandoned and stored)
    assert [(each.id, each.abandoned) for each in found] == [
        (done.id, False), (open_.id, True), (mine.id, False)
    ]  # fmt: skip
    later = a.actions.end(open_, "done after all", 3.5)
    assert not a.actions.all()[1].abandoned
    assert later.outcome == "done after all"


def test_an_action_of_a_release_that_named_no_session_is_under_way(position, a):
    stored = a.actions.add(DONE)
    text = b'{"version": 1, "by": "anna", "what": "start", "on": "shop", "at": 1.5}'
    position.put(f"/actions/{stored.id}", text)
    ((action),) = a.actions.all()
    assert (action.session, action.abandoned) == (0, False)


def test_what_is_ended_while_it_is_read_is_not_abandoned(position, a, monkeypatch):
    """A session ends in order between the look at its action and the look at the sessions."""
    leaving = position.join()
    stored = leaving.actions.add(DONE)
    children = type(a._znodes).children

    def ends_meanwhile(znodes, path):
        if path.endswith("/acting"):
            monkeypatch.undo()
            leaving.actions.end(stored, "done", 2.5)
            leaving.close()
            eventually(lambda: not children(znodes, path) or children(znodes, path) == mine)
        return children(znodes, path)

    mine = [f"{a.session.session_id():x}"]
    monkeypatch.setattr(type(a._znodes), "children", ends_meanwhile)
    ((action),) = a.actions.all()
    assert (action.outcome, action.abandoned) == ("done", False)


def test_actions_are_trimmed_and_very_long_texts_cut(a, monkeypatch):
    monkeypatch.setattr("arbiter.actions.MAX_ACTIONS", 3)
    for n in range(6):
        a.actions.add(replace(DONE, by=f"nr {n}", outcome="x" * 100_000))
    stored = a.actions.all()
    assert [action.by for action in stored] == ["nr 3", "nr 4", "nr 5"]
    assert all(action.outcome == "x" * 4000 for action in stored)


def test_an_unreadable_action_hides_no_other(position, a):
    first, second = a.actions.add(DONE), a.actions.add(DONE)
    position.put(f"/actions/{first.id}", b"{")
    assert list(a.actions.all()) == [second]


# -- facts ----------------------------------------------------------------------------------


def test_facts_of_an_empty_position(position):
    facts = position.join().facts()
    assert facts == Facts()


def test_facts_are_what_the_single_reads_say(a, b):
    a.nodes.announce(NodeInfo("n1", ready=True))
    b.nodes.announce(NodeInfo("n2", host="h", pid=3, http="http://x", started=1.0))
    a.channels.put("other", {"x": 1})
    a.channels.put("empty", {})
    a.channels.set_state(a.channels.one("other"), ChannelState.START)
    held = a.leader_locks.campaign(PIPELINE, "n1")
    b.leader_locks.campaign(BACK, "n2")
    b.leader_locks.campaign(PipelineId("other", "p"), "n2")
    b.leader_locks.release(BACK, b.leader_locks.one(BACK))
    signal = a.signals.send(PIPELINE, Signal(SignalKind.ROLLBACK, by="me", epoch=held.epoch))
    facts = b.facts()
    assert list(facts.nodes.values()) == list(b.nodes.all())
    assert facts.nodes["n1"].ready
    assert list(facts.channels.values()) == list(b.channels.all())
    assert facts.leader_locks == {
        PIPELINE: held,
        PipelineId("other", "p"): b.leader_locks.one(PipelineId("other", "p")),
    }
    assert facts.signals == {PIPELINE: (signal,)}


# -- signals --------------------------------------------------------------------------------

WISH = Signal(SignalKind.SWITCHOVER, to="n2", at=5.0, leader="n1", epoch=9, by="me", sent=4.0)


def test_signals_are_stored_in_order(a, b):
    assert list(a.signals.all(PIPELINE)) == []
    first = a.signals.send(PIPELINE, WISH)
    second = b.signals.send(PIPELINE, replace(WISH, kind=SignalKind.FAILOVER, at=0.0))
    assert first.id
    assert replace(first, id="") == WISH
    assert list(b.signals.all(PIPELINE)) == [first, second]
    assert list(a.signals.all(BACK)) == []


def test_a_signal_is_answered_once(a, b):
    sent = a.signals.send(PIPELINE, WISH)
    answered = b.signals.answer(PIPELINE, sent, SignalState.DONE, "n2 leads")
    assert (answered.state, answered.answer) == (SignalState.DONE, "n2 leads")
    assert list(a.signals.all(PIPELINE)) == [answered]
    with pytest.raises(Conflict):
        a.signals.answer(PIPELINE, sent, SignalState.REFUSED, "no")
    assert list(a.signals.all(PIPELINE)) == [answered]


def test_a_signal_that_is_gone_cannot_be_answered(a):
    sent = a.signals.send(PIPELINE, WISH)
    with pytest.raises(NotFound):
        a.signals.answer(PIPELINE, replace(sent, id="signal-9999999999"), SignalState.DONE, "")


def test_a_signal_needs_a_channel(a):
    with pytest.raises(NotFound):
        a.signals.send(PipelineId("nowhere", "p"), WISH)


def test_answered_signals_are_trimmed_and_open_ones_are_not(a):
    open_ = a.signals.send(PIPELINE, WISH)
    for n in range(MAX_SIGNALS + 5):
        sent = a.signals.send(PIPELINE, replace(WISH, by=f"nr {n}"))
        a.signals.answer(PIPELINE, sent, SignalState.DONE, "")
    stored = a.signals.all(PIPELINE)
    assert stored[0] == open_
    assert len(stored) <= MAX_SIGNALS + 2
    assert stored[-1].by == f"nr {MAX_SIGNALS + 4}"


# -- deposing -------------------------------------------------------------------------------


def test_a_leader_is_deposed_although_its_session_lives(a, b):
    held = a.leader_locks.campaign(PIPELINE, "n1")
    held = a.leader_locks.set_status(PIPELINE, held, LeaderLockStatus.OVERTAKE)
    b.leader_locks.depose(PIPELINE, b.leader_locks.one(PIPELINE))
    assert a.leader_locks.one(PIPELINE) is None
    assert b.leader_locks.campaign(PIPELINE, "n2").epoch > held.epoch
    with pytest.raises(Conflict):
        a.leader_locks.set_status(PIPELINE, held, LeaderLockStatus.OVERTAKE)


def test_only_the_leadership_that_was_seen_is_deposed(a, b):
    b.leader_locks.depose(PIPELINE, LeaderLock("n1", LeaderLockStatus.TAKING, 1, 1))
    seen = a.leader_locks.campaign(PIPELINE, "n1")
    a.leader_locks.release(PIPELINE, seen)
    new = a.leader_locks.campaign(PIPELINE, "n1")
    b.leader_locks.depose(PIPELINE, seen)
    assert b.leader_locks.one(PIPELINE) == new


# -- epochs ---------------------------------------------------------------------------------


def test_the_base_is_0_until_it_is_raised(a, b):
    assert a.epochs.base() == 0
    assert a.epochs.raise_base(5_000_000_000_000) == 5_000_000_000_000
    assert b.epochs.base() == 5_000_000_000_000


def test_the_base_is_never_lowered(a, b):
    a.epochs.raise_base(500)
    assert b.epochs.raise_base(499) == 500
    assert b.epochs.raise_base(500) == 500
    assert a.epochs.base() == 500


def test_the_next_epoch_is_a_lower_bound_and_takes_nothing(a, b):
    coming = a.epochs.next()
    assert coming < a.epochs.next() < b.epochs.next()
    assert a.facts() == Facts(channels=a.facts().channels)
    held = a.leader_locks.campaign(PIPELINE, "n1")
    assert held.epoch > coming
    assert b.epochs.next() > held.epoch
    a.epochs.raise_base(1 << 40)
    assert b.epochs.next() > 1 << 40


@pytest.mark.parametrize("base", [-1, (1 << 62) + 1])
def test_bases_that_make_no_sense(a, base):
    with pytest.raises(Invalid):
        a.epochs.raise_base(base)


def test_leaderships_after_a_raise_are_above_it_and_earlier_ones_stay(a, b):
    held = a.leader_locks.campaign(PIPELINE, "n1")
    base = held.epoch + 1_000_000
    b.epochs.raise_base(base)
    assert a.leader_locks.campaign(PIPELINE, "n1") == held
    assert b.leader_locks.one(PIPELINE) == held
    held = a.leader_locks.set_status(PIPELINE, held, LeaderLockStatus.OVERTAKE)
    a.leader_locks.release(PIPELINE, held)
    new = b.leader_locks.campaign(PIPELINE, "n2")
    assert new.epoch > base
    new = b.leader_locks.set_status(PIPELINE, new, LeaderLockStatus.OVERTAKE)
    assert a.leader_locks.one(PIPELINE) == new
    assert a.facts().leader_locks == {PIPELINE: new}
    b.leader_locks.release(PIPELINE, new)
    assert a.leader_locks.one(PIPELINE) is None


def test_a_damaged_base_makes_nobody_leader_until_it_is_written_again(position, a):
    a.epochs.raise_base(7)
    position.put("/epoch", b"{}")
    with pytest.raises(Invalid):
        a.leader_locks.campaign(PIPELINE, "n1")
    assert a.leader_locks.one(PIPELINE) is None
    assert a.epochs.raise_base(8) == 8
    assert a.leader_locks.campaign(PIPELINE, "n1").epoch > 8


# -- wake-ups -------------------------------------------------------------------------------


def test_changes_wake_who_watches(a, b):
    woken = threading.Event()
    b.session.watch(woken.set)

    def wakes(act):
        """Each change must wake; what was due before must have come first."""
        wait_for_quiet(b, woken)
        result = act()
        assert woken.wait(20), "nobody was woken"
        return result

    wakes(lambda: a.channels.put("new", {}))
    wakes(lambda: a.channels.put("new", {"x": 1}))
    wakes(lambda: a.channels.set_state(a.channels.one("shop"), ChannelState.START))
    held = wakes(lambda: a.leader_locks.campaign(PIPELINE, "n1"))
    wakes(lambda: a.leader_locks.set_status(PIPELINE, held, LeaderLockStatus.OVERTAKE))
    wakes(lambda: a.leader_locks.release(PIPELINE, held))
    wakes(lambda: a.signals.send(PIPELINE, WISH))
    wakes(lambda: a.signals.send(PIPELINE, WISH))
    wakes(lambda: a.leader_locks.campaign(PIPELINE, "n1"))
    wakes(lambda: a.leader_locks.campaign(PipelineId("new", "first"), "n1"))
    wakes(a.close)


def test_several_may_watch(a, b):
    first, second = threading.Event(), threading.Event()
    b.session.watch(first.set)
    b.session.watch(second.set)
    a.channels.put("new", {})
    assert first.wait(20)
    assert second.wait(20)


def wait_for_quiet(arbiter, woken):
    """Wait until the watches are armed and have been silent for a moment."""

    def silent():
        woken.clear()
        return not woken.wait(0.3)

    eventually(silent, 30)


# -- requests to load tables ---------------------------------------------------------------


def test_requests_to_load_tables_are_stored_in_order_and_changed_by_compare_and_set(a, b):
    first = a.loads.add(PIPELINE, {"tables": ["shop.a"]})
    second = b.loads.add(PIPELINE, {"tables": ["shop.ä"]})
    assert first.id < second.id
    assert [load.value for load in b.loads.all(PIPELINE)] == [first.value, second.value]
    changed = a.loads.change(PIPELINE, first, {"state": "paused"})
    with pytest.raises(Conflict):
        b.loads.change(PIPELINE, first, {"state": "done"})
    b.loads.remove(PIPELINE, first)  # it was changed, so it stays
    assert list(b.loads.all(PIPELINE)) == [changed, second]
    b.loads.remove(PIPELINE, changed)
    assert list(a.loads.all(PIPELINE)) == [second]
    with pytest.raises(Conflict):
        a.loads.change(PIPELINE, changed, {})


def test_there_are_no_requests_to_load_tables_of_a_channel_that_is_not_there(a):
    assert list(a.loads.all(PipelineId("none", "there"))) == []
    with pytest.raises(NotFound):
        a.loads.add(PipelineId("none", "there"), {})


# -- removing a channel --------------------------------------------------------------------


def test_a_channel_is_removed_with_all_that_is_below_it_and_epochs_go_on(a, b):
    held = a.leader_locks.campaign(PIPELINE, "n1")
    a.history.add(PIPELINE, HistoryItem(held.epoch, "n1", "why", 1.0))
    a.positions.store(PIPELINE, {"at": 1}, None)
    stopped = a.channels.set_state(a.channels.one("shop"), ChannelState.STOP)
    with pytest.raises(Conflict, match="a node leads shop/there"):
        b.channels.remove(stopped)
    assert a.leader_locks.one(PIPELINE) == held
    assert a.positions.read(PIPELINE) is not None
    a.leader_locks.release(PIPELINE, held)
    b.channels.remove(stopped)
    with pytest.raises(NotFound):
        a.channels.one("shop")
    a.channels.put("shop", {"channel": "shop"})
    assert a.positions.read(PIPELINE) is None
    assert list(a.history.all(PIPELINE)) == []
    assert a.leader_locks.campaign(PIPELINE, "n1").epoch > held.epoch


def test_a_channel_that_runs_or_was_changed_meanwhile_is_not_removed(a):
    stopped = a.channels.set_state(a.channels.one("shop"), ChannelState.STOP)
    a.positions.store(PIPELINE, {"at": 1}, None)
    started = a.channels.set_state(stopped, ChannelState.START)
    with pytest.raises(Invalid):
        a.channels.remove(started)
    with pytest.raises(Conflict):
        a.channels.remove(stopped)
    assert a.positions.read(PIPELINE) is not None


# -- cut-overs ------------------------------------------------------------------------------


def test_cutovers_are_compared_and_set(a, b):
    assert a.cutovers.read(PIPELINE) is None
    revision = a.cutovers.store(PIPELINE, {"step": "drain"}, None)
    assert b.cutovers.read(PIPELINE) == ({"step": "drain"}, revision)
    with pytest.raises(Conflict):
        b.cutovers.store(PIPELINE, {"step": "check"}, None)
    newer = b.cutovers.store(PIPELINE, {"step": "done"}, revision)
    with pytest.raises(Conflict):
        a.cutovers.store(PIPELINE, {"step": "verify"}, revision)
    with pytest.raises(Conflict):
        a.cutovers.forget(PIPELINE, revision)
    assert a.cutovers.read(PIPELINE) == ({"step": "done"}, newer)
    assert a.cutovers.read(BACK) is None
    assert a.cutovers.all([BACK, PIPELINE]) == {PIPELINE: {"step": "done"}}
    a.cutovers.forget(PIPELINE, newer)
    assert b.cutovers.read(PIPELINE) is None


def test_what_verification_stores_is_compared_and_set(position, a, b):
    assert a.verifications.read(PIPELINE) is None
    revision = a.verifications.store(PIPELINE, {"epoch": 5, "after": [{"hex": "ff"}, "é"]}, None)
    assert b.verifications.read(PIPELINE) == ({"epoch": 5, "after": [{"hex": "ff"}, "é"]}, revision)
    with pytest.raises(Conflict):
        b.verifications.store(PIPELINE, {"epoch": 4}, None)
    newer = b.verifications.store(PIPELINE, {"epoch": 6}, revision)
    with pytest.raises(Conflict):
        a.verifications.store(PIPELINE, {"epoch": 5}, revision)
    assert a.verifications.read(PIPELINE) == ({"epoch": 6}, newer)
    assert a.verifications.read(BACK) is None
    position.put("/channels/shop/there/verification", b"[]")
    empty, revision = a.verifications.read(PIPELINE)
    assert empty == {}, "it restarts"
    a.verifications.store(PIPELINE, {"epoch": 7}, revision)
    channel = b.channels.one("shop")
    b.channels.remove(channel)
    with pytest.raises(NotFound):
        a.verifications.store(PIPELINE, {"epoch": 7}, None)


def test_an_unreadable_cutover_is_an_error_and_not_none(position, a):
    a.cutovers.store(PIPELINE, {"step": "drain"}, None)
    position.put("/channels/shop/there/cutover", b"[]")
    with pytest.raises(Invalid, match="shop/there"):
        a.cutovers.read(PIPELINE)


# -- alarms ---------------------------------------------------------------------------------


def test_one_session_sends_alarms_until_it_ends(a, b):
    assert a.alarms.sender() is None
    mine = a.alarms.take(AlarmSender("n1", ("mail",)))
    assert mine == AlarmSender("n1", ("mail",), a.session.session_id())
    assert a.alarms.take(AlarmSender("n1", ("mail",))) == mine, "idempotent"
    assert b.alarms.take(AlarmSender("n2", ("mail",))) == mine
    assert b.alarms.sender() == mine
    a.close()
    eventually(lambda: b.alarms.sender() is None, 20)
    theirs = b.alarms.take(AlarmSender("n2", ("mail",)))
    assert theirs == AlarmSender("n2", ("mail",), b.session.session_id())


def test_a_session_that_is_named_in_a_sender_does_not_count(a, b):
    mine = a.alarms.take(AlarmSender("n1", ("mail",), session=b.session.session_id()))
    assert mine.session == a.session.session_id()
    assert b.alarms.take(AlarmSender("n1", ("mail",))) == mine, "the same node, another session"


def test_a_sender_that_reports_somebody_replaces_one_that_reports_nobody(position, a, b):
    nobody = a.alarms.take(AlarmSender("n1"))
    assert b.alarms.take(AlarmSender("n2")) == nobody
    somebody = b.alarms.take(AlarmSender("n2", ("hook",)))
    assert somebody == AlarmSender("n2", ("hook",), b.session.session_id())
    assert a.alarms.take(AlarmSender("n1")) == somebody
    assert a.alarms.take(AlarmSender("n1", ("mail",))) == somebody
    position.put("/alarms/sender", b"[]")
    assert a.alarms.sender() == AlarmSender("", (), b.session.session_id()), (
        "unreadable: tells nobody"
    )
    assert a.alarms.take(AlarmSender("n1", ("mail",))).session == a.session.session_id()


KEPT = [("read", "store", "state"), ("silences", "store_silences", "silences")]


@pytest.mark.parametrize(("read", "store", "znode"), KEPT)
def test_what_is_stored_of_alarms_is_compared_and_set(position, a, b, read, store, znode):
    assert getattr(a.alarms, read)() is None
    with pytest.raises(Conflict):
        getattr(a.alarms, store)({"raised": []}, 0)
    revision = getattr(a.alarms, store)({"raised": [{"rule": "lag", "text": "é"}]}, None)
    assert getattr(b.alarms, read)() == ({"raised": [{"rule": "lag", "text": "é"}]}, revision)
    with pytest.raises(Conflict, match="changed concurrently"):
        getattr(b.alarms, store)({}, None)
    newer = getattr(b.alarms, store)({"raised": []}, revision)
    with pytest.raises(Conflict):
        getattr(a.alarms, store)({"raised": [1]}, revision)
    with pytest.raises(Invalid):
        getattr(a.alarms, store)({"raised": ["x" * 2_000_000]}, newer)
    assert getattr(a.alarms, read)() == ({"raised": []}, newer)
    others = {name for name, _, _ in KEPT} - {read}
    assert all(getattr(a.alarms, other)() is None for other in others), "each is kept by itself"
    position.put(f"/alarms/{znode}", b"[]")
    empty, revision = getattr(b.alarms, read)()
    assert empty == {}, "alarms that hold are raised again"
    getattr(b.alarms, store)({"raised": [2]}, revision)
    a.close()
    assert getattr(b.alarms, read)()[0] == {"raised": [2]}, "it outlives whoever wrote it"
