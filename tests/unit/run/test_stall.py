"""What counts as a stall, and which reason is named for it."""

from dataclasses import replace

import pytest

from setl.load.target_view import LockWait, Statement, TargetView
from setl.run.measured.pace import Pace, Reason, Retrying, Stage, Stall
from setl.run.stalls.stall import JobView, QueueView, Situation, diagnose
from setl.select.source import Blocked

LOADING = Pace(stage=Stage.LOAD, in_stage=70, still=70, attempt=500)
ANSWERS = TargetView(name="MySQL db:3306")
RUNS = JobView(tasks=4, active=2, finished=1, executors=1)
WAIT = LockWait(
    waiting=23,
    seconds=60,
    table="shop.orders",
    holder=57,
    who="app@10.0.0.5",
    held=75,
    doing="idle in its transaction",
)
LOCK_ERROR = "MySQL: Lock wait timeout exceeded [1205]"


def failing(error="MySQL: no connection [2003]", **changes):
    given = {"stage": Stage.LOAD, "attempts": 7, "same": 7, "seconds": 90.0, "error": error}
    return Retrying(**{**given, **changes})


def reason(situation, limit=60):
    stall = diagnose(situation, limit)
    return stall and stall.reason


def named(situation) -> Stall:
    stall = diagnose(situation)
    assert stall is not None
    return stall


@pytest.mark.parametrize("stage", [s for s in Stage if s not in (Stage.NONE, Stage.SELECT)])
def test_a_stage_that_does_not_advance_is_a_stall_from_the_limit_on(stage):
    almost = Pace(stage=stage, in_stage=59.9, still=59.9, attempt=300)
    assert diagnose(Situation(almost)) is None
    stall = named(Situation(replace(almost, in_stage=60, still=60)))
    assert (stall.stage, stall.seconds, stall.reason) == (stage, 60, Reason.UNKNOWN)
    assert reason(Situation(almost), limit=59) is Reason.UNKNOWN


def test_a_run_that_is_over_or_idle_does_not_stall():
    assert diagnose(Situation(Pace(stage=Stage.NONE, in_stage=1e6, still=1e6))) is None
    idle = Pace(stage=Stage.SELECT, in_stage=1e6, still=1e6, attempt=1e6)
    assert diagnose(Situation(idle)) is None
    # Heartbeats that come back are entries, and one may be on its way.
    assert diagnose(Situation(idle, queue=QueueView(silent=59, heartbeats=60))) is None
    assert diagnose(Situation(idle, queue=QueueView(silent=90, heartbeats=1))) is None
    # A source without heartbeats may be silent for as long as it likes.
    assert diagnose(Situation(idle, queue=QueueView(silent=1e6, heartbeats=0))) is None
    # Nor does a long load that advances.
    pace = Pace(stage=Stage.LOAD, in_stage=3600, still=12, attempt=9000)
    full = QueueView(unacked=4, full=True)
    assert diagnose(Situation(pace, queue=full, job=RUNS, target=ANSWERS)) is None


@pytest.mark.parametrize("transaction", [True, False])
def test_more_in_the_source_that_does_not_come(transaction):
    idle = Pace(stage=Stage.SELECT, in_stage=1e6, still=1e6, attempt=1e6)

    def seen(seconds):
        blocked = Blocked("its end: 9 records wait", "Abort it", seconds, transaction)
        return Situation(idle, queue=QueueView(blocked=blocked))

    assert diagnose(seen(59)) is None
    assert named(seen(75)) == Stall(
        Stage.SELECT,
        75,
        Reason.TRANSACTION if transaction else Reason.SOURCE_SILENT,
        "its end: 9 records wait. Abort it",
    )


def test_heartbeats_that_do_not_come_back():
    idle = Pace(stage=Stage.SELECT, in_stage=300, still=300, attempt=1e6)
    stall = named(Situation(idle, queue=QueueView(silent=61, heartbeats=60)))
    assert stall == Stall(
        Stage.SELECT,
        61,
        Reason.SOURCE_SILENT,
        "no entry has come since then, although 60 heartbeats were written",
    )


def test_a_lock_names_who_waits_for_whom():
    seen = Situation(LOADING, job=RUNS, target=replace(ANSWERS, waits=(WAIT,)))
    assert str(diagnose(seen)) == (
        "load: no progress for 70 s, waiting for lock: connection 23 wants a lock on shop.orders,"
        " which connection 57 (app@10.0.0.5) holds for 75 s, idle in its transaction"
    )
    # Of several the oldest holder is named, and the others are counted.
    other = replace(WAIT, waiting=24, holder=58, held=3)
    stall = named(Situation(LOADING, target=replace(ANSWERS, waits=(other, WAIT))))
    assert "connection 57 " in stall.detail
    assert stall.detail.endswith("1 more")
    unseen = LockWait(waiting=23, seconds=80, doing="Waiting for table metadata lock")
    stall = named(Situation(LOADING, target=replace(ANSWERS, waits=(unseen,))))
    assert stall.reason is Reason.LOCK
    assert "Waiting for table metadata lock" in stall.detail
    assert "who holds it cannot be seen" in stall.detail


@pytest.mark.parametrize("stage", [Stage.TAKE_OVER, Stage.LOAD, Stage.CHECKPOINT])
def test_a_target_that_does_not_answer(stage):
    silent = TargetView(name="MySQL db:3306", error="MySQL: timed out [2003]")
    pace = replace(LOADING, stage=stage)
    assert reason(Situation(pace, target=silent)) is Reason.TARGET_SILENT
    # Whatever the target is like, it does not hold up a stage that does not use it.
    assert reason(Situation(replace(pace, stage=Stage.EXTRACT), target=silent)) is Reason.UNKNOWN
    forgotten = Situation(LOADING, job=RUNS, target=replace(ANSWERS, gone=(23,)))
    assert reason(forgotten) is Reason.TARGET_SILENT
    assert "connection 23" in named(forgotten).detail
    busy = replace(ANSWERS, rejecting="12 writes were rejected")
    assert reason(Situation(LOADING, job=RUNS, target=busy)) is Reason.BACK_PRESSURE


def test_a_commit_that_does_not_end_explains_locks_that_nobody_is_seen_to_hold():
    """As where a disk is full: what it holds is waited for by connections not recorded yet."""
    commit = Statement(45, 316, "waiting for handler commit; mostly its disk is full")
    hangs = replace(ANSWERS, hanging=commit)
    given_up = replace(LOADING, retrying=failing(LOCK_ERROR, seconds=300))
    stall = named(Situation(given_up, target=hangs))
    assert stall.reason is Reason.TARGET_SLOW
    assert stall.detail.startswith("a commit of connection 45 has not ended for 316 s (waiting")
    assert "mostly its disk is full" in stall.detail
    for between in (None, ANSWERS):  # two attempts, where nobody waits
        seen = Situation(given_up, target=between, hanging=commit, waits_age=8)
        assert "commit of connection 45 has not ended for 316 s" in named(seen).detail
        assert "(seen 8 s ago)" in named(seen).detail
    itself, another = LockWait(23, holder=45, held=300), LockWait(23, holder=46, held=300)
    assert named(Situation(LOADING, target=replace(hangs, waits=(itself,)))).reason is stall.reason
    for other in (
        replace(hangs, waits=(another,)),
        replace(hangs, waits=(itself, another)),
        replace(hangs, waits=(itself,), hanging=replace(commit, seconds=12)),
    ):
        assert named(Situation(LOADING, target=other)).reason is Reason.LOCK


def test_a_slow_statement_and_what_could_not_be_seen_of_it():
    slow = replace(ANSWERS, statements=(Statement(23, 64, "Update"),), blind="no PROCESS")
    stall = named(Situation(LOADING, job=RUNS, target=slow))
    assert stall.reason is Reason.TARGET_SLOW
    assert stall.detail == (
        "a statement of connection 23 runs for 64 s (Update) on MySQL db:3306; no PROCESS"
    )


def test_no_load_may_start_while_suspended():
    seen = Situation(LOADING, suspended=True, target=replace(ANSWERS, waits=(WAIT,)))
    assert reason(seen) is Reason.ARBITER
    idle = Pace(stage=Stage.SELECT, in_stage=300, still=300, attempt=400)
    assert reason(Situation(idle, suspended=True)) is None


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (JobView(tasks=4, executors=1, elsewhere=2), "none of 4 tasks has started"),
        (JobView(tasks=4, finished=3, executors=0), "3 of 4 tasks ended and none runs"),
        (JobView(silent=40), "Spark has not answered for 40 s"),
    ],
)
def test_spark_that_does_not_work_on_the_job(job, words):
    stall = named(Situation(LOADING, job=job, target=ANSWERS))
    assert stall.reason is Reason.SPARK
    assert words in stall.detail


def test_a_task_that_does_not_use_the_target_is_to_blame_and_most_likely_transforms():
    stall = named(Situation(LOADING, job=RUNS, target=ANSWERS))
    assert (stall.stage, stall.reason) == (Stage.TRANSFORM, Reason.TASK_SLOW)
    # With a transaction open, or nothing but the last Spark stage left, it was at writing.
    for seen in (
        Situation(LOADING, job=RUNS, target=replace(ANSWERS, open=1)),
        Situation(LOADING, job=replace(RUNS, loading=True), target=ANSWERS),
    ):
        stall = named(seen)
        assert (stall.stage, stall.reason) == (Stage.LOAD, Reason.TASK_SLOW)


def test_without_another_reason_a_full_window_is_back_pressure_of_the_later_stage():
    full = QueueView(unacked=4, full=True)
    pace = replace(LOADING, stage=Stage.CHECKPOINT)
    stall = named(Situation(pace, queue=full, target=ANSWERS))
    assert (stall.stage, stall.reason) == (Stage.CHECKPOINT, Reason.BACK_PRESSURE)
    assert "Select waits: 4 batches" in stall.detail
    partly = QueueView(unacked=3)
    assert reason(Situation(pace, queue=partly, target=ANSWERS)) is Reason.UNKNOWN
    with_lock = Situation(LOADING, queue=full, target=replace(ANSWERS, waits=(WAIT,)))
    assert named(with_lock).detail.endswith("Select waits: 4 batches are unacknowledged")


# -- retries ----------------------------------------------------------------------------------

AGAIN = Pace(stage=Stage.TAKE_OVER, in_stage=0.1, still=0.1, attempt=0.1, retrying=failing())


def test_attempts_that_come_to_nothing_are_a_stall_of_the_stage_that_failed():
    stall = named(Situation(AGAIN))
    assert (stall.stage, stall.seconds, stall.reason) == (Stage.LOAD, 90, Reason.RETRYING)
    assert stall.detail == "7 attempts have failed, alike: MySQL: no connection [2003]"
    # One that is young or alone is none yet.
    assert diagnose(Situation(replace(AGAIN, retrying=failing(seconds=59)))) is None
    assert diagnose(Situation(replace(AGAIN, retrying=failing(attempts=1, same=1)))) is None


def test_an_attempt_that_waits_for_the_source_has_got_through():
    waits = Pace(stage=Stage.SELECT, in_stage=60, still=60, attempt=61, retrying=failing())
    assert diagnose(Situation(waits)) is None
    assert reason(Situation(replace(waits, in_stage=59, still=59))) is Reason.RETRYING


def test_a_long_attempt_that_advances_is_believed_but_not_for_ever():
    long = Pace(stage=Stage.LOAD, in_stage=80, still=1, attempt=81)
    believed = replace(long, retrying=failing(attempts=2, same=2))
    assert diagnose(Situation(believed)) is None
    assert reason(Situation(replace(believed, still=60))) is Reason.RETRYING
    assert reason(Situation(replace(long, retrying=failing(same=3)))) is Reason.RETRYING


def test_between_two_attempts_at_a_lock_it_is_still_the_lock():
    pace = replace(AGAIN, retrying=failing(LOCK_ERROR))
    stall = named(Situation(pace, target=ANSWERS, waits=(WAIT,), waits_age=4))
    assert stall.reason is Reason.LOCK
    assert "connection 57 (app@10.0.0.5)" in stall.detail
    assert "seen 4 s ago" in stall.detail
    assert "7 attempts have failed" in stall.detail
    # What was seen long ago may be another lock.
    old = named(Situation(pace, target=ANSWERS, waits=(WAIT,), waits_age=61))
    assert old.reason is Reason.LOCK
    assert "57" not in old.detail
    blind = named(Situation(pace, target=replace(ANSWERS, blind="no PROCESS")))
    assert "no PROCESS" in blind.detail


def test_a_target_that_is_down_is_the_reason_for_the_attempts():
    silent = TargetView(name="MySQL db:3306", error="MySQL: no connection [2003]")
    stall = named(Situation(AGAIN, target=silent))
    assert stall.reason is Reason.TARGET_SILENT
    assert "7 attempts have failed" in stall.detail
