"""Three servers, secured as in earnest: which of them may die, and what a leader hears of it."""

import threading
import time
import uuid
from functools import partial

import pytest

from arbiter.access import Access, Tls
from arbiter.errors import Conflict, Contact, Unreachable
from arbiter.servers import ask as ask_server
from arbiter.servers import servers_of
from arbiter.values import ChannelState, LeaderLockStatus, NodeInfo, PipelineId
from arbiter.zookeeper import ZooKeeperArbiter
from setl.node.ensemble import LOOKS
from setl.node.ensemble_watch import EnsembleWatch
from setl_embedded.zookeeper import ZooKeeperEnsemble
from setl_embedded.zookeeper_security import ZooKeeperSecurity
from tests.waiting import eventually

pytestmark = pytest.mark.servers

PIPELINE = PipelineId("shop", "there")
SLOW = 30.0
"""Seconds that an election among servers may take on a busy machine."""


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    """The ensemble of this file; a test leaves it with all its members alive."""
    security = ZooKeeperSecurity(tmp_path_factory.mktemp("security"), tls=True, accounts=["setl"])
    folder = tmp_path_factory.mktemp("ensemble")
    with ZooKeeperEnsemble(folder, 3, tick_ms=200, security=security) as ensemble:
        yield ensemble


@pytest.fixture
def ensemble(members):
    yield members
    members.start()


@pytest.fixture
def joined(ensemble):
    """Makes started arbiters under one root, and closes them."""
    root, made = f"/ensemble-{uuid.uuid4().hex[:12]}", []
    security = ensemble.servers[0].security
    login = {
        "mechanism": "DIGEST-MD5",
        "username": "setl",
        "password": security.passwords["setl"],
    }
    access = Access(sasl=login, tls=Tls(ca=str(security.ca)))

    def join(hosts=ensemble.hosts, **options):
        arbiter = ZooKeeperArbiter(hosts, root=root, access=access, **options)
        made.append(arbiter)
        arbiter.start(20)
        return arbiter

    yield join
    for arbiter in made:
        arbiter.close()


def contacts_of(arbiter):
    """Every contact that the arbiter tells of, from now on."""
    seen = []
    arbiter.session.watch(lambda: seen.append(arbiter.session.contact()))
    return seen


def server_of(arbiter, ensemble):
    """The member that this arbiter is connected to."""
    port = arbiter._session_of_kazoo._handler._link.getpeername()[1]
    return next(server for server in ensemble.servers if server.port == port)


def answered(ask):
    try:
        return ask()
    except (Unreachable, Conflict):
        return None


def elected(arbiter):
    """The leadership of this very session; None while that of an earlier one is not over."""
    held = answered(lambda: arbiter.leader_locks.campaign(PIPELINE, "n1"))
    return held if held and held.session == arbiter.session.session_id() else None


def leading(join, **options):
    """A session that leads a pipeline."""
    arbiter = join(**options)
    arbiter.channels.set_state(arbiter.channels.put("shop", {}), ChannelState.START)
    arbiter.nodes.announce(NodeInfo("n1"))
    held = arbiter.leader_locks.campaign(PIPELINE, "n1")
    return arbiter, arbiter.leader_locks.set_status(PIPELINE, held, LeaderLockStatus.OVERTAKE)


def goes_on(arbiter, held, seen):
    """The leadership is the same one, and the session was never lost."""
    eventually(lambda: arbiter.session.contact() is Contact.CONNECTED, SLOW)
    assert arbiter.session.session_id() == held.session
    assert eventually(lambda: answered(lambda: arbiter.leader_locks.one(PIPELINE)), SLOW) == held
    assert Contact.LOST not in seen
    # It may still write as the leader.
    eventually(
        lambda: answered(
            lambda: arbiter.leader_locks.set_status(PIPELINE, held, LeaderLockStatus.OVERTAKE)
        ),
        SLOW,
    )


@pytest.mark.parametrize("member", ["the leader", "the one connected to", "another follower"])
def test_any_one_member_may_die_and_the_leadership_goes_on(ensemble, joined, member):
    leader = ensemble.leader()
    # Connected to a follower, so that the three are three different ones.
    followers = [server for server in ensemble.servers if server is not leader]
    hosts = ",".join(server.hosts for server in (followers if member != "the leader" else [leader]))
    arbiter, held = leading(joined, session_timeout=15.0, hosts=hosts)
    connected = server_of(arbiter, ensemble)
    another = joined(session_timeout=15.0)
    seen = contacts_of(arbiter)
    dying = {
        "the leader": leader,
        "the one connected to": connected,
        "another follower": next(s for s in followers if s is not connected),
    }[member]
    if member == "the leader":
        # Known to the client all along, as it would be with all in its list.
        arbiter._session_of_kazoo._client.set_hosts(ensemble.hosts)
    dying.kill()
    if member != "another follower":
        eventually(lambda: Contact.SUSPENDED in seen, SLOW, interval=0.01)
    goes_on(arbiter, held, seen)
    assert eventually(lambda: answered(lambda: another.leader_locks.one(PIPELINE)), SLOW) == held
    # And a member that comes back knows all of it.
    dying.start()
    late = joined(hosts=dying.hosts)
    assert late.leader_locks.one(PIPELINE) == held


def test_without_a_quorum_every_call_ends_and_the_deadline_passes(ensemble, joined):
    timeout = 8.0
    arbiter, held = leading(joined, session_timeout=timeout)
    call_limit = timeout / 3 + 4.0  # a third of the session, and a busy machine
    woken = threading.Event()
    seen = contacts_of(arbiter)
    arbiter.session.watch(woken.set)
    leader = ensemble.leader()
    stopped = [leader, next(s for s in ensemble.servers if s is not leader)]
    for server in stopped:
        server.kill()
    gone = time.monotonic()
    eventually(lambda: arbiter.session.contact() is Contact.SUSPENDED, 2 * timeout, interval=0.01)
    assert woken.wait(20)
    # What I3 lives on: no sign of life counts from now on, whatever the third member says.
    eventually(lambda: time.monotonic() > arbiter.session.last_contact() + timeout, 2 * timeout)
    reported = len(seen)  # between the two deaths there may have been a quorum for a moment
    assert arbiter.session.last_contact() <= gone
    for ask in (
        arbiter.channels.all,
        arbiter.nodes.all,
        lambda: arbiter.leader_locks.one(PIPELINE),
        lambda: arbiter.leader_locks.campaign(PIPELINE, "n1"),
        lambda: arbiter.leader_locks.set_status(PIPELINE, held, LeaderLockStatus.TAKING),
        lambda: arbiter.positions.store(PIPELINE, {}, None),
        lambda: arbiter.nodes.announce(NodeInfo("n1")),
    ):
        began = time.monotonic()
        with pytest.raises((Unreachable, Conflict)):
            ask()
        assert time.monotonic() - began < call_limit
    assert arbiter.session.contact() is not Contact.CONNECTED
    assert Contact.SUSPENDED in seen
    assert Contact.CONNECTED not in seen[reported:]

    for server in stopped:
        server.launch()
    for server in stopped:
        server.wait_ready()
    # A quorum that comes back gives every session its whole timeout again, so this one may live
    # on or not; either way it knows, and nobody led meanwhile.
    eventually(lambda: answered(lambda: (arbiter.nodes.announce(NodeInfo("n1")), True)), SLOW)
    assert arbiter.session.contact() is Contact.CONNECTED
    now = eventually(lambda: elected(arbiter), SLOW)
    if arbiter.session.session_id() == held.session:
        assert now.epoch == held.epoch
    else:
        assert now.epoch > held.epoch
    assert arbiter.channels.one("shop").state is ChannelState.START


def test_a_session_can_begin_while_one_member_is_down_which_is_named(ensemble, joined):
    gone = ensemble.servers[1]
    gone.kill()
    arbiter, held = leading(joined)
    assert arbiter.leader_locks.one(PIPELINE) == held
    tls = Tls(ca=str(gone.security.ca))
    watch = EnsembleWatch(
        servers_of(ensemble.hosts), arbiter.session.contact, partial(ask_server, tls=tls), tls
    )
    logs = [server.log for server in ensemble.servers]
    reported = [log.read_text().count("NettyServerCnxnFactory") for log in logs]
    for _ in range(LOOKS):
        watch.look()
    assert {seen.address for seen in watch.seen() if seen.answers is False} == {gone.hosts}
    gone.start()

    def all_answer():  # a server that has only begun may be slow once
        watch.look()
        return {seen.answers for seen in watch.seen()} == {True}

    eventually(all_answer, SLOW)
    shown = {seen.of for seen in watch.certificates() or ()}
    assert shown == {"CN=setl embedded authority", *ensemble.hosts.split(",")}
    assert arbiter.session.session_id() == held.session
    # Nor does a look put anything into the log of a server that is well.
    now = [log.read_text().count("NettyServerCnxnFactory") for log in logs]
    assert (now[0], now[2]) == (reported[0], reported[2])


def test_a_session_cannot_begin_without_a_quorum_and_says_so(ensemble, joined):
    for server in ensemble.servers[:2]:
        server.kill()
    began = time.monotonic()
    security = ensemble.servers[0].security
    access = Access(tls=Tls(ca=str(security.ca)))
    arbiter = ZooKeeperArbiter(ensemble.hosts, access=access)
    with pytest.raises(Unreachable) as caught:
        arbiter.start(6.0)  # long enough to ask each of them
    assert time.monotonic() - began < 12.0
    arbiter.close()
    assert f"{ensemble.servers[0].hosts}: Connection refused" in str(caught.value)
