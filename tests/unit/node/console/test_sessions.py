"""Sessions end by themselves, and tokens cannot be guessed at will."""

import itertools

import pytest

from setl.node.console.serving.authentication import Sessions
from setl.node.http.authentication import FREE_ATTEMPTS, LONGEST_WAIT, Attempts
from tests.arbiter_in_memory import ManualClock


@pytest.fixture
def clock():
    return ManualClock()


def sessions(clock, **limits):
    numbers = itertools.count()
    return Sessions(clock, lambda: f"secret-{next(numbers)}", **limits)


def test_a_session_is_found_by_its_cookie_alone_until_it_is_closed(clock):
    open_ = sessions(clock)
    cookie, session = open_.open("anna")
    assert cookie != session.csrf
    assert open_.find(cookie) is session
    assert open_.find(session.csrf) is None
    assert open_.find(cookie + "x") is None
    open_.close(cookie)
    assert open_.find(cookie) is None


def test_a_session_ends_when_it_is_idle_and_after_its_time(clock):
    open_ = sessions(clock, idle=10, life=25)
    cookie, _ = open_.open("anna")
    for _ in range(3):
        clock.advance(8)
        assert open_.find(cookie) is not None
    clock.advance(8)  # used all the time, but 32 s old
    assert open_.find(cookie) is None
    cookie, _ = open_.open("anna")
    clock.advance(11)
    assert open_.find(cookie) is None


def test_there_are_at_most_so_many(clock):
    open_ = sessions(clock, most=2)
    first, _ = open_.open("a")
    clock.advance(1)
    second, _ = open_.open("b")
    clock.advance(1)
    assert open_.find(first)
    clock.advance(1)
    open_.open("c")
    assert open_.find(second) is None
    assert open_.find(first)


def test_a_form_needs_the_token_of_its_session(clock):
    open_ = sessions(clock)
    _, anna = open_.open("anna")
    _, bert = open_.open("bert")
    assert anna.sent(anna.csrf)
    for wrong in ("", bert.csrf, anna.csrf[:-1], anna.csrf + "x", "ä"):
        assert not anna.sent(wrong)


def test_notes_are_reported_once_and_bounded(clock):
    _, session = sessions(clock).open("anna")
    for n in range(30):
        session.note("done", str(n))
    assert [text for _, text in session.take_notes()] == [str(n) for n in range(20, 30)]
    assert session.take_notes() == []


def test_wrong_tokens_make_a_client_wait_longer_each_time(clock):
    attempts = Attempts(clock)
    waits = []
    for _ in range(FREE_ATTEMPTS + 12):
        waits.append(attempts.wait("10.0.0.1"))
        clock.advance(waits[-1])
        attempts.failed("10.0.0.1")
    assert waits[:FREE_ATTEMPTS] == [0.0] * FREE_ATTEMPTS
    assert waits[FREE_ATTEMPTS : FREE_ATTEMPTS + 4] == [1.0, 2.0, 4.0, 8.0]
    assert waits[-1] == LONGEST_WAIT
    assert attempts.wait("10.0.0.2") == 0.0
    attempts.succeeded("10.0.0.1")
    assert attempts.wait("10.0.0.1") == 0.0


def test_a_network_of_ipv6_is_one_client_and_an_hour_forgives(clock):
    attempts = Attempts(clock)
    for n in range(FREE_ATTEMPTS + 3):
        attempts.failed(f"2001:db8::{n}")
    assert attempts.wait("2001:db8::ffff") > 0
    assert attempts.wait("2001:db8:1::1") == 0.0
    clock.advance(3700)
    assert attempts.wait("2001:db8::ffff") == 0.0


def test_guessing_from_everywhere_at_once_does_not_grow_without_bound(clock):
    """Nor does it keep out who has not tried yet; and those who tried most are remembered."""
    attempts = Attempts(clock, most=3)
    for _ in range(FREE_ATTEMPTS):
        attempts.failed("10.0.9.9")
    for n in range(50):
        clock.advance(0.001)
        attempts.failed(f"10.0.0.{n}")
    assert len(attempts._failed) == 3
    assert attempts.wait("10.0.1.1") == 0.0
    assert attempts.wait("10.0.9.9") > 0.0


def test_a_client_without_an_address_is_remembered_by_a_short_name(clock):
    attempts = Attempts(clock)
    attempts.failed("x" * 60_000)
    assert max(map(len, attempts._failed)) == 64
