"""A cut-over: what it decides, and what a crash between any two calls leaves behind."""

from dataclasses import replace

import pytest

from arbiter.arbiter import Conflict
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
    arbiter.put_channel("shop", {})
    return arbiter


@pytest.fixture
def hands():
    return FakeHands()


def course(arbiter, hands, **rules):
    clock = ManualClock()
    return Course(AB, arbiter, hands, Rules(**rules), clock, clock.advance, lambda told: None)


def test_all_steps(arbiter, hands):
    done = course(arbiter, hands).carry_out("me@here")
    assert (done.step, hands.read_only, done.restore) == (Step.DONE, True, {"read_only": "OFF"})
    steps = [c for c in hands.calls if c not in {"writes", "stopped"}]
    assert steps == ["known", "differences", "stop", "drain", "differences", "way_back"]
    course(arbiter, hands).abort()
    assert (hands.read_only, arbiter.cutover(AB)) == (False, None)


CALLS = [
    *(f"{n} 1" for n in ("known", "differences", "stop", "stopped", "drain", "way_back")),
    "differences 2",
    *(f"writes {n}" for n in range(1, 6)),
]


@pytest.mark.parametrize("call", CALLS)
def test_after_a_crash_anybody_can_carry_on(arbiter, hands, call):
    hands.at[call] = Crash()
    with pytest.raises(Crash):
        course(arbiter, hands).carry_out("me@here")
    assert arbiter.cutover(AB) is not None, "whoever looks sees it"
    done = course(arbiter, hands).carry_out("other@there")
    assert (done.step, done.by, hands.read_only) == (Step.DONE, "me@here", True)
    course(arbiter, hands).abort()
    assert (hands.read_only, arbiter.cutover(AB)) == (False, None)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("again", ["restore 1", "restored 1", None])
def test_after_a_crash_anybody_can_put_it_back(arbiter, hands, call, again):
    hands.at[call] = Crash()
    with pytest.raises(Crash):
        course(arbiter, hands).carry_out("me@here")
    if again:
        hands.at[again] = Crash()
        try:
            course(arbiter, hands).abort()
        except Crash:
            assert arbiter.cutover(AB) is not None
            # It is not carried on once it is being put back.
            with pytest.raises(Refused, match="being put back"):
                course(arbiter, hands).carry_out("me@here")
            assert (hands.read_only, arbiter.cutover(AB)) == (False, None)
            return
    else:
        course(arbiter, hands).abort()
    assert (hands.read_only, arbiter.cutover(AB)) == (False, None)


@pytest.mark.parametrize("call", [c for c in CALLS if not c.startswith("writes")])
@pytest.mark.parametrize("error", [TransientError("gone"), FatalError("broken"), KeyboardInterrupt])
def test_a_failing_step_puts_everything_back(arbiter, hands, call, error):
    hands.at[call] = error
    with pytest.raises(Refused, match="put back"):
        course(arbiter, hands).carry_out("me@here")
    assert (hands.read_only, arbiter.cutover(AB)) == (False, None)


@pytest.mark.parametrize("which", ["differs 1", "differs 2"])
def test_differences_refuse(arbiter, hands, which):
    hands.at[which] = ["orders: 1 rows missing"]
    with pytest.raises(Refused, match="1 rows missing"):
        course(arbiter, hands).carry_out("me@here")
    assert (hands.read_only, arbiter.cutover(AB)) == (False, None)
    assert ("stop" in hands.calls) is (which == "differs 2")


def test_a_target_that_does_not_get_everything_refuses(arbiter, hands):
    hands.at["drain fails"] = "not within 60 s"
    with pytest.raises(Refused, match="not within 60 s"):
        course(arbiter, hands).carry_out("me@here")
    assert not hands.read_only


def test_a_source_that_was_read_only_stays_so(arbiter, hands):
    hands.read_only = True
    done = course(arbiter, hands).carry_out("me@here")
    assert done.restore is None
    course(arbiter, hands).abort()
    assert hands.read_only


def test_by_hand_nothing_is_set(arbiter, hands):
    with pytest.raises(Refused, match="not made read-only in time"):
        course(arbiter, hands, by_hand=True).carry_out("me@here")
    hands.read_only = True
    course(arbiter, hands, by_hand=True).carry_out("me@here")
    course(arbiter, hands).abort()
    assert hands.read_only
    assert "stop" not in hands.calls
    assert "restore" not in hands.calls


@pytest.mark.parametrize("change", ["open", "server"])
def test_a_source_that_is_another_or_takes_writes_again_is_noticed(arbiter, hands, change):
    hands.at["drain 1"] = Crash()
    with pytest.raises(Crash):
        course(arbiter, hands).carry_out("me@here")
    if change == "open":
        hands.read_only = False
    else:
        hands.server = "s2"
    with pytest.raises(Refused, match=r"takes writes again|another server"):
        course(arbiter, hands).carry_out("me@here")
    # A server that was not made read-only here is not opened here.
    assert hands.read_only is (change == "server")
    assert arbiter.cutover(AB) is None


def test_what_is_put_back_meanwhile_is_not_left_read_only(arbiter, hands):
    """Another terminal aborts between the record and the setting of the source."""
    stop = hands.stop

    def aborted_meanwhile():
        course(arbiter, hands).abort()
        stop()

    hands.stop = aborted_meanwhile
    with pytest.raises(Conflict):
        course(arbiter, hands).carry_out("me@here")
    assert (hands.read_only, arbiter.cutover(AB)) == (False, None)


def test_a_source_that_does_not_answer_leaves_the_record(arbiter, hands):
    hands.at["drain 1"] = Crash()
    with pytest.raises(Crash):
        course(arbiter, hands).carry_out("me@here")
    hands.at.update({f"restore {n}": TransientError("gone") for n in range(1, 500)})
    with pytest.raises(TransientError):
        course(arbiter, hands).abort()
    assert CutOver.from_json(arbiter.cutover(AB)[0]).aborting
    hands.at.clear()
    course(arbiter, hands).abort()
    assert (hands.read_only, arbiter.cutover(AB)) == (False, None)


BACK = WayBack("shop/ba", "running", replace(OPEN, passes=True))
AGAINST = [
    ({"wanted": ChannelState.PAUSE}, "set to PAUSE"),
    ({"state": "failed", "error": "boom"}, "failed: boom"),
    ({"standbys": 0}, "no other node"),
    ({"loading": True}, "still being loaded"),
    ({"lag": None}, "not known how far"),
    ({"lag": 11.0}, "11.0 s behind"),
    ({"dead_letters": 2}, "2 dead letters"),
    ({"dead_letters": None}, "not known whether"),
    ({"writes": None}, "name its database"),
    ({"writes": replace(OPEN, lacking="GRANT X ON *.* TO u;")}, "GRANT X"),
    ({"way_back": replace(BACK, state="failed")}, "is not running but failed"),
    ({"way_back": replace(BACK, writes=replace(OPEN, passes=False, passing_grant="GRANT Y"))}, "Y"),
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


def test_records_are_kept_whole():
    record = CutOver(Step.DRAIN, 1.5, "me@here", "s1", {"read_only": "OFF"}, aborting=True)
    assert CutOver.from_json(record.to_json()) == record
    assert CutOver.from_json(CutOver().to_json()) == CutOver()
    with pytest.raises(FatalError):
        CutOver.from_json({"step": "fly"})


def test_the_stop_matters_from_draining_on():
    assert still_stopped(CutOver(Step.VERIFY), None) == ""
    assert still_stopped(CutOver(Step.DRAIN, server="s1"), OPEN)
    assert still_stopped(CutOver(Step.DRAIN, server="s1"), replace(OPEN, stopped=True)) == ""
