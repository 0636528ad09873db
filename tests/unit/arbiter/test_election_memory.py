"""What a node remembers of leaderships."""

import pytest

from arbiter.election_memory import ElectionMemory, Ending, Vacancy, after_look, vacancy_of
from arbiter.errors import Contact
from arbiter.values import LeaderLock, LeaderLockStatus, NodeInfo

ME, OTHER = 7, 9
MINE = LeaderLock("n1", LeaderLockStatus.OVERTAKE, 41, ME)
THEIRS = LeaderLock("n2", LeaderLockStatus.OVERTAKE, 42, OTHER)
LED = ElectionMemory(own_lock=MINE, leader="n1")


def remembered(past, **seen):
    facts = {"now": 100.0, "contact": Contact.CONNECTED, "session": ME, "leader_lock": None}
    return after_look(past, **{**facts, **seen})


def test_a_vacancy_is_remembered_from_its_first_look():
    first = remembered(ElectionMemory(), now=100.0)
    second = remembered(first, now=107.0)
    assert first.vacant_since == second.vacant_since == 100.0


def test_a_leader_ends_a_vacancy():
    past = remembered(remembered(ElectionMemory()), leader_lock=THEIRS)
    assert past == ElectionMemory(leader="n2")
    assert remembered(past, now=105.0) == ElectionMemory(leader="n2", vacant_since=105.0)


def test_my_leadership_is_remembered():
    assert remembered(ElectionMemory(vacant_since=3.0), leader_lock=MINE) == ElectionMemory(
        own_lock=MINE, leader="n1"
    )


def test_a_lost_session_is_a_disconnection():
    past = remembered(LED, contact=Contact.LOST, session=0)
    assert past == ElectionMemory(ending=Ending.DISCONNECTED, ended_at=100.0, leader="n1")
    assert remembered(past, contact=Contact.LOST, now=101.0) == past
    assert remembered(past, session=8, now=102.0).ending is Ending.DISCONNECTED


def test_a_new_session_is_a_disconnection_even_if_its_loss_was_not_seen():
    assert remembered(LED, session=8).ending is Ending.DISCONNECTED


def test_a_leader_lock_that_goes_while_the_session_lives_was_taken_away():
    past = remembered(LED)
    assert (past.own_lock, past.ending, past.ended_at) == (None, Ending.DEPOSED, 100.0)


@pytest.mark.parametrize(("ready", "began"), [(True, 94.0), (False, 100.0)])
def test_a_leader_that_said_that_it_leaves_has_not_died(ready, began):
    """Its node is gone when the vacancy is seen, as that of a leader whose session expired."""
    led = remembered(
        ElectionMemory(), leader_lock=THEIRS, nodes={"n2": NodeInfo("n2", ready=ready)}
    )
    vacant = remembered(led, nodes={})
    assert vacancy_of(vacant, 6.0) == Vacancy(began, began, noticed=100.0)


def test_a_sign_of_life_says_when_a_vacancy_may_have_begun():
    silent = Vacancy(94.0, 94.0, noticed=100.0)
    assert silent.after(50.0) == Vacancy(50.0, 94.0, noticed=100.0)
    assert silent.after(97.0) == Vacancy(97.0, 97.0, noticed=100.0)
    assert silent.after(100.4) == Vacancy(100.0, 100.0, noticed=100.0)  # by another clock
    assert silent.after(105.0) == silent.after(None) == silent
    assert silent.later_by(7.0) == Vacancy(101.0, 101.0, noticed=107.0)
    unwatched = Vacancy(20.0, 94.0, noticed=100.0)
    assert unwatched.after(60.0) == Vacancy(60.0, 94.0, noticed=100.0)
    describe_failures = Vacancy(94.0, 94.0)
    assert describe_failures.after(50.0) == describe_failures
