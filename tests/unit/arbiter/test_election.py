"""Election decisions, from tables and from anything that hypothesis thinks of."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arbiter.election import Action, ElectionSettings, View, deadline, decide
from arbiter.election_memory import ElectionMemory, Ending, after_look, after_stepping_down
from arbiter.errors import Contact
from arbiter.values import ChannelState, LeaderLock, LeaderLockStatus

RULES = ElectionSettings(takeover_delay=0.5, hold_off=5.0, margin=0.2)
ME, OTHER = 7, 9
MINE = LeaderLock("n1", LeaderLockStatus.OVERTAKE, 41, ME)
THEIRS = LeaderLock("n2", LeaderLockStatus.OVERTAKE, 42, OTHER)
GHOST = LeaderLock("n1", LeaderLockStatus.OVERTAKE, 40, OTHER)
START, PAUSE, STOP = ChannelState.START, ChannelState.PAUSE, ChannelState.STOP

CALM = View(
    now=100.0,
    contact=Contact.CONNECTED,
    last_contact=99.0,
    session_timeout=10.0,
    session=ME,
    nid="n1",
    state=START,
    leader_lock=None,
    ready=True,
    busy=False,
)


def look(**changes):
    return replace(CALM, **changes)


def decided(**changes):
    return decide(look(**changes), RULES)


LED = ElectionMemory(own_lock=MINE, leader="n1")


@pytest.mark.parametrize(
    ("changes", "action", "words"),
    [
        # Another node leads, or this one does.
        ({"leader_lock": THEIRS}, Action.FOLLOW, "no action: node n1 follows n2, epoch 42"),
        ({"leader_lock": MINE}, Action.LEAD, "no action: node n1 leads, epoch 41"),
        ({"leader_lock": MINE, "busy": True}, Action.LEAD, "no action: node n1 leads, epoch 41"),
        ({"leader_lock": MINE, "ready": False}, Action.LEAD, "leads"),
        # Leadership is by session: my name on it is not enough.
        ({"leader_lock": GHOST}, Action.WAIT, "an earlier session of its own to expire, epoch 40"),
        ({"leader_lock": GHOST, "busy": True}, Action.ABORT, "its own leadership is gone"),
        ({"leader_lock": replace(MINE, session=0), "session": 0}, Action.WAIT, "earlier session"),
        ({"leader_lock": THEIRS, "busy": True}, Action.ABORT, "n2 leads"),
        ({"leader_lock": None, "busy": True}, Action.ABORT, "no node leads"),
        # What the operator wants.
        ({"state": STOP}, Action.IDLE, "stopped"),
        ({"state": None}, Action.IDLE, "gone"),
        ({"state": STOP, "leader_lock": THEIRS}, Action.IDLE, "stopped"),
        ({"state": STOP, "leader_lock": MINE, "busy": True}, Action.DRAIN, "finishes"),
        ({"state": STOP, "leader_lock": MINE}, Action.STEP_DOWN, "steps down from epoch 41"),
        ({"state": None, "leader_lock": MINE}, Action.STEP_DOWN, "gone"),
        ({"state": PAUSE, "leader_lock": MINE}, Action.HOLD, "paused"),
        ({"state": PAUSE, "leader_lock": MINE, "busy": True}, Action.HOLD, "stays the leader"),
        ({"state": PAUSE, "leader_lock": THEIRS}, Action.FOLLOW, "follows n2"),
        ({"state": PAUSE}, Action.WAIT, "no node takes over"),
        # A run was cancelled under this epoch.
        ({"leader_lock": MINE, "burnt_epoch": 41}, Action.STEP_DOWN, "begins a new leadership"),
        (
            {"leader_lock": MINE, "burnt_epoch": 41, "busy": True},
            Action.ABORT,
            "cancelled in epoch 41",
        ),
        ({"leader_lock": MINE, "burnt_epoch": 40}, Action.LEAD, "leads"),
        ({"leader_lock": MINE, "burnt_epoch": 41, "state": PAUSE}, Action.HOLD, "paused"),
        (
            {
                "past": ElectionMemory(ending=Ending.RENEWED, ended_at=100.0, vacant_since=100.0),
                "burnt_epoch": 41,
            },
            Action.CAMPAIGN,
            "begins a new leadership",
        ),
        # Contact is in doubt (I3).
        ({"contact": Contact.SUSPENDED, "busy": True}, Action.SUSPEND, "no new load"),
        ({"contact": Contact.SUSPENDED, "past": LED}, Action.SUSPEND, "silent"),
        ({"contact": Contact.SUSPENDED, "leader_lock": THEIRS}, Action.WAIT, "silent"),
        ({"contact": Contact.LOST, "busy": True}, Action.ABORT, "session is lost"),
        ({"contact": Contact.LOST, "leader_lock": MINE, "busy": True}, Action.ABORT, "cancels"),
        ({"contact": Contact.LOST}, Action.WAIT, "session is lost"),
        ({"last_contact": 92.0, "leader_lock": MINE, "busy": True}, Action.ABORT, "silent"),
        ({"last_contact": 92.0, "past": LED, "leader_lock": MINE}, Action.ABORT, "timeout"),
        ({"last_contact": 92.01, "leader_lock": MINE, "busy": True}, Action.LEAD, "leads"),
        ({"last_contact": 92.0}, Action.WAIT, "silent"),
        (
            {"last_contact": 92.0, "contact": Contact.SUSPENDED, "busy": True},
            Action.ABORT,
            "silent",
        ),
        # Stopping does not make doubt any smaller.
        (
            {"state": STOP, "contact": Contact.SUSPENDED, "leader_lock": MINE, "busy": True},
            Action.SUSPEND,
            "silent",
        ),
        # A vacancy (I5).
        ({"ready": False}, Action.WAIT, "not warm"),
        ({}, Action.WAIT, "waits 0.5 s"),
        (
            {"past": ElectionMemory(vacant_since=99.6, leader="n2")},
            Action.WAIT,
            "takes over after n2",
        ),
        (
            {"past": ElectionMemory(vacant_since=99.5, leader="n2")},
            Action.CAMPAIGN,
            "campaigns after n2",
        ),
        ({"past": ElectionMemory(vacant_since=99.5)}, Action.CAMPAIGN, "no node leads"),
        (
            {
                "past": ElectionMemory(
                    ending=Ending.DISCONNECTED, ended_at=100.0, vacant_since=100.0
                )
            },
            Action.CAMPAIGN,
            "at once",
        ),
        (
            {"past": ElectionMemory(ending=Ending.STEPPED_DOWN, ended_at=95.1, vacant_since=95.1)},
            Action.WAIT,
            "which it gave up, to others for 5 s",
        ),
        (
            {"past": ElectionMemory(ending=Ending.STEPPED_DOWN, ended_at=95.0, vacant_since=95.0)},
            Action.CAMPAIGN,
            "no other node has taken over",
        ),
        (
            {"past": ElectionMemory(ending=Ending.DEPOSED, ended_at=95.1, vacant_since=95.1)},
            Action.WAIT,
            "which it had taken away",
        ),
        (
            {"past": ElectionMemory(ending=Ending.STOPPED, ended_at=99.5, vacant_since=99.5)},
            Action.CAMPAIGN,
            "campaigns",
        ),
        (
            {"past": ElectionMemory(ending=Ending.STOPPED, ended_at=99.9, vacant_since=99.9)},
            Action.WAIT,
            "waits 0.5 s",
        ),
        (
            {"past": ElectionMemory(vacant_since=1.0), "unclaimed": True, "wanted_since": 99.9},
            Action.CAMPAIGN,
            "no node leads",
        ),
        (
            {
                "past": ElectionMemory(vacant_since=1.0),
                "unclaimed": True,
                "wanted_since": 98.1,
                "rank": 1,
            },
            Action.WAIT,
            "waits 2 s, as number 2 in the queue,",
        ),
        (
            {
                "past": ElectionMemory(vacant_since=1.0),
                "unclaimed": True,
                "wanted_since": 97.9,
                "rank": 1,
            },
            Action.CAMPAIGN,
            "no node leads",
        ),
    ],
)
def test_decision(changes, action, words):
    decision = decided(**changes)
    assert decision.action is action
    assert words in decision.sentence


def remembered(past, **seen):
    facts = {"now": 100.0, "contact": Contact.CONNECTED, "session": ME, "leader_lock": None}
    return after_look(past, **{**facts, **seen})


def test_once_another_has_led_how_mine_ended_does_not_matter():
    past = after_stepping_down(LED, Ending.STEPPED_DOWN, now=90.0)
    assert past.ending is Ending.STEPPED_DOWN
    past = remembered(past, leader_lock=THEIRS, now=91.0)
    assert past.ending is None
    past = remembered(past, now=92.0)
    assert decided(now=92.1, past=past, last_contact=92.0).action is Action.WAIT
    assert decided(now=92.6, past=past, last_contact=92.0).action is Action.CAMPAIGN


def test_settings_are_checked():
    for wrong in ({"takeover_delay": -1}, {"hold_off": -1}, {"margin": 0}, {"margin": 1}):
        with pytest.raises(ValueError, match="margin"):
            ElectionSettings(**wrong)


# -- what must hold whatever is seen ----------------------------------------------------------

# Around the limits of RULES: of any times, hardly two lie within a second of each other.
ages = st.sampled_from([0.0, 0.3, 0.4999, 0.5, 0.6, 4.9, 4.9999, 5.0, 5.1, 30.0]) | st.floats(0, 60)
sessions = st.sampled_from([0, ME, ME, ME, OTHER])
epochs = st.sampled_from([40, 41])
leader_locks = st.none() | st.builds(
    LeaderLock,
    nid=st.sampled_from(["n1", "n2"]),
    status=st.sampled_from(LeaderLockStatus),
    epoch=epochs,
    session=sessions,
)


def seen_at(now, *, silence, ended, vacant, past, **others):
    times = {"ended_at": now - ended, "vacant_since": None if vacant is None else now - vacant}
    return View(now=now, last_contact=now - silence, past=replace(past, **times), **others)


views = st.builds(
    seen_at,
    now=st.just(100.0) | st.floats(min_value=0, max_value=200),
    silence=ages | st.just(float("inf")),
    ended=ages,
    vacant=st.none() | ages,
    past=st.builds(
        ElectionMemory,
        own_lock=st.none() | st.just(MINE),
        ending=st.none() | st.sampled_from(Ending),
        leader=st.sampled_from(["", "n1", "n2"]),
    ),
    contact=st.sampled_from([Contact.CONNECTED, *Contact]),
    session_timeout=st.just(10.0) | st.floats(min_value=0.5, max_value=60),
    session=sessions,
    nid=st.just("n1"),
    state=st.sampled_from([START, START, *ChannelState, None]),
    leader_lock=leader_locks,
    ready=st.booleans(),
    busy=st.booleans(),
    burnt_epoch=st.just(0) | epochs,
    unclaimed=st.booleans(),
    not_ready=st.sampled_from(["", "", "it lacks a file"]),
)
MORE = settings(max_examples=1000, deadline=None)
TWICE_AS_MANY = settings(MORE, max_examples=2000)


def _nobody_leads_or_campaigns_without_a_living_session(view, action):
    if view.contact is not Contact.CONNECTED or view.now >= deadline(view, RULES):
        assert action in (Action.ABORT, Action.SUSPEND, Action.WAIT)
        if view.busy:
            assert action is not Action.WAIT
    if view.busy and (view.contact is Contact.LOST or view.now >= deadline(view, RULES)):
        assert action is Action.ABORT


def _only_the_owner_of_the_lock_leads(view, action):
    if action in (Action.LEAD, Action.HOLD, Action.DRAIN, Action.STEP_DOWN):
        assert view.leader_lock is not None
        assert view.leader_lock.session == view.session != 0
    elif view.busy:
        # What runs without leadership is suspended or ended, whatever the operator wants.
        assert action in (Action.ABORT, Action.SUSPEND)


def _what_the_operator_wants_is_done(view, action):
    if view.state is not START:
        assert action not in (Action.LEAD, Action.CAMPAIGN)
    if action is Action.LEAD:
        assert view.state is START
        assert view.leader_lock is not None
        assert view.leader_lock.epoch != view.burnt_epoch
    if view.state is PAUSE:
        assert action not in (Action.STEP_DOWN, Action.DRAIN)


def _nobody_campaigns_too_soon(view, action):
    if action is not Action.CAMPAIGN:
        return
    assert view.leader_lock is None
    assert view.ready
    assert not view.busy
    if view.past.ending in (Ending.STEPPED_DOWN, Ending.DEPOSED):
        assert view.now >= view.past.ended_at + RULES.hold_off
    elif view.past.ending not in (Ending.DISCONNECTED, Ending.RENEWED):
        vacant_since = view.past.vacant_since
        if not view.unclaimed:  # nobody has led before
            assert vacant_since is not None
            assert view.now >= vacant_since + RULES.takeover_delay


def _a_leadership_is_not_given_up_while_something_runs(view, action):
    if action is Action.STEP_DOWN:
        assert not view.busy


def _what_is_due_is_decided_then_and_not_before(view, decision):
    if decision.due is None or view.past.vacant_since is None:  # never, after a look
        return
    assert decision.action is Action.WAIT
    assert decision.due > view.now
    heard = {"last_contact": decision.due}
    assert decide(replace(view, now=decision.due, **heard), RULES).action is Action.CAMPAIGN
    before = (view.now + decision.due) / 2
    if before < decision.due:
        assert decide(replace(view, now=before, **heard), RULES) == decision


def _every_decision_says_a_sentence_that_does_not_change_with_time(view, decision):
    later = decide(replace(view, now=view.now + 1e-9), RULES)
    assert decision.sentence
    if decision.action is later.action:
        assert decision.sentence == later.sentence


# One test for all of them: making up what is seen takes longer than deciding on it.
@TWICE_AS_MANY
@given(views)
def test_whatever_is_seen(view):
    decision = decide(view, RULES)
    action = decision.action
    _nobody_leads_or_campaigns_without_a_living_session(view, action)
    _only_the_owner_of_the_lock_leads(view, action)
    _what_the_operator_wants_is_done(view, action)
    _nobody_campaigns_too_soon(view, action)
    _a_leadership_is_not_given_up_while_something_runs(view, action)
    _what_is_due_is_decided_then_and_not_before(view, decision)
    _every_decision_says_a_sentence_that_does_not_change_with_time(view, decision)


looks = st.lists(
    st.tuples(
        st.floats(min_value=0, max_value=5),
        st.sampled_from([Contact.CONNECTED, Contact.LOST]),
        st.sampled_from([ME, 8]),
        leader_locks,
    ),
    max_size=12,
)


@MORE
@given(looks)
def test_memory_is_consistent(seen):
    past, now = ElectionMemory(), 0.0
    for seconds, contact, session, leader_lock in seen:
        now += seconds
        past = after_look(past, now=now, contact=contact, session=session, leader_lock=leader_lock)
        mine = (
            contact is Contact.CONNECTED
            and leader_lock is not None
            and leader_lock.session == session
        )
        assert (past.own_lock is not None) == mine
        if past.own_lock is not None or (leader_lock is not None and contact is Contact.CONNECTED):
            assert past.ending is None
            assert past.vacant_since is None
        if past.vacant_since is not None:
            assert past.vacant_since <= now
        assert past.ended_at <= now
