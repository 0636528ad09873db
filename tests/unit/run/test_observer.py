"""What an observer asks, when it asks it, and what it makes of the answers."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from setl.load.target_view import LockWait, TargetView
from setl.model.leadership import Leadership
from setl.run.measured.figures import RunState
from setl.run.measured.pace import Reason, Stage
from setl.run.measured.progress import Progress
from setl.run.stalls.observer import Answer, Observed, Observer, Views
from setl.run.stalls.stall import JobView
from setl.select.heartbeat import HeartbeatStatus
from setl.select.source import Blocked
from tests.clocks import SetClock
from tests.unit.select.fakes import reads

LIMIT = 60.0


class Answers:
    """Answers at once with what a test has laid ready; notes what was asked."""

    def __init__(self):
        self.asked = []
        self.answers = {"spark": Answer(None, 0.0, 0.0), "target": Answer(None, 0.0, 0.0)}

    def ask(self, kind, key, question):
        self.asked.append(kind)
        return self.answers[kind]

    def says(self, kind, value, age=0.0, waiting=0.0):
        self.answers[kind] = Answer(value, age, waiting)


class Bench:
    def __init__(self):
        self.clock = SetClock()
        self.progress = Progress(self.clock)
        self.select = reads(entries=10, unacked=1)
        self.beats = HeartbeatStatus()
        self.answers = Answers()
        select: Any = SimpleNamespace(status=lambda: self.select)
        heartbeat: Any = SimpleNamespace(status=lambda: self.beats)
        run = Observed(
            Leadership("shop", "orders", "n1", 7), self.progress, select, heartbeat, lambda: False,
            Views(job=lambda: None, target=lambda epoch: TargetView()),
        )  # fmt: skip
        self.observer = Observer(run, self.clock, LIMIT)
        self.progress.enter(RunState.RUNNING)
        self.progress.at_stage(Stage.TAKE_OVER)

    def after(self, seconds):
        """What is found so much later."""
        self.clock.time += seconds
        self.answers.asked.clear()
        return self.observer.look(self.answers)


@pytest.fixture
def bench():
    return Bench()


def test_spark_is_asked_early_and_the_target_only_when_it_looks_like_a_stall(bench):
    bench.progress.at_stage(Stage.LOAD)
    for seconds, asked in [(4, []), (1, ["spark"]), (24, ["spark"]), (1, ["spark", "target"])]:
        bench.after(seconds)
        assert bench.answers.asked == asked


def test_an_idle_pipeline_asks_nobody(bench):
    bench.progress.at_stage(Stage.SELECT)
    for _ in range(10):
        assert bench.after(1000) is None
        assert bench.answers.asked == []


def test_tasks_that_finish_are_an_advance(bench):
    bench.progress.at_stage(Stage.LOAD)
    for finished in range(30):
        bench.answers.says("spark", JobView(tasks=30, active=2, finished=finished))
        assert bench.after(10) is None
    assert bench.after(50) is None
    assert bench.after(15).reason is Reason.TASK_SLOW


def test_rows_that_the_target_changes_are_an_advance_within_one_task(bench):
    bench.progress.at_stage(Stage.LOAD)
    bench.answers.says("spark", JobView(tasks=1, active=1))
    for rows in range(20):
        bench.answers.says("target", TargetView(movement=((5, "trx", rows),), open=1))
        assert bench.after(25) is None


def test_an_answer_from_before_this_stay_in_the_stage_is_not_believed(bench):
    bench.progress.at_stage(Stage.LOAD)
    bench.answers.says("target", TargetView(error="no answer"), age=100)
    bench.answers.says("spark", JobView(tasks=1), age=100)
    assert bench.after(70).reason is Reason.UNKNOWN


def test_spark_that_leaves_the_question_unanswered(bench):
    bench.progress.at_stage(Stage.LOAD)
    bench.answers.says("spark", None, age=1e9, waiting=40)
    assert bench.after(70).reason is Reason.SPARK


def test_heartbeats_are_counted_from_the_last_entry_on(bench):
    bench.progress.at_stage(Stage.SELECT)
    bench.after(0)
    for i in range(1, 100):  # each beat comes back as an entry
        bench.beats = HeartbeatStatus(written=i)
        bench.select = reads(entries=10 + i, unacked=0)
        assert bench.after(1) is None
    bench.beats = HeartbeatStatus(written=140)
    assert bench.after(59) is None
    stall = bench.after(1)
    assert stall.reason is Reason.SOURCE_SILENT
    assert "41 heartbeats" in stall.detail


def test_why_no_heartbeats_are_written_is_reported_until_they_are(bench):
    bench.beats = HeartbeatStatus(written=3, errors=1, error="read-only [1290]")
    bench.after(1)
    assert bench.progress.figures().no_heartbeats == "read-only [1290]"
    bench.beats = HeartbeatStatus(written=4, errors=1)
    bench.after(1)
    assert bench.progress.figures().no_heartbeats == ""


def test_a_source_that_is_held_up_stalls(bench):
    bench.progress.at_stage(Stage.SELECT)
    blocked = Blocked("the end", "Abort it", 61.0, transaction=True)
    bench.select = replace(reads(entries=10, unacked=0), blocked=blocked, waiting_for="the end")
    assert bench.after(30) is None
    assert bench.after(31).reason is Reason.TRANSACTION
    assert bench.progress.figures().waiting_for == "the end"
    bench.select = reads(entries=11, unacked=0)
    assert bench.after(1) is None


def test_a_lock_is_remembered_over_attempts_that_do_not_show_it(bench):
    wait = LockWait(23, 9, "shop.orders", 57, "app@db", 60, "idle in its transaction")
    bench.progress.at_stage(Stage.LOAD)
    bench.after(9)
    bench.progress.failed("gave up [1205]")
    bench.progress.at_stage(Stage.TAKE_OVER)
    bench.progress.at_stage(Stage.LOAD)
    bench.answers.says("target", TargetView(waits=(wait,)))
    bench.after(30)
    assert bench.answers.asked[-1] == "target"
    bench.progress.failed("gave up [1205]")
    bench.progress.at_stage(Stage.TAKE_OVER)
    bench.answers.says("target", TargetView())
    stall = bench.after(31)
    assert (stall.stage, stall.reason) == (Stage.LOAD, Reason.LOCK)
    assert "connection 57" in stall.detail
    bench.progress.succeeded()
    assert bench.after(1) is None


def test_suspended_with_a_batch_in_hand(bench):
    bench.progress.at_stage(Stage.LOAD)
    bench.progress.enter(RunState.SUSPENDED)
    assert bench.after(70).reason is Reason.ARBITER
