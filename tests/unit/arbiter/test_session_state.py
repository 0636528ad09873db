import math
import threading

import pytest

from arbiter.errors import Contact, Unreachable
from arbiter.session.session_state import SessionState
from arbiter.znodes import SessionOver


@pytest.fixture
def life():
    life = SessionState()
    life.on_connected(5)
    life.rejoined(5)
    life.on_answer(5, 100.0)
    return life


def test_before_the_first_connection():
    life = SessionState()
    assert life.contact() is Contact.LOST
    assert life.session_id() == 0
    assert life.last_contact() == -math.inf
    with pytest.raises(Unreachable), life.bound(0):
        pass


def test_connected(life):
    assert life.contact() is Contact.CONNECTED
    assert life.session_id() == 5
    assert life.last_contact() == 100.0


def test_suspended_and_back(life):
    life.on_suspended()
    assert life.contact() is Contact.SUSPENDED
    assert life.session_id() == 5
    assert life.last_contact() == 100.0
    life.on_connected(5)
    assert life.contact() is Contact.CONNECTED
    assert life.last_contact() == 100.0


def test_lost_stays_lost_until_rejoined_in_the_present_session(life):
    life.on_suspended()
    life.on_lost()
    assert (life.contact(), life.session_id()) == (Contact.LOST, 0)
    life.rejoined(0)
    assert life.contact() is Contact.LOST
    life.on_connected(6)
    assert life.contact() is Contact.LOST
    life.rejoined(5)
    assert life.contact() is Contact.LOST
    life.rejoined(6)
    assert life.contact() is Contact.CONNECTED


def test_signs_of_life_belong_to_a_session(life):
    life.on_lost()
    assert life.last_contact() == -math.inf
    life.on_connected(6)
    life.on_answer(5, 200.0)
    assert life.last_contact() == -math.inf
    life.on_answer(6, 150.0)
    assert life.last_contact() == 150.0


def test_last_contact_does_not_go_back(life):
    life.on_answer(5, 90.0)
    assert life.last_contact() == 100.0


@pytest.mark.parametrize("ends", ["answer", "connection"])
def test_doubt_suspends_until_there_is_an_answer_or_a_connection(life, ends):
    life.on_doubt()
    assert life.contact() is Contact.SUSPENDED
    if ends == "answer":
        life.on_answer(5, 101.0)
    else:
        life.on_connected(5)
    assert life.contact() is Contact.CONNECTED


def test_who_watches_is_woken_by_every_change(life):
    seen = []
    life.watch(lambda: seen.append(life.contact()))
    life.on_doubt()
    life.on_answer(5, 101.0)
    life.on_answer(5, 102.0)  # no news
    life.on_suspended()
    life.on_connected(5)
    life.on_lost()
    life.on_connected(6)
    life.rejoined(6)
    assert seen == [
        Contact.SUSPENDED,
        Contact.CONNECTED,
        Contact.SUSPENDED,
        Contact.CONNECTED,
        Contact.LOST,
        Contact.LOST,
        Contact.CONNECTED,
    ]


def test_requests_belong_to_a_session(life):
    with life.bound(0):
        pass
    with life.bound(5):
        pass
    with pytest.raises(SessionOver), life.bound(4):
        pass
    life.on_suspended()
    with pytest.raises(Unreachable), life.bound(5):
        pass


def test_the_end_of_a_session_waits_for_what_is_being_sent(life):
    """Else a request could be sent after the queue was thrown away, in the next session."""
    ended = threading.Thread(target=life.on_lost)
    with life.bound(5):
        ended.start()
        ended.join(0.05)
        assert ended.is_alive()
    ended.join(60)
    assert life.contact() is Contact.LOST
