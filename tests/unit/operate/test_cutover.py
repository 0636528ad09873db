"""A cut-over: what it decides, and what a crash between any two calls leaves behind."""

from dataclasses import replace

import pytest

from arbiter.errors import Conflict, Unreachable
from arbiter.requests import Refused
from arbiter.values import ChannelState, PipelineId
from setl.errors import FatalError, TransientError
from setl.operate.cutover.course import Course
from setl.operate.cutover.steps import (
    CutOver,
    Known,
    Rules,
    Step,
    WayBack,
    objections,
    still_stopped,
)
from setl.systems.write_stop import Writes
from tests.arbiter_in_memory import ManualClock, MemoryArbiter, MemoryCluster

AB = PipelineId("shop", "ab")
OPEN = Writes("s1", stopped=False, settings={"read_only": "OFF"}, passes=True)
READY = Known(ChannelState.START, "running", standbys=1, lag=0.1, dead_letters=0, writes=OPEN)


class Crash(BaseException):
    """The process is gone: nothing in it is run any more."""


class FakeHands:
    """A source in memory; a test says at which call the process dies or a step fails."""

    def __init__(self):
        self.read_only = False
        self.server = "s1"
        self.facts = READY
        self.calls = []
        self.at = {}

    def called(self, name):
        self.calls.append(name)
        error = self.at.get(f"{name} {self.calls.count(name)}")
        if error is not None:
            raise error

    def known(self):
        self.called("known")
        return self.facts

    def differences(self):
        self.called("differences")
        return list(self.at.get(f"differs {self.calls.count('differences')}", ()))

    def writes(self):
        self.called("writes")
        setting = "ON" if self.read_only else "OFF"
        return Writes(self.server, self.read_only, {"read_only": setting}, passes=True)

    def stop(self):
        self.called("stop")
        self.read_only = True
        self.called("stopped")

    def restore(self, settings):
        self.called("restore")
        self.read_only = settings["read_only"] == "ON"
        self.called("restored")

    def drain(self, timeout):
        self.called("drain")
        assert self.read_only
        return self.at.get("drain fails", "")

    def way_back(self, timeout):
        self.called("way_back")
        assert self.read_only
        return


@pytest.fixture
def arbiter():
    arbiter = MemoryArbiter(MemoryCluster())
    arbiter.channels.put("shop", {})
    return arbiter


@pytest.fixture
def access():
    return FakeHands()


def course(arbiter, access, **rules):
    clock = ManualClock()
    return Course(AB, arbiter, access, Rules(**rules), clock, clock.advance, lambda reported: None)


def test_all_steps(arbiter, access):
    done = course(arbiter, access).carry_out("me@here")
    assert (done.step, access.read_only, done.restore) == (Step.DONE, True, {"read_only": "OFF"})
    steps = [c for c in access.calls if c not in {"writes", "stopped"}]
    assert steps == ["known", "differences", "stop", "drain", "differences", "way_back"]
    course(arbiter, access).abort()
    assert (access.read_only, arbiter.cutovers.read(AB)) == (False, None)


CALLS = [
    *(f"{n} 1" for n in ("known", "differences", "stop", "stopped", "drain", "way_back")),
    "differences 2",
    *(f"writes {n}" for n in range(1, 6)),
]


@pytest.mark.parametrize("call", CALLS)
def test_after_a_crash_anybody_can_carry_on(arbiter, access, call):
    access.at[call] = Crash()
    with pytest.raises(Crash):
        course(arbiter, access).carry_out("me@here")
    assert arbiter.cutovers.read(AB) is not None, "whoever looks sees it"
    done = course(arbiter, access).carry_out("other@there")
    assert (done.step, done.by, access.read_only) == (Step.DONE, "me@here", True)
    course(arbiter, access).abort()
    assert (access.read_only, arbiter.cutovers.read(AB)) == (False, None)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("again", ["restore 1", "restored 1", None])
def test_after_a_crash_anybody_can_put_it_back(arbiter, access, call, again):
    access.at[call] = Crash()
    with pytest.raises(Crash):
        course(arbiter, access).carry_out("me@here")
    if again:
        access.at[again] = Crash()
        try:
            course(arbiter, access).abort()
        except Crash:
            assert arbiter.cutovers.read(AB) is not None
            # It is not carried on once it is being put back.
            with pytest.raises(Refused, match="being put back"):
                course(arbiter, access).carry_out("me@here")
            assert (access.read_only, arbiter.cutovers.read(AB)) == (False, None)
            return
    else:
        course(arbiter, access).abort()
    assert (access.read_only, arbiter.cutovers.read(AB)) == (False, None)


@pytest.mark.parametrize("call", [c for c in CALLS if not c.startswith("writes")])
@pytest.mark.parametrize(
    "error",
    [TransientError("gone"), FatalError("broken"), KeyboardInterrupt, KeyError("our mistake")],
)
def test_a_failing_step_puts_everything_back(arbiter, access, call, error):
    access.at[call] = error
    with pytest.raises(Refused, match="put back"):
        course(arbiter, access).carry_out("me@here")
    assert (access.read_only, arbiter.cutovers.read(AB)) == (False, None)


@pytest.mark.parametrize("step", [Step.CHECK, Step.STOP_WRITES, Step.DRAIN])
def test_what_nobody_hears_any_more_is_put_back(arbiter, access, step):
    """Its terminal is closed, or what reads its output has ended: no later word gets through."""
    taken = []

    def tell(reported):
        taken.append(reported.step)
        if step in taken:
            raise BrokenPipeError("Broken pipe")

    clock = ManualClock()
    # The source does not answer at once, which would be told, too.
    access.at["restore 1"] = TransientError("gone")
    with pytest.raises(Refused, match=r"nobody reads .* put back"):
        Course(AB, arbiter, access, Rules(), clock, clock.advance, tell).carry_out("me@here")
    assert (access.read_only, arbiter.cutovers.read(AB)) == (False, None)


@pytest.mark.parametrize("lost", ["read", "store", "forget"])
@pytest.mark.parametrize("answer", ["not done", "done"])
def test_zookeeper_may_be_away_for_a_moment(arbiter, access, monkeypatch, lost, answer):
    """Its members elect a leader, which ends the step; the source is put back all the same."""
    true, away = getattr(arbiter.cutovers, lost), []

    def call(*arguments):
        if len(away) < 3 and (access.read_only or lost == "forget"):
            away.append(lost)
            if answer == "done" and len(away) == 1:
                true(*arguments)
            raise Unreachable("there is no connection now")
        return true(*arguments)

    monkeypatch.setattr(arbiter.cutovers, lost, call)
    access.at["drain fails"] = "not within 60 s"
    with pytest.raises(Refused, match="everything is put back"):
        course(arbiter, access).carry_out("me@here")
    assert away
    assert (access.read_only, arbiter.cutovers.read(AB)) == (False, None)


@pytest.mark.parametrize("which", ["differs 1", "differs 2"])
def test_differences_refuse(arbiter, access, which):
    access.at[which] = ["orders: 1 rows missing"]
    with pytest.raises(Refused, match="1 rows missing"):
        course(arbiter, access).carry_out("me@here")
    assert (access.read_only, arbiter.cutovers.read(AB)) == (False, None)
    assert ("stop" in access.calls) is (which == "differs 2")


def test_a_target_that_does_not_get_everything_refuses(arbiter, access):
    access.at["drain fails"] = "not within 60 s"
    with pytest.raises(Refused, match="not within 60 s"):
        course(arbiter, access).carry_out("me@here")
    assert not access.read_only


def test_a_source_that_was_read_only_stays_so(arbiter, access):
    access.read_only = True
    done = course(arbiter, access).carry_out("me@here")
    assert done.restore is None
    course(arbiter, access).abort()
    assert access.read_only


def test_by_hand_nothing_is_set(arbiter, access):
    with pytest.raises(Refused, match="not made read-only in time"):
        course(arbiter, access, by_hand=True).carry_out("me@here")
    access.read_only = True
    course(arbiter, access, by_hand=True).carry_out("me@here")
    course(arbiter, access).abort()
    assert access.read_only
    assert "stop" not in access.calls
    assert "restore" not in access.calls


@pytest.mark.parametrize("change", ["open", "server"])
def test_a_source_that_is_another_or_takes_writes_again_is_noticed(arbiter, access, change):
    access.at["drain 1"] = Crash()
    with pytest.raises(Crash):
        course(arbiter, access).carry_out("me@here")
    if change == "open":
        access.read_only = False
    else:
        access.server = "s2"
    with pytest.raises(Refused, match=r"takes writes again|another server"):
        course(arbiter, access).carry_out("me@here")
    # A server that was not made read-only here is not opened here.
    assert access.read_only is (change == "server")
    assert arbiter.cutovers.read(AB) is None


def test_what_is_put_back_meanwhile_is_not_left_read_only(arbiter, access):
    """Another terminal aborts between the record and the setting of the source."""
    stop = access.stop

    def aborted_meanwhile():
        course(arbiter, access).abort()
        stop()

    access.stop = aborted_meanwhile
    with pytest.raises(Conflict):
        course(arbiter, access).carry_out("me@here")
    assert (access.read_only, arbiter.cutovers.read(AB)) == (False, None)


def test_a_source_that_does_not_answer_leaves_the_record(arbiter, access):
    access.at["drain 1"] = Crash()
    with pytest.raises(Crash):
        course(arbiter, access).carry_out("me@here")
    access.at.update({f"restore {n}": TransientError("gone") for n in range(1, 500)})
    with pytest.raises(TransientError):
        course(arbiter, access).abort()
    assert CutOver.from_json(arbiter.cutovers.read(AB)[0]).aborting
    access.at.clear()
    course(arbiter, access).abort()
    assert (access.read_only, arbiter.cutovers.read(AB)) == (False, None)


BACK = WayBack("shop/ba", "running", replace(OPEN, passes=True))
AGAINST = [
    ({"wanted": ChannelState.PAUSE}, "set to PAUSE"),
    ({"state": "failed", "error": "boom"}, "failed: boom"),
    ({"standbys": 0}, "no other node"),
    ({"loading": True}, "still being loaded"),
    ({"lag": None}, "not known how far"),
    ({"lag": 11.0}, "11.0 s behind"),
    ({"dead_letters": 2}, "2 dead letters are open"),
    ({"dead_letters": 1}, "1 dead letter is open"),
    ({"dead_letters": None}, "not known whether"),
    ({"writes": None}, "name its database"),
    ({"writes": replace(OPEN, lacking="GRANT X ON *.* TO u;")}, "GRANT X"),
    ({"way_back": replace(BACK, state="failed")}, "is not running but failed"),
    ({"way_back": replace(BACK, writes=replace(OPEN, passes=False, bypass_grant="GRANT Y"))}, "Y"),
]


@pytest.mark.parametrize(("change", "what"), AGAINST)
def test_what_speaks_against_it(change, what):
    assert objections(READY, Rules()) == []
    assert objections(replace(READY, way_back=BACK), Rules()) == []
    (only,) = objections(replace(READY, **change), Rules())
    assert what in only


def test_who_does_it_by_hand_needs_no_privilege():
    lacking = replace(READY, writes=replace(OPEN, lacking="GRANT X"), standbys=0)
    assert objections(lacking, Rules(by_hand=True, standby=False)) == []


def test_records_are_stored_whole():
    record = CutOver(Step.DRAIN, 1.5, "me@here", "s1", {"read_only": "OFF"}, aborting=True)
    assert CutOver.from_json(record.to_json()) == record
    assert CutOver.from_json(CutOver().to_json()) == CutOver()
    with pytest.raises(FatalError):
        CutOver.from_json({"step": "fly"})


def test_the_stop_matters_from_draining_on():
    assert still_stopped(CutOver(Step.VERIFY), None) == ""
    assert still_stopped(CutOver(Step.DRAIN, server="s1"), OPEN)
    assert still_stopped(CutOver(Step.DRAIN, server="s1"), replace(OPEN, stopped=True)) == ""
