import random

from setl.model.loaded import Loaded
from setl.model.table_rows import MOST_TABLES, OTHERS, TableRows
from setl.run.measured.figures import HandoverCost, RunState, VerificationFigures
from setl.run.measured.lag import percentile
from setl.run.measured.pace import Reason, Stage, Stall
from setl.run.measured.progress import Progress
from tests.clocks import SetClock


def test_counters_add_up_and_the_first_load_with_rows_is_timed():
    clock = SetClock(wall=500.0)
    progress = Progress(clock)
    progress.resumed("binlog.000001:4", rows_total=70)
    progress.applied(0, "binlog.000001:90", pending=0)
    assert progress.figures().first_applied_at is None
    clock.time += 3
    progress.applied(20, "binlog.000001:200", pending=1)
    clock.time += 3
    progress.applied(10, "binlog.000001:300", pending=0)
    figures = progress.figures()
    assert figures.first_applied_at == 1503.0
    assert figures.rows_total == 100
    assert figures.position == "binlog.000001:300"
    assert figures.rows_per_second == 3.0


def test_the_rate_forgets_what_is_long_past():
    clock = SetClock(wall=500.0)
    progress = Progress(clock)
    progress.applied(100, "x", pending=0)
    clock.time += 60
    assert progress.figures().rows_per_second == 0


def test_lag_is_never_negative_when_clocks_disagree():
    progress = Progress(SetClock(wall=500.0))
    progress.sample_lag(-0.3)
    progress.sample_lag(0.2)
    figures = progress.figures()
    assert (figures.lag, figures.lag_p50, figures.lag_p99) == (0.2, 0.2, 0.2)


def test_going_on_clears_the_error_only_from_the_named_state():
    progress = Progress(SetClock(wall=500.0))
    progress.enter(RunState.FAILED, "why")
    progress.enter_if(RunState.RETRYING, RunState.RUNNING)
    assert progress.figures().error == "why"
    progress.enter(RunState.RETRYING, "why")
    progress.enter_if(RunState.RETRYING, RunState.RUNNING)
    assert (progress.figures().state, progress.figures().error) == (RunState.RUNNING, "")


def test_percentiles_of_few_samples():
    assert percentile([], 0.5) is None
    assert percentile([1.0], 0.99) == 1.0
    assert percentile([float(i) for i in range(100)], 0.99) == 99.0


def test_percentiles_are_those_of_the_last_samples():
    progress, chance = Progress(SetClock()), random.Random(7)
    samples = [chance.choice([0.5, chance.random()]) for _ in range(10_000)]
    for number, sample in enumerate(samples, start=1):
        progress.sample_lag(sample)
        if number % 777 == 0 or number == len(samples):
            stored = sorted(samples[:number][-4096:])
            figures = progress.figures()
            assert figures.lag_p50 == stored[int(0.5 * len(stored))]
            assert figures.lag_p99 == stored[int(0.99 * len(stored))]


def test_the_stage_and_a_stall_are_among_the_figures():
    clock = SetClock(wall=500.0)
    progress = Progress(clock)
    assert (progress.figures().stage, progress.figures().stage_seconds) == (Stage.NONE, 0)
    progress.at_stage(Stage.LOAD)
    clock.time += 70
    progress.stalls(Stall(Stage.TRANSFORM, 65, Reason.TASK_SLOW, "1 of 1 tasks run"))
    figures = progress.figures()
    assert (figures.stage, figures.stage_seconds) == (Stage.LOAD, 70)
    assert (figures.stalled_stage, figures.stalled_reason) == ("transform", "task slow")
    assert figures.stalled_seconds == 65
    assert figures.stalled == ("transform: no progress for 65 s, task slow: 1 of 1 tasks run")
    progress.stalls(None)
    figures = progress.figures()
    assert (figures.stalled, figures.stalled_stage, figures.stalled_reason) == ("", "", "")


def acknowledge(progress, passed, rows=0, redelivered=0):
    progress.applied(rows, f"binlog.000001:{passed}", pending=0)
    progress.add(rows_redelivered=redelivered)
    progress.acknowledged(passed)


def test_redelivered_rows_are_final_once_everything_has_passed_that_was_there_before():
    clock = SetClock(wall=500.0)
    progress = Progress(clock)
    progress.took_over(through=300, counted=True)
    assert progress.handover_cost() is None
    clock.time += 2
    acknowledge(progress, 200, rows=10, redelivered=10)
    assert progress.handover_cost() is None
    clock.time += 2
    acknowledge(progress, 320, rows=10, redelivered=8)
    cost = HandoverCost(working_at=1502.0, first_applied_at=1502.0, redelivered=18)
    assert progress.handover_cost() == cost
    clock.time += 2
    acknowledge(progress, 400, rows=10, redelivered=5)
    assert progress.handover_cost() == cost


def test_after_a_hand_over_in_order_the_first_batch_settles_it():
    clock = SetClock(wall=500.0)
    progress = Progress(clock)
    progress.took_over(through=300, counted=True)
    clock.time += 2
    acknowledge(progress, 310)
    assert progress.handover_cost() == HandoverCost(1502.0, None, 0)


def test_what_the_leadership_before_stored_last_is_dated_once():
    clock = SetClock(wall=500.0)
    progress = Progress(clock)
    progress.found_checkpoint(30.0)
    progress.took_over(through=0, counted=True)
    clock.time += 2
    progress.found_checkpoint(1.0)  # by this leadership itself, which restarts
    acknowledge(progress, 310)
    assert progress.handover_cost() == HandoverCost(1502.0, None, 0, stored_at=1470.0)


def test_a_store_that_does_not_know_when_leaves_that_unknown():
    progress = Progress(SetClock(wall=500.0))
    progress.found_checkpoint(None)
    progress.found_checkpoint(1.0)
    progress.took_over(through=0, counted=True)
    acknowledge(progress, 310)
    cost = progress.handover_cost()
    assert cost is not None
    assert cost.stored_at is None


def test_a_target_that_cannot_tell_leaves_the_redelivered_rows_unknown():
    progress = Progress(SetClock(wall=500.0))
    progress.took_over(through=0, counted=False)
    acknowledge(progress, 310, rows=3)
    cost = progress.handover_cost()
    assert cost is not None
    assert cost.redelivered is None


def test_a_rollback_does_not_make_own_rows_those_of_the_leadership_before():
    progress = Progress(SetClock(wall=500.0))
    progress.took_over(through=300, counted=True)
    acknowledge(progress, 200, rows=10, redelivered=10)
    progress.took_over(through=900, counted=True)
    acknowledge(progress, 300, rows=1, redelivered=1)
    cost = progress.handover_cost()
    assert cost is not None
    assert cost.redelivered == 11


def leading(clock):
    progress = Progress(clock)
    progress.enter(RunState.TAKING)
    progress.heartbeats_every(2.0)
    progress.enter(RunState.RUNNING)
    progress.sample_lag(0.5)
    return progress


def test_lag_grows_in_every_state_once_a_heartbeat_is_overdue():
    for state in RunState:
        clock = SetClock(wall=500.0)
        progress = leading(clock)
        clock.time += 2
        assert progress.figures().lag == 0.5, "the next heartbeat is not due before"
        progress.enter(state, "why")
        clock.time += 100
        expected = None if state is RunState.STANDBY else 100.5
        assert progress.figures().lag == expected, state


def test_lag_goes_on_under_the_next_epoch_and_is_measured_again():
    clock = SetClock(wall=500.0)
    progress = leading(clock)
    progress.failed("the target went away")
    progress.enter(RunState.RETRYING, "the target went away")
    clock.time += 50
    following = Progress(clock, progress)
    clock.time += 52
    assert following.figures().lag == 100.5
    following.sample_lag(0.25)
    assert following.figures().lag == 0.25


def test_a_leadership_that_has_applied_nothing_is_behind_since_its_checkpoint():
    clock = SetClock(wall=500.0)
    progress = Progress(clock)
    assert progress.figures().lag is None
    progress.enter(RunState.TAKING)
    clock.time += 31
    assert progress.figures().lag == 30.0
    progress.resumed("b.000001:4", 0, committed_at=clock.now() - 600)
    assert progress.figures().lag == 600.0


def test_without_heartbeats_nothing_grows_while_nothing_waits():
    clock = SetClock(wall=500.0)
    progress = Progress(clock)
    progress.enter(RunState.RUNNING)
    for _ in range(10):
        clock.time += 1
        progress.caught_up()
    assert progress.figures().lag == 0.0
    progress.enter(RunState.PAUSED)
    progress.caught_up()
    clock.time += 11
    assert progress.figures().lag == 10.0


def test_without_heartbeats_a_transaction_that_came_late_is_not_late_for_ever():
    """Loads, standing verification and alarms wait for the lag to be less."""
    clock = SetClock(wall=500.0)
    progress = Progress(clock)
    progress.enter(RunState.RUNNING)
    progress.sample_lag(600.0)
    clock.time += 1
    progress.caught_up()
    assert progress.figures().lag == 600.0, "a topic's own heartbeats may say so every second"
    clock.time += 10
    progress.caught_up()
    assert progress.figures().lag == 0.0


def test_rows_are_counted_by_table_within_a_bound():
    progress = Progress(SetClock(wall=500.0))
    for n in range(MOST_TABLES + 3):
        progress.loaded(Loaded(rows=2, tables={f"s.t{n}": TableRows(2, 1)}))
    progress.loaded(Loaded(tables={"s.t0": TableRows(5, 0, 7)}))
    tables = progress.figures().tables
    assert tables["s.t0"] == TableRows(7, 1, 7)
    assert tables[OTHERS] == TableRows(6, 3)
    assert len(tables) == MOST_TABLES + 1


def test_verification_of_a_run_that_has_ended_is_throttled_and_of_a_standby_is_not_reported():
    progress = Progress(SetClock(wall=500.0))
    progress.enter(RunState.RUNNING)
    progress.verifies(VerificationFigures("comparing", differences=3))
    progress.enter(RunState.RETRYING, "gone")
    assert progress.figures().verification == VerificationFigures("comparing", differences=3)
    progress.enter(RunState.PAUSED)
    reported = progress.figures().verification
    assert reported is not None
    assert (reported.state, reported.waits_for) == ("throttled", "the pipeline is paused")
    assert reported.differences == 3
    progress.enter(RunState.STANDBY)
    assert progress.figures().verification is None
