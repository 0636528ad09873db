import math
import threading
import time

import pytest

from arbiter.errors import Contact, Unreachable
from arbiter.session.monitor import Monitor
from arbiter.session.session_state import SessionState
from arbiter.znodes import Silent
from tests.waiting import eventually


class Heart:
    """A connection that answers, or fails as it is told."""

    def __init__(self, life):
        self.life = life
        self.beats = []
        self.fails = None
        self.drops = 0
        self.revivals = 0

    def ping(self, session, limit):
        self.beats.append((session, limit, time.monotonic()))
        if self.fails:
            raise self.fails

    def drop(self):
        self.life.on_suspended()
        self.drops += 1  # last: tests wait for it

    def revive(self):
        self.revivals += 1


class Watches:
    def __init__(self):
        self.complete = False
        self.armed = 0
        self.fails = None

    def arm(self):
        self.armed += 1
        if self.fails:
            raise self.fails
        self.complete = True


class Parts:
    def __init__(self):
        self.life = SessionState()
        self.heart = Heart(self.life)
        self.watches = Watches()
        self.session_timeout = 0.6
        self.monitor = Monitor(self.life, self.heart, self.watches, lambda: self.session_timeout)
        self.life.on_connected(5)
        self.life.rejoined(5)
        self.woken = threading.Event()
        self.life.watch(self.woken.set)


@pytest.fixture
def parts():
    parts = Parts()
    yield parts
    parts.monitor.stop()
    parts.monitor.join(60)
    assert not parts.monitor._thread.is_alive()


def test_the_time_of_a_sign_of_life_is_before_it_was_sent(parts):
    before = time.monotonic()
    parts.monitor.ping(2.0)
    (session, limit, sent) = parts.heart.beats[0]
    assert (session, limit) == (5, 2.0)
    assert before <= parts.life.last_contact() <= sent


def test_no_sign_of_life_is_noted_without_an_answer(parts):
    parts.heart.fails = Silent("nothing")
    with pytest.raises(Silent):
        parts.monitor.ping(2.0)
    assert parts.life.last_contact() == -math.inf


def test_signs_of_life_come_by_themselves(parts):
    began = time.monotonic()
    parts.monitor.start()
    eventually(lambda: len(parts.heart.beats) >= 3)
    assert parts.heart.beats[2][2] - began >= 2 * 0.6 / 6
    assert all(limit == pytest.approx(0.15) for _, limit, _ in parts.heart.beats)


def test_watches_are_armed_and_then_whoever_watches_is_woken(parts):
    parts.monitor.start()
    assert parts.woken.wait(60)
    eventually(lambda: parts.watches.armed == 1)
    parts.woken.clear()
    parts.watches.complete = False
    parts.monitor.wake()
    assert parts.woken.wait(60)
    assert parts.watches.armed == 2


def test_stirring_asks_for_no_further_sign_of_life(parts):
    parts.session_timeout = 6 * 3600.0
    parts.monitor.start()
    eventually(lambda: parts.watches.armed == 1)
    parts.watches.complete = False
    parts.monitor.wake()
    eventually(lambda: parts.watches.armed == 2)
    assert len(parts.heart.beats) == 1


@pytest.mark.parametrize("part", ["heart", "watches"])
def test_silence_suspends_and_cuts_the_connection(parts, part):
    getattr(parts, part).fails = Silent("nothing")
    parts.monitor.start()
    eventually(lambda: parts.heart.drops == 1)
    assert parts.life.contact() is Contact.SUSPENDED
    getattr(parts, part).fails = None
    parts.life.on_connected(5)
    parts.monitor.wake()
    eventually(lambda: parts.life.last_contact() > 0)
    assert parts.life.contact() is Contact.CONNECTED


def test_a_refusal_does_not_cut_the_connection(parts):
    parts.heart.fails = Unreachable("another session")
    parts.monitor.start()
    eventually(lambda: len(parts.heart.beats) > 2)
    assert parts.heart.drops == 0


def test_without_a_connection_nothing_is_asked(parts):
    parts.life.on_suspended()
    parts.monitor.start()
    eventually(lambda: parts.heart.revivals >= 2)
    assert not parts.heart.beats
    assert not parts.watches.armed
