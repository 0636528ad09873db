"""Writers that get in each other's way at the worst moment, and replies that never come."""

import pytest

from arbiter.errors import Conflict, Contact, Invalid, NotFound, Unreachable
from arbiter.values import ChannelState, HistoryItem, LeaderLockStatus, NodeInfo, PipelineId
from tests.arbiter_in_memory import ManualClock, MemoryArbiter, MemoryCluster

PIPELINE = PipelineId("shop", "there")


@pytest.fixture
def cluster():
    return MemoryCluster()


@pytest.fixture
def a(cluster):
    arbiter = MemoryArbiter(cluster)
    arbiter.channels.put("shop", {})
    arbiter.leader_locks.release(
        PIPELINE, arbiter.leader_locks.campaign(PIPELINE, "n0")
    )  # the folders are there
    return arbiter


@pytest.fixture
def b(cluster, a):
    return MemoryArbiter(cluster)


def before_next(arbiter, call, act):
    """Let `act` happen just before the next `call` of this arbiter's link."""
    link, original = arbiter.link, getattr(arbiter.link, call)

    def interposed(*args, **kwargs):
        setattr(link, call, original)
        act()
        return original(*args, **kwargs)

    setattr(link, call, interposed)


def test_a_channel_changed_between_read_and_write_is_read_again(a, b):
    before_next(
        a, "write", lambda: b.channels.set_state(b.channels.one("shop"), ChannelState.START)
    )
    assert a.channels.put("shop", {"x": 1}).state is ChannelState.START
    assert b.channels.one("shop").definition == {"x": 1}


def test_two_who_create_a_channel_at_once(a, b):
    before_next(a, "create", lambda: b.channels.put("new", {"of": "b"}))
    assert a.channels.put("new", {"of": "a"}).definition == {"of": "a"}
    assert b.channels.one("new").revision == 1


def test_a_channel_that_stores_changing_is_a_conflict(a, b):
    original = a.link.write

    def overtaken(*args, **kwargs):
        b.channels.put("shop", {"of": "b"})
        return original(*args, **kwargs)

    a.link.write = overtaken
    with pytest.raises(Conflict):
        a.channels.put("shop", {"of": "a"})


def test_a_leader_lock_that_goes_before_it_is_read_is_tried_again(a, b):
    theirs = b.leader_locks.campaign(PIPELINE, "n2")
    before_next(a, "read", lambda: b.leader_locks.release(PIPELINE, theirs))
    assert a.leader_locks.campaign(PIPELINE, "n1").session == a.session.session_id()


def test_a_node_that_goes_before_it_is_read_is_tried_again(a, b):
    b.nodes.announce(NodeInfo("n1"))
    before_next(a, "read", b.close)
    a.nodes.announce(NodeInfo("n1"))
    assert [node.nid for node in a.nodes.all()] == ["n1"]


def test_a_node_that_goes_between_listing_and_reading_is_left_out(a, b):
    a.nodes.announce(NodeInfo("n1"))
    b.nodes.announce(NodeInfo("n2"))
    before_next(a, "read_all", b.close)
    assert [node.nid for node in a.nodes.all()] == ["n1"]


@pytest.mark.parametrize("call", ["delete", "write"])
def test_a_leader_lock_taken_over_between_check_and_change_is_left_alone(a, b, call):
    """The session ends just before the request is sent; the znode's version fits again."""
    held = a.leader_locks.campaign(PIPELINE, "n1")

    def take_over():
        a.link.expire()
        b.leader_locks.campaign(PIPELINE, "n2")

    before_next(a, call, take_over)
    if call == "delete":
        a.leader_locks.release(PIPELINE, held)
    else:
        with pytest.raises(Conflict):
            a.leader_locks.set_status(PIPELINE, held, LeaderLockStatus.OVERTAKE)
    left = b.leader_locks.one(PIPELINE)
    assert (left.nid, left.status) == ("n2", LeaderLockStatus.TAKING)


def test_a_status_written_between_check_and_resignation_is_no_obstacle(cluster, a):
    held = a.leader_locks.campaign(PIPELINE, "n1")
    before_next(
        a, "delete", lambda: a.leader_locks.set_status(PIPELINE, held, LeaderLockStatus.OVERTAKE)
    )
    a.leader_locks.release(PIPELINE, held)
    assert a.leader_locks.one(PIPELINE) is None


def test_without_a_session_there_is_no_campaign(a):
    a.link.close()
    with pytest.raises(Unreachable):
        a.leader_locks.campaign(PIPELINE, "n1")


@pytest.mark.parametrize("dropped", [True, False])
def test_an_unanswered_campaign_took_effect_or_not(a, dropped):
    (a.link.drop_reply if dropped else a.link.refuse)(1)
    with pytest.raises(Unreachable):
        a.leader_locks.campaign(PIPELINE, "n1")
    found = a.leader_locks.one(PIPELINE)
    assert (found is not None) == dropped
    again = a.leader_locks.campaign(PIPELINE, "n1")
    assert again.session == a.session.session_id()
    if dropped:
        assert again == found


def test_an_unanswered_campaign_is_counted_once(a):
    for dropped, number in ((True, 2), (False, 3), (True, 3)):
        before_next(a, "create_and_write", a.link.drop_reply if dropped else a.link.refuse)
        with pytest.raises(Unreachable):
            a.leader_locks.campaign(PIPELINE, "n1")
        found = a.leader_locks.one(PIPELINE)
        assert (found.number if found else None) == (number if dropped else None)
        if found:
            a.leader_locks.release(PIPELINE, found)


def test_a_campaign_counts_on_where_others_have_led_meanwhile(a, b):
    def leads_once():
        b.leader_locks.release(PIPELINE, b.leader_locks.campaign(PIPELINE, "n2"))

    before_next(a, "create_and_write", leads_once)
    assert a.leader_locks.campaign(PIPELINE, "n1").number == 3


def test_a_campaign_that_is_late_by_a_moment_follows_the_leader(a, b):
    before_next(a, "create_and_write", lambda: b.leader_locks.campaign(PIPELINE, "n2"))
    seen = a.leader_locks.campaign(PIPELINE, "n1")
    assert (seen.nid, seen.number) == ("n2", 2)
    assert seen.session == b.session.session_id()


def test_a_channel_that_is_removed_during_a_campaign_is_not_found(a, b):
    def removes():
        b.channels.remove(b.channels.one("shop"))

    before_next(a, "create_and_write", removes)
    with pytest.raises(NotFound):
        a.leader_locks.campaign(PIPELINE, "n1")


def test_an_unanswered_position_is_found_by_reading(a):
    revision = a.positions.store(PIPELINE, {"n": 1}, None)
    a.link.drop_reply()
    with pytest.raises(Unreachable):
        a.positions.store(PIPELINE, {"n": 2}, revision)
    with pytest.raises(Conflict):
        a.positions.store(PIPELINE, {"n": 2}, revision)
    assert a.positions.read(PIPELINE) == ({"n": 2}, revision + 1)


def test_two_who_trim_a_history_at_once(cluster, a):
    small = MemoryArbiter(cluster, history_limit=1)
    small.history.add(PIPELINE, HistoryItem(1, "n1", "", 1.0))
    before_next(
        small, "delete", lambda: cluster.remove("/setl/channels/shop/there/history/item-0000000000")
    )
    small.history.add(PIPELINE, HistoryItem(2, "n1", "", 2.0))
    assert [item.epoch for item in a.history.all(PIPELINE)] == [2]


def test_limits_are_checked(cluster):
    with pytest.raises(Invalid):
        MemoryArbiter(cluster, history_limit=0)
    with pytest.raises(Invalid):
        MemoryArbiter(cluster, root="nowhere")


# -- the faults of memory are those of ZooKeeper ------------------------------------------------


def test_a_session_lives_as_long_as_it_is_heard(cluster, a, b):
    a.nodes.announce(NodeInfo("n1"))
    cluster.advance(1000)
    assert [node.nid for node in b.nodes.all()] == ["n1"]
    a.link.cut()
    cluster.advance(9.9)
    assert [node.nid for node in b.nodes.all()] == ["n1"]
    cluster.advance(0.1)
    assert list(b.nodes.all()) == []
    assert a.session.contact() is Contact.CONNECTED  # nobody told it
    a.link.resume()
    assert a.session.contact() is Contact.LOST
    assert a.session.session_id() not in (0, b.session.session_id())


def test_last_contact_follows_the_clock_while_connected(cluster, a):
    now = cluster.clock.monotonic()
    assert a.session.last_contact() == now
    cluster.advance(2)
    assert a.session.last_contact() == now + 2
    a.link.cut()
    cluster.advance(3)
    assert a.session.last_contact() == now + 2


def test_a_closed_link_stays_closed(a):
    a.close()
    with pytest.raises(ValueError, match="closed"):
        a.link.resume()


def test_time_does_not_run_backwards():
    with pytest.raises(ValueError, match="backwards"):
        ManualClock().advance(-1)


def test_facts_are_read_again_only_when_something_reports_of_a_change(a, b):
    a.link.has_new_writes = True
    first, calls = a.facts(), a.link.calls
    assert a.facts() is first
    assert a.link.calls == calls
    b.channels.set_state(b.channels.one("shop"), ChannelState.START)
    assert a.facts().channels["shop"].state is ChannelState.START
    held = a.leader_locks.campaign(PIPELINE, "n1")  # what it changes itself, too
    assert a.facts().leader_locks[PIPELINE].epoch == held.epoch


def test_facts_are_read_again_while_nothing_would_tell_of_changes(a):
    a.link.has_new_writes = True
    a.facts()
    a.link.has_new_writes = False
    calls = a.link.calls
    a.facts()
    assert a.link.calls > calls
    a.link.has_new_writes = True
    calls = a.link.calls
    a.facts()  # what was read in between may be older than the news
    assert a.link.calls > calls


def test_facts_are_stored_for_as_long_as_nothing_at_all_has_changed(a, b, cluster):
    """A watch that was lost is found out 30 s later, by the number of any change."""
    a.link.has_new_writes = a.link.has_changes = True
    first, calls = a.facts(), a.link.calls
    cluster.advance(3600)
    assert a.facts() is first
    assert a.link.calls == calls
    news = a.link.news()
    b.channels.set_state(b.channels.one("shop"), ChannelState.START)
    a.link.news = lambda: news  # no watch has fired
    assert a.facts().channels["shop"].state is ChannelState.START
    b.channels.set_state(b.channels.one("shop"), ChannelState.PAUSE)
    assert a.facts().channels["shop"].state is ChannelState.START
    cluster.advance(30)
    assert a.facts().channels["shop"].state is ChannelState.PAUSE


def test_facts_are_not_stored_for_ever(a, cluster):
    a.link.has_new_writes = True
    a.facts()
    calls = a.link.calls
    cluster.advance(60)
    a.facts()
    assert a.link.calls > calls


@pytest.mark.parametrize("call", range(6))
def test_a_leader_whose_leader_lock_is_seen_to_be_gone_is_not_seen_to_live(a, b, call):
    """Its session ends just before one of the requests of a look, whichever that is."""
    b.nodes.announce(NodeInfo("n2"))
    b.leader_locks.campaign(PIPELINE, "n2")
    for name in ("children_all", "read_all"):
        original = getattr(a.link, name)

        def counted(paths, original=original):
            nonlocal call
            if call == 0:
                b.close()
            call -= 1
            return original(paths)

        setattr(a.link, name, counted)
    facts = a.facts()
    assert PIPELINE in facts.leader_locks or "n2" not in facts.nodes
    assert "n2" not in a.facts().nodes
