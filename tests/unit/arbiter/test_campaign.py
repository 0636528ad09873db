"""The cycle of one node and one pipeline, over memory with exact faults."""

import logging

import pytest

from arbiter.campaign import Campaign
from arbiter.election import MAX_RANK, Action
from arbiter.errors import Conflict, Contact, Unreachable
from arbiter.snapshot import look
from arbiter.turns import Preference
from arbiter.values import ChannelState, LeaderLockStatus, NodeInfo, PipelineId
from tests.arbiter_in_memory import MemoryArbiter
from tests.unit.arbiter.elected_node import PIPELINE, RULES, Node, lead, set_state


def test_the_first_leader_waits_for_the_delay(cluster, n1):
    assert n1.act() is Action.WAIT
    cluster.advance(0.49)
    assert n1.act() is Action.WAIT
    cluster.advance(0.01)
    state = n1.cycle()
    assert state.decision.action is Action.LEAD
    assert state.leads
    assert state.leader_lock.nid == "n1"
    assert state.decision.sentence.endswith("it leads now, leadership 1")
    after = n1.cycle()
    assert after.decision.sentence == "no action: node n1 leads, leadership 1"
    assert after.reason == state.reason == "node n1 campaigns: no node leads"


def test_the_loser_of_a_race_follows(cluster, n1, n2):
    n1.cycle()
    n2.cycle()
    cluster.advance(0.5)
    assert n1.act() is Action.LEAD
    state = n2.cycle()
    assert state.decision.action is Action.FOLLOW
    assert not state.leads
    assert state.leader_lock.nid == "n1"


def test_a_race_lost_between_look_and_campaign_is_followed(cluster, n1, n2):
    n2.cycle()
    cluster.advance(1)
    read = n2.arbiter.facts
    n2.arbiter.facts = lambda: (read(), lead(cluster, n1))[0]
    state = n2.cycle()
    assert state.decision.action is Action.FOLLOW
    assert state.leader_lock.nid == "n1"
    assert not state.leads


def test_a_standby_takes_over_after_a_crash(cluster, n1, n2):
    lead(cluster, n1, n2)
    n1.link.cut()  # SIGKILL: nothing is said any more
    cluster.advance(9.9)
    assert n2.act() is Action.FOLLOW
    cluster.advance(0.1)
    assert n2.act() is Action.WAIT
    cluster.advance(0.5)
    state = n2.cycle()
    assert state.decision.action is Action.LEAD
    assert state.reason == "node n2 campaigns after n1: no node leads"
    assert state.leader_lock.epoch > n1.epochs[-1]


def test_a_frozen_leader_stops_before_another_can_begin(cluster, n1, n2):
    lead(cluster, n1, n2)
    n1.link.cut()
    history = []
    for _ in range(120):
        cluster.advance(0.1)
        history.append((n1.act(), n2.act()))
        assert not (n1.busy and n2.busy)
    assert (Action.SUSPEND, Action.FOLLOW) in history
    assert (Action.ABORT, Action.FOLLOW) in history
    assert history[-1][1] is Action.LEAD


def test_suspended_then_connected_goes_on_under_the_same_epoch(cluster, n1, n2):
    lead(cluster, n1, n2)
    n1.link.suspend()
    cluster.advance(3)
    assert n1.act() is Action.SUSPEND
    assert n1.busy
    n1.link.resume()
    assert n1.act() is Action.LEAD
    assert len(n1.epochs) == 1


def test_a_follower_that_is_cut_off_waits(cluster, n1, n2):
    lead(cluster, n1, n2)
    n2.link.suspend()
    assert n2.act() is Action.WAIT
    n2.link.resume()
    assert n2.act() is Action.FOLLOW


def test_after_a_flash_disconnect_the_previous_holder_goes_first(cluster, n1, n2):
    lead(cluster, n1, n2)
    n1.link.expire()
    assert n2.act() is Action.WAIT
    assert n1.arbiter.session.contact() is Contact.LOST
    assert n1.act() is Action.ABORT
    assert n1.act() is Action.WAIT
    n1.arbiter.nodes.announce(NodeInfo("n1"))
    state = n1.cycle()
    assert state.decision.action is Action.LEAD
    assert "at once" in state.reason
    assert n1.epochs == sorted(set(n1.epochs))
    assert len(n1.epochs) == 2
    assert n2.act() is Action.FOLLOW


def test_a_run_of_the_lost_session_ends_before_the_next_campaign(cluster, n1):
    lead(cluster, n1)
    n1.link.expire()
    n1.arbiter.nodes.announce(NodeInfo("n1"))  # rejoined before any cycle saw the loss
    assert n1.act() is Action.ABORT
    assert n1.act() is Action.LEAD
    assert len(n1.epochs) == 2


def test_stop_drains_then_resigns_then_idles(cluster, n1, n2, operator):
    lead(cluster, n1, n2)
    set_state(operator, ChannelState.STOP)
    assert n2.act() is Action.IDLE
    assert n1.act() is Action.DRAIN
    assert operator.leader_locks.one(PIPELINE) is not None
    state = n1.cycle()
    assert (state.decision.action, state.leads) == (Action.STEP_DOWN, False)
    assert state.leader_lock is None
    assert operator.leader_locks.one(PIPELINE) is None
    assert n1.act() is Action.IDLE
    cluster.advance(60)
    assert n1.act() is n2.act() is Action.IDLE


def test_after_a_stop_anybody_may_start(cluster, n1, operator):
    lead(cluster, n1)
    set_state(operator, ChannelState.STOP)
    while n1.act() is not Action.IDLE:
        pass
    set_state(operator, ChannelState.START)
    assert n1.act() is Action.LEAD


def test_a_stop_before_the_last_leadership_shortens_no_wait_after_it(cluster, n1, n2, operator):
    set_state(operator, ChannelState.STOP)
    assert n1.act() is n2.act() is Action.IDLE
    set_state(operator, ChannelState.START)
    assert n1.act() is Action.LEAD
    assert n2.act() is Action.FOLLOW
    n1.link.cut()
    cluster.advance(10)
    assert n2.act() is Action.WAIT  # the one that led may be back
    cluster.advance(0.5)
    assert n2.act() is Action.LEAD


def test_queues_form_when_a_channel_is_started(cluster, n1, n2, operator):
    """However long nobody has led it: the second in the queue must not be the first."""
    set_state(operator, ChannelState.STOP)
    assert n1.act() is n2.act() is Action.IDLE
    cluster.advance(60)
    set_state(operator, ChannelState.START)
    assert n2.act(rank=1) is Action.WAIT
    cluster.advance(RULES.turn_delay - 0.1)
    assert n2.act(rank=1) is Action.WAIT
    assert n1.act() is Action.LEAD


def test_pause_stores_the_leadership_and_start_goes_on(cluster, n1, n2, operator):
    lead(cluster, n1, n2)
    set_state(operator, ChannelState.PAUSE)
    assert n1.act() is Action.HOLD
    assert n1.act() is Action.HOLD
    assert n2.act() is Action.FOLLOW
    set_state(operator, ChannelState.START)
    state = n1.cycle()
    assert state.decision.action is Action.LEAD
    assert n1.epochs == [state.leader_lock.epoch] * 2


def test_nobody_takes_over_in_a_pause(cluster, n1, n2, operator):
    lead(cluster, n1, n2)
    set_state(operator, ChannelState.PAUSE)
    n1.link.close()
    for _ in range(2):  # the first look only sees that no node leads
        cluster.advance(60)
        assert n2.act() is Action.WAIT
    assert operator.leader_locks.one(PIPELINE) is None
    set_state(operator, ChannelState.START)
    n2.cycle()
    cluster.advance(0.5)
    assert n2.act() is Action.LEAD


def test_a_node_that_resigned_leaves_it_to_others_for_a_while(cluster, n1, n2):
    lead(cluster, n1, n2)
    n1.busy = False
    n1.campaign.step_down()
    assert n1.act() is Action.WAIT
    assert n2.act() is Action.WAIT
    cluster.advance(0.5)
    assert n1.act() is Action.WAIT
    assert n2.act() is Action.LEAD
    assert n1.act() is Action.FOLLOW


def test_a_node_that_resigned_takes_it_back_if_nobody_else_does(cluster, n1):
    lead(cluster, n1)
    n1.busy = False
    n1.campaign.step_down()
    n1.campaign.step_down()
    cluster.advance(4.99)
    assert n1.act() is Action.WAIT
    cluster.advance(0.01)
    assert n1.act() is Action.LEAD


def test_a_leader_lock_that_an_operator_removed_is_not_taken_back_at_once(cluster, n1, n2):
    lead(cluster, n1, n2)
    cluster.remove("/setl/channels/shop/there/mainstem")
    assert n1.act() is Action.ABORT
    assert n1.act() is Action.WAIT
    n2.cycle()
    cluster.advance(0.5)
    assert n1.act() is Action.WAIT
    assert n2.act() is Action.LEAD


def test_a_cold_node_waits_until_it_is_warm(cluster, n1):
    assert n1.act(ready=False) is Action.WAIT
    cluster.advance(60)
    assert n1.act(ready=False) is Action.WAIT
    assert n1.act(ready=True) is Action.LEAD


def test_an_earlier_process_with_my_name_is_waited_for(cluster, n1, n2):
    lead(cluster, n1)
    n1.link.cut()
    again = MemoryArbiter(cluster)
    with pytest.raises(Conflict):
        again.nodes.announce(NodeInfo("n1"))
    campaign = Campaign(again, PIPELINE, "n1", RULES, cluster.clock)

    def cycle():
        return campaign.cycle(look(again, cluster.clock), busy=False, ready=True)

    state = cycle()
    assert state.decision.action is Action.WAIT
    assert "earlier session" in state.decision.sentence
    assert not state.leads
    cluster.advance(10)
    again.nodes.announce(NodeInfo("n1"))
    cycle()
    cluster.advance(0.5)
    assert cycle().leads


def test_the_run_of_a_channel_that_goes_away_ends(cluster, n1, operator):
    lead(cluster, n1)
    for path in ("/there/mainstem", "/there", ""):
        cluster.remove(f"/setl/channels/shop{path}")
    assert n1.act() is Action.ABORT
    assert n1.act() is Action.IDLE


def test_a_cancelled_run_is_followed_by_one_under_another_epoch(cluster, n1, n2):
    """The session outlives its silence, as it does when all of ZooKeeper stood still."""
    lead(cluster, n1, n2)
    n1.link.cut()
    cluster.advance(9)
    assert n1.act() is Action.ABORT
    n1.link.resume()
    burnt_epoch = n1.epochs[-1]
    state = n1.cycle(burnt_epoch=burnt_epoch)
    assert (state.decision.action, state.leads) == (Action.STEP_DOWN, False)
    state = n1.cycle(burnt_epoch=burnt_epoch)
    assert state.decision.action is Action.LEAD
    assert state.leader_lock.epoch > burnt_epoch
    assert state.reason == "node n1 campaigns at once: it begins a new leadership"
    assert n2.act() is Action.FOLLOW


def test_an_outage_counts_from_the_silence_and_not_from_the_resignation_after_it(
    cluster, n1, n2, operator
):
    """A session outlives hours without a quorum; the epoch is given up only after them."""
    lead(cluster, n1, n2)
    n1.link.suspend()
    suspended = cluster.clock.monotonic()
    assert n1.act() is Action.SUSPEND
    cluster.advance(9)
    assert n1.act() is Action.ABORT
    cluster.clock.advance(3600)
    n1.link.resume()
    assert n1.act(burnt_epoch=n1.epochs[-1]) is Action.STEP_DOWN
    state = n1.cycle(burnt_epoch=n1.epochs[-1])
    assert state.leads
    assert state.vacancy.earliest == state.vacancy.latest == suspended
    # What was suspended for a moment only is no part of a later outage.
    n1.link.suspend()
    n1.act()
    n1.link.resume()
    assert n1.act() is Action.LEAD
    cluster.advance(100)
    assert n1.act() is Action.LEAD
    resigned = cluster.clock.monotonic()
    assert n1.act(burnt_epoch=n1.epochs[-1]) is Action.ABORT
    n1.act(burnt_epoch=n1.epochs[-1])
    assert n1.cycle(burnt_epoch=n1.epochs[-1]).vacancy.earliest == resigned


def test_a_node_that_never_leads_does_not_even_if_it_is_alone(cluster, operator):
    n1 = Node(cluster, "n1", Preference(weights={"n1": 0.0}))
    n1.cycle()
    cluster.advance(60)
    assert n1.act() is Action.WAIT


def test_nor_does_one_that_does_not_serve_the_pipeline(cluster, operator):
    n1 = Node(cluster, "n1", Preference(needs="relay"), serves=("load",))
    n1.cycle()
    cluster.advance(60)
    assert n1.act() is Action.WAIT
    n2 = Node(cluster, "n2", Preference(needs="relay"), serves=("relay",))
    n2.cycle()
    cluster.advance(0.5)
    assert n2.act() is Action.LEAD


def test_the_second_in_the_queue_gives_the_first_a_chance(cluster, n1, n2):
    n2.cycle(rank=1)
    cluster.advance(0.5 + 0.49)
    assert n2.act(rank=1) is Action.WAIT
    cluster.advance(0.01)
    assert n2.act(rank=1) is Action.LEAD


def test_a_queue_is_never_waited_for_long(cluster, n1):
    n1.cycle(rank=50)
    cluster.advance(0.5 + MAX_RANK * 0.5)
    assert n1.act(rank=50) is Action.LEAD


# -- replies that do not come -----------------------------------------------------------------


def test_a_campaign_whose_reply_is_lost_is_found_out_by_its_owner(cluster, n1):
    n1.cycle()
    cluster.advance(0.5)
    n1.arbiter.leader_locks.campaign(
        PipelineId("shop", "back"), "n1"
    )  # so that only one write is left
    n1.arbiter.leader_locks.release(PIPELINE, n1.arbiter.leader_locks.campaign(PIPELINE, "n1"))
    n1.link.drop_reply()
    state = n1.cycle()
    assert state.decision.action is Action.WAIT
    assert "without success" in state.decision.sentence
    assert not state.leads
    state = n1.cycle()
    assert state.decision.action is Action.LEAD
    assert state.leads
    assert state.reason == "node n1 campaigns: no node leads"


def test_a_resignation_whose_reply_is_lost_is_one(cluster, n1, operator):
    lead(cluster, n1)
    n1.busy = False
    set_state(operator, ChannelState.STOP)
    n1.link.drop_reply()
    state = n1.cycle()
    assert state.decision.action is Action.STEP_DOWN
    assert "without success" in state.decision.sentence
    assert n1.act() is Action.IDLE


def test_a_resignation_by_choice_says_that_it_does_not_know(cluster, n1):
    lead(cluster, n1)
    n1.link.refuse(1)
    with pytest.raises(Unreachable):
        n1.campaign.step_down()
    assert n1.cycle().leads


@pytest.mark.parametrize("calls", [1, 2])
def test_an_unanswered_look_suspends_what_runs(cluster, n1, calls):
    lead(cluster, n1)
    n1.link.refuse(calls)
    assert n1.act() is Action.SUSPEND
    n1.link.refuse(0)
    assert n1.act() is Action.LEAD


def test_a_suspended_node_asks_nothing(cluster, n1):
    lead(cluster, n1)
    n1.link.suspend()
    before = n1.link.calls
    n1.cycle()
    assert n1.link.calls == before


def test_a_session_that_ends_during_the_look_does_not_lead(cluster, n1):
    lead(cluster, n1)
    read = n1.arbiter.facts
    n1.arbiter.facts = lambda: (read(), n1.link.expire())[0]
    assert n1.act() is Action.ABORT


# -- the log ----------------------------------------------------------------------------------


def test_a_sentence_is_logged_aloud_only_when_it_is_news(cluster, n1, caplog):
    caplog.set_level(logging.DEBUG, "arbiter.campaign")
    lead(cluster, n1)
    for _ in range(3):
        n1.cycle()
    levels = [record.levelname for record in caplog.records]
    assert levels == ["INFO", "INFO", "INFO", "DEBUG", "DEBUG"]
    said = [record.setl["decision"] for record in caplog.records if record.levelname == "INFO"]
    assert said[0] == "node n1 waits 0.5 s before it takes over"
    assert said[1].startswith("node n1 campaigns: no node leads; it leads now, leadership ")
    assert said[2].startswith("no action: node n1 leads, leadership ")
    assert caplog.records[0].setl["channel"] == "shop"
    assert caplog.records[0].setl["pipeline"] == "there"
    assert caplog.records[0].setl["action"] == "wait"


def test_overtaken_is_still_mine(cluster, n1):
    lead(cluster, n1)
    held = n1.cycle().leader_lock
    n1.arbiter.leader_locks.set_status(PIPELINE, held, LeaderLockStatus.OVERTAKE)
    state = n1.cycle()
    assert state.leads
    assert state.leader_lock.status is LeaderLockStatus.OVERTAKE
