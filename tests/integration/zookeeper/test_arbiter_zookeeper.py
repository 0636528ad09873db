"""Faults that only real servers have: frozen, restarted, replaced, and sessions they end."""

import re
import socket
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from arbiter.errors import Contact, Invalid, Unreachable
from arbiter.snapshot import look
from arbiter.values import ChannelState, NodeInfo, PipelineId
from arbiter.zookeeper import ZooKeeperArbiter
from setl.clock import SystemClock
from setl_embedded import ZooKeeper
from setl_embedded.ports import free_port
from setl_embedded.zookeeper import ZooKeeperEnsemble, four_letter_word
from tests.waiting import eventually

pytestmark = pytest.mark.servers

PIPELINE = PipelineId("shop", "there")
TIMEOUT = 12.0
"""Long enough that a busy machine neither ends sessions by itself nor doubts them: an answer may
take a quarter of it."""
AT_ONCE = 2.0
"""Seconds for what waits for nothing, on a busy machine; what waits for an answer takes longer."""


@pytest.fixture
def joined():
    """Makes started arbiters, and closes them."""
    made = []

    def join(hosts, **options):
        options.setdefault("root", f"/drill-{uuid.uuid4().hex[:12]}")
        options.setdefault("session_timeout", TIMEOUT)
        arbiter = ZooKeeperArbiter(hosts, **options)
        made.append(arbiter)
        arbiter.start(20)
        return arbiter

    yield join
    for arbiter in made:
        arbiter.close()


@pytest.fixture
def own_server(tmp_path):
    """A server that this test may freeze and restart."""
    with ZooKeeper(tmp_path / "zookeeper", "zookeeper-own", tick_ms=200) as server:
        yield server


def contact_is(arbiter, contact):
    return lambda: arbiter.session.contact() is contact


def expire_on_server(arbiter, hosts):
    """End a session as its server would: its credentials are used by another, who closes it."""
    client = arbiter._session_of_kazoo._client
    thief = KazooClient(hosts, client_id=client.client_id)
    thief.start()
    thief.stop()
    thief.close()


def freeze(server):
    """Pause a server; returns when, and only once every thread of it stands still."""
    server.pause()
    tasks = Path(f"/proc/{server.pid}/task")

    def still():
        states = [
            (task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks.iterdir()
        ]
        return set(states) == {"T"}

    eventually(still)
    return time.monotonic()


def in_limit(limit, act, *expected):
    """`act` must fail as expected, and not take longer than `limit` seconds."""
    began = time.monotonic()
    with pytest.raises(expected):
        act()
    assert time.monotonic() - began < limit


# -- sessions that the server ends --------------------------------------------------------------


def test_a_session_that_expires_is_lost_until_announced_again(zookeeper, joined):
    a = joined(zookeeper.hosts)
    b = joined(zookeeper.hosts, root=root_of(a))
    a.channels.put("shop", {})
    a.nodes.announce(NodeInfo("n1"))
    held = a.leader_locks.campaign(PIPELINE, "n1")
    first = a.session.session_id()
    woken = threading.Event()
    a.session.watch(woken.set)

    expire_on_server(a, zookeeper.hosts)

    eventually(contact_is(a, Contact.LOST), 2 * TIMEOUT)
    assert woken.wait(20)
    assert b.leader_locks.one(PIPELINE) is None
    assert list(b.nodes.all()) == []
    theirs = b.leader_locks.campaign(PIPELINE, "n2")
    assert theirs.epoch > held.epoch

    # kazoo has opened a new session by itself; it answers, but nothing of the old one is here.
    eventually(lambda: a.session.session_id() not in (0, first), 30)
    assert a.session.contact() is Contact.LOST
    assert a.leader_locks.one(PIPELINE) == theirs
    a.leader_locks.release(PIPELINE, held)
    assert b.leader_locks.one(PIPELINE) == theirs
    a.nodes.announce(NodeInfo("n1"))
    assert a.session.contact() is Contact.CONNECTED
    assert [node.nid for node in b.nodes.all()] == ["n1"]
    eventually(lambda: a.session.last_contact() > time.monotonic() - TIMEOUT / 2)


def test_watches_live_on_in_a_new_session(zookeeper, joined):
    a = joined(zookeeper.hosts)
    b = joined(zookeeper.hosts, root=root_of(a))
    a.channels.put("shop", {})
    first = b.session.session_id()
    expire_on_server(b, zookeeper.hosts)
    eventually(lambda: b.session.session_id() not in (0, first), 30)
    woken = threading.Event()
    b.session.watch(woken.set)

    def silent():
        woken.clear()
        return not woken.wait(0.3)

    for act in (
        lambda: a.leader_locks.campaign(PIPELINE, "n1"),
        lambda: a.channels.put("shop", {"x": 1}),
    ):
        eventually(silent, 20)
        act()
        assert woken.wait(20)


def test_many_changes_leave_no_watch_behind(zookeeper, joined):
    a = joined(zookeeper.hosts)
    b = joined(zookeeper.hosts, root=root_of(a))
    watches = b._session_of_kazoo._watches
    a.channels.put("shop", {})
    for n in range(30):
        a.channels.put("shop", {"n": n})
        a.leader_locks.release(PIPELINE, a.leader_locks.campaign(PIPELINE, "n1"))
    # The channels, the one channel's data and children, its one mainstem and the signals to it;
    # nodes and the epochs' base, which are not there.
    eventually(lambda: watches.complete and watches.armed == 7, 20)
    # kazoo keeps a callback for each, and one for when there was no channels folder yet.
    client = b._session_of_kazoo._client
    stored = [*client._data_watchers.values(), *client._child_watchers.values()]
    assert sum(map(len, stored)) <= 8


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_client_that_gave_up_is_replaced(zookeeper, joined, monkeypatch):
    arbiter = joined(zookeeper.hosts)
    arbiter.channels.put("shop", {})
    first = arbiter.session.session_id()
    handler = arbiter._session_of_kazoo._handler

    def broken(*args, **kwargs):
        raise RuntimeError("kazoo does not expect this")

    monkeypatch.setattr(handler, "create_connection", broken)
    handler.drop()
    eventually(contact_is(arbiter, Contact.LOST), 30)
    eventually(lambda: arbiter.session.session_id() not in (0, first), 30)
    arbiter.nodes.announce(NodeInfo("n1"))
    assert arbiter.session.contact() is Contact.CONNECTED
    assert arbiter.channels.one("shop").name == "shop"


def test_a_request_of_an_earlier_session_is_never_sent(zookeeper, joined):
    """Versions are no proof: the znode of the next leader has the same one."""
    a = joined(zookeeper.hosts)
    b = joined(zookeeper.hosts, root=root_of(a))
    a.channels.put("shop", {})
    held = a.leader_locks.campaign(PIPELINE, "n1")
    session = a._session_of_kazoo
    read = session.read

    def read_then_lose(path):
        """Between reading and deleting, the session ends and another node takes over."""
        found = read(path)
        expire_on_server(a, zookeeper.hosts)
        eventually(lambda: a.session.session_id() not in (0, held.session), 30)
        b.leader_locks.campaign(PIPELINE, "n2")
        return found

    session.read = read_then_lose
    a.leader_locks.release(PIPELINE, held)
    assert b.leader_locks.one(PIPELINE).nid == "n2"


def test_close_ends_the_session_at_once(zookeeper, joined):
    a = joined(zookeeper.hosts)
    b = joined(zookeeper.hosts, root=root_of(a))
    a.nodes.announce(NodeInfo("n1"))
    began = time.monotonic()
    a.close()
    b.nodes.announce(NodeInfo("n1"))
    assert time.monotonic() - began < TIMEOUT / 2
    eventually(lambda: "arbiter-close" not in [t.name for t in threading.enumerate()], 20)


def test_the_granted_session_timeout_is_what_counts(own_server, joined):
    short = joined(own_server.hosts, session_timeout=0.5)
    long = joined(own_server.hosts, session_timeout=100.0)
    assert short.session.session_timeout == 1.0  # the embedded server's smallest
    assert long.session.session_timeout == 60.0  # and its largest


# -- servers that freeze, end and come back -------------------------------------------------------


def test_a_frozen_server_is_noticed_and_no_call_hangs(own_server, joined):
    arbiter = joined(own_server.hosts)
    arbiter.channels.put("shop", {})
    eventually(lambda: arbiter._session_of_kazoo._watches.complete)
    frozen = freeze(own_server)
    try:
        # A call in flight ends with its limit, a third of the session timeout.
        in_limit(TIMEOUT / 3 + 3, lambda: arbiter.channels.one("shop"), Unreachable)
        eventually(contact_is(arbiter, Contact.SUSPENDED), TIMEOUT)
        noticed = time.monotonic() - frozen
        assert noticed < TIMEOUT * 0.6, f"noticed after {noticed:.2f} s"
        # From then on calls are refused at once instead of queued.
        eventually(lambda: not arbiter._session_of_kazoo._life.connected, TIMEOUT)
        in_limit(AT_ONCE, arbiter.channels.all, Unreachable)
        in_limit(AT_ONCE, lambda: arbiter.leader_locks.campaign(PIPELINE, "n1"), Unreachable)
        in_limit(AT_ONCE, lambda: arbiter.nodes.announce(NodeInfo("n1")), Unreachable)
        assert arbiter.session.last_contact() <= frozen
        before = arbiter.session.last_contact()
        time.sleep(TIMEOUT / 3)  # nothing may move meanwhile
        assert arbiter.session.last_contact() == before
        assert arbiter.session.contact() is Contact.SUSPENDED
    finally:
        own_server.resume()
    eventually(
        lambda: arbiter.session.session_id() and arbiter.session.last_contact() > before,
        3 * TIMEOUT,
    )
    arbiter.nodes.announce(NodeInfo("n1"))
    assert arbiter.session.contact() is Contact.CONNECTED
    assert arbiter.channels.one("shop").name == "shop"


def test_close_does_not_wait_for_a_frozen_server(own_server, joined):
    arbiter = joined(own_server.hosts, session_timeout=30.0)
    freeze(own_server)
    try:
        began = time.monotonic()
        arbiter.close()
        assert time.monotonic() - began < 9  # four by itself; kazoo alone waits for ten
        assert arbiter.session.contact() is Contact.LOST
        in_limit(AT_ONCE, arbiter.channels.all, Unreachable)
    finally:
        own_server.resume()


def test_a_restarted_server_stores_sessions_and_what_they_hold(own_server, joined):
    arbiter = joined(own_server.hosts, session_timeout=20.0)
    arbiter.channels.put("shop", {"x": 1})
    arbiter.nodes.announce(NodeInfo("n1"))
    held = arbiter.leader_locks.campaign(PIPELINE, "n1")
    own_server.kill()
    eventually(contact_is(arbiter, Contact.SUSPENDED), 20)
    own_server.start()
    eventually(contact_is(arbiter, Contact.CONNECTED), 60)
    assert arbiter.leader_locks.one(PIPELINE) == held
    assert arbiter.channels.one("shop").definition == {"x": 1}
    woken = threading.Event()
    eventually(lambda: arbiter._session_of_kazoo._watches.complete)
    arbiter.session.watch(woken.set)
    arbiter.channels.put("shop", {"x": 2})
    assert woken.wait(20)


def test_an_arbiter_may_be_started_before_its_server(own_server, joined):
    own_server.stop()
    arbiter = ZooKeeperArbiter(own_server.hosts, root="/late", session_timeout=TIMEOUT)
    try:
        began = time.monotonic()
        with pytest.raises(Unreachable, match=own_server.hosts):
            arbiter.start(1)
        assert time.monotonic() - began < 1 + 5
        own_server.start()
        arbiter.start(20)
        assert list(arbiter.channels.all()) == []
        assert arbiter.session.contact() is Contact.CONNECTED
    finally:
        arbiter.close()


def test_starting_against_a_frozen_server_has_a_limit(own_server):
    freeze(own_server)
    try:
        arbiter = ZooKeeperArbiter(own_server.hosts, session_timeout=TIMEOUT)
        in_limit(1 + 5, lambda: arbiter.start(1), Unreachable)
        arbiter.close()
    finally:
        own_server.resume()


def test_a_frozen_member_is_left_before_the_session_ends(tmp_path, joined):
    with ZooKeeperEnsemble(tmp_path, 3) as ensemble:
        # A frozen leader takes an election first; this is about its followers.
        leader = ensemble.leader()
        followers = {s.port: s for s in ensemble.servers if s is not leader}
        hosts = ",".join(server.hosts for server in followers.values())
        arbiter = joined(hosts, session_timeout=20.0)
        arbiter.channels.put("shop", {})
        held = arbiter.leader_locks.campaign(PIPELINE, "n1")
        seen = []
        arbiter.session.watch(lambda: seen.append(arbiter.session.contact()))
        frozen = followers[arbiter._session_of_kazoo._handler._link.getpeername()[1]]
        freeze(frozen)
        try:
            eventually(lambda: Contact.SUSPENDED in seen, 15, interval=0.01)
            eventually(contact_is(arbiter, Contact.CONNECTED), 20)
            assert arbiter.leader_locks.one(PIPELINE) == held
            assert arbiter.session.session_id() == held.session
            assert Contact.LOST not in seen
        finally:
            frozen.resume()


def test_what_a_follower_answers_by_itself_is_no_sign_of_life(tmp_path, joined):
    """Cut off from its leader, a follower answers reads for a while; the leader counts."""
    with ZooKeeperEnsemble(tmp_path, 3, tick_ms=200) as ensemble:
        leader = ensemble.leader()
        hosts = ",".join(s.hosts for s in ensemble.servers if s is not leader)
        arbiter = joined(hosts, session_timeout=20.0)
        arbiter.channels.put("shop", {})
        held = arbiter.leader_locks.campaign(PIPELINE, "n1")
        seen = {}
        # Noted at once: the followers may soon have another leader, who gives signs of life.
        arbiter.session.watch(
            lambda: seen.setdefault(arbiter.session.contact(), arbiter.session.last_contact())
        )
        frozen = freeze(leader)
        try:
            assert arbiter.leader_locks.one(PIPELINE) == held, "the follower should still answer"
            eventually(lambda: Contact.SUSPENDED in seen, 30, interval=0.01)
            assert seen[Contact.SUSPENDED] <= frozen
            # The followers elect another leader, and all goes on.
            eventually(lambda: arbiter.session.last_contact() > frozen, 30)
            eventually(contact_is(arbiter, Contact.CONNECTED), 30)
            assert arbiter.leader_locks.one(PIPELINE) == held
            assert arbiter.session.session_id() == held.session
        finally:
            leader.resume()


# -- addresses --------------------------------------------------------------------------------


@pytest.mark.parametrize("hosts", ["127.0.0.1:port", "[", ""])
def test_addresses_that_are_none_are_refused(hosts):
    with pytest.raises(Invalid):
        ZooKeeperArbiter(hosts)


def test_a_port_where_nobody_listens_is_unreachable():
    arbiter = ZooKeeperArbiter(f"127.0.0.1:{free_port()}", session_timeout=TIMEOUT)
    in_limit(1 + 5, lambda: arbiter.start(1), Unreachable)
    arbiter.close()


@pytest.mark.parametrize("listens", [False, True])
def test_whoever_waits_for_a_silent_server_may_give_up(listens):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1] if listens else free_port()
        arbiter = ZooKeeperArbiter(f"127.0.0.1:{port}", session_timeout=TIMEOUT)
        given_up = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(arbiter.start, 600, given_up.is_set)
            given_up.set()
            with pytest.raises(Unreachable):
                waiting.result(60)
        arbiter.close()


def root_of(arbiter):
    return arbiter._paths.root


def test_looking_at_many_quiet_pipelines_asks_the_server_nothing(joined, own_server):
    looker = joined(own_server.hosts)
    other = joined(own_server.hosts, root=root_of(looker))
    many = [PipelineId(f"many{n}", "ab") for n in range(20)]
    for pipeline in many:
        other.channels.set_state(other.channels.put(pipeline.channel, {}), ChannelState.START)
        other.leader_locks.campaign(pipeline, "n2")
    # Armed once the same answer is given twice.
    eventually(lambda: looker.facts() is looker.facts())
    assert len(looker.facts().leader_locks) == len(many)
    requests, packets = 200, server_packets(own_server)
    for _ in range(requests):
        assert look(looker, SystemClock()).contact is Contact.CONNECTED
    # One look that reads takes over 80 packets each way; signs of life pass meanwhile.
    assert server_packets(own_server) - packets < requests
    announced = NodeInfo(nid="n2", host="h", pid=1, http="http://h:1", started=0.0)
    for change, seen in (
        (lambda: other.leader_locks.release(many[3], other.leader_locks.one(many[3])),
         lambda facts: many[3] not in facts.leader_locks),
        (lambda: other.nodes.announce(announced), lambda facts: "n2" in facts.nodes),
        (lambda: other.nodes.announce(replace(announced, ready=True)),
         lambda facts: facts.nodes["n2"].ready),
        (lambda: other.channels.put("many4", {"new": 1}),
         lambda facts: facts.channels["many4"].definition == {"new": 1}),
    ):  # fmt: skip
        change()
        eventually(lambda seen=seen: seen(looker.facts()), timeout=15)


def server_packets(server):
    """Packets that a server has received and sent."""
    reported = four_letter_word(server.host, server.port, "mntr")
    return sum(
        map(int, re.findall(r"^zk_packets_(?:received|sent)\s+(\d+)", reported, re.MULTILINE))
    )
