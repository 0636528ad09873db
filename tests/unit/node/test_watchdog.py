import pytest

from arbiter.election import MARGIN
from arbiter.errors import Contact
from setl.clock import SystemClock
from setl.node.leading.watchdog import Watchdog
from tests.waiting import eventually


class FakeSession:
    session_timeout = 10.0

    def __init__(self):
        self.state = Contact.CONNECTED
        self.last = 100.0
        self.reason = ""
        self.wakes = []
        self.asked = 0

    def contact(self):
        self.asked += 1
        return self.state

    def last_contact(self):
        return self.last

    def problem(self):
        return self.reason

    def watch(self, wake):
        self.wakes.append(wake)

    def session_id(self):
        return 1

    def close(self):
        pass


class FakeCandidacy:
    def __init__(self):
        self.calls = []

    def suspend(self):
        self.calls.append("suspend")

    def abort(self):
        self.calls.append("abort")


class FakeClock:
    def __init__(self):
        self.time = 100.0

    def monotonic(self):
        return self.time

    def now(self):
        return self.time


@pytest.fixture
def parts():
    arbiter, controller, clock = FakeSession(), FakeCandidacy(), FakeClock()
    return arbiter, controller, clock, Watchdog(arbiter, lambda: [controller], clock)


def test_it_leaves_a_connected_leader_alone(parts):
    _, controller, _, watchdog = parts
    assert watchdog.look() is Contact.CONNECTED
    assert controller.calls == []


def test_suspended_starts_no_new_load_but_lets_the_running_one_finish(parts):
    arbiter, controller, _, watchdog = parts
    arbiter.state = Contact.SUSPENDED
    watchdog.look()
    assert controller.calls == ["suspend"]


def test_lost_cancels_what_runs(parts):
    arbiter, controller, _, watchdog = parts
    arbiter.state = Contact.LOST
    watchdog.look()
    assert controller.calls == ["abort"]


def test_it_says_once_why_the_servers_are_not_reached(parts, caplog):
    arbiter, controller, _, watchdog = parts

    def said():
        return [each.setl["error"] for each in caplog.records if "not reached" in each.message]

    arbiter.reason = "of before"
    watchdog.look()
    assert said() == []
    arbiter.state, arbiter.reason = Contact.SUSPENDED, ""
    watchdog.look()
    assert said() == []
    for arbiter.reason in ("a certificate", "a certificate", "a key"):
        watchdog.look()
    assert said() == ["a certificate", "a key"]
    assert controller.calls == ["suspend"] * 4
    arbiter.state = Contact.LOST
    watchdog.look()
    assert said() == ["a certificate", "a key", "a key"]


@pytest.mark.parametrize("state", list(Contact))
def test_the_deadline_passes_without_any_word_from_the_arbiter(parts, state):
    arbiter, controller, clock, watchdog = parts
    arbiter.state = state
    clock.time = arbiter.last + arbiter.session_timeout * (1 - MARGIN) + 0.01
    assert watchdog.look() is Contact.LOST
    assert controller.calls == ["abort"]


def test_the_deadline_lies_before_the_end_of_the_session(parts):
    arbiter, _, _, _ = parts
    assert arbiter.session_timeout * (1 - MARGIN) < arbiter.session_timeout


def test_it_sleeps_while_all_is_well_and_not_beyond_the_deadline(parts):
    arbiter, _, clock, watchdog = parts
    watchdog.look()
    assert watchdog.pause() == 1.0
    clock.time = arbiter.last + arbiter.session_timeout * (1 - MARGIN) - 0.3
    assert watchdog.pause() == pytest.approx(0.3)
    clock.time += 0.3
    assert watchdog.pause() == pytest.approx(0.1)


@pytest.mark.parametrize("state", [Contact.SUSPENDED, Contact.LOST])
def test_it_looks_often_while_contact_is_uncertain(parts, state):
    arbiter, _, _, watchdog = parts
    arbiter.state = state
    watchdog.look()
    assert watchdog.pause() == pytest.approx(0.1)


def test_a_change_of_contact_wakes_it(monkeypatch):
    monkeypatch.setattr("setl.node.leading.watchdog._SURE_SECONDS", 3600.0)
    arbiter, controller, clock = FakeSession(), FakeCandidacy(), SystemClock()
    arbiter.session_timeout, arbiter.last = 7200.0, clock.monotonic()
    watchdog = Watchdog(arbiter, lambda: [controller], clock)
    watchdog.start()
    try:
        eventually(lambda: arbiter.asked, 60)
        arbiter.state = Contact.SUSPENDED
        for wake in arbiter.wakes:
            wake()
        eventually(lambda: "suspend" in controller.calls, 60)
    finally:
        watchdog.stop()
    watchdog._thread.join(60)
    assert not watchdog._thread.is_alive()
