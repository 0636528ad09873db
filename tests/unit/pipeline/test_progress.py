from setl.pipeline.progress import Progress, RunState, percentile


class Clock:
    def __init__(self):
        self.time = 1000.0

    def monotonic(self):
        return self.time

    def now(self):
        return self.time + 500


def test_counters_add_up_and_the_first_load_with_rows_is_timed():
    clock = Clock()
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
    clock = Clock()
    progress = Progress(clock)
    progress.applied(100, "x", pending=0)
    clock.time += 60
    assert progress.figures().rows_per_second == 0


def test_lag_is_never_negative_when_clocks_disagree():
    progress = Progress(Clock())
    progress.sample_lag(-0.3)
    progress.sample_lag(0.2)
    figures = progress.figures()
    assert (figures.lag, figures.lag_p50, figures.lag_p99) == (0.2, 0.2, 0.2)


def test_going_on_clears_the_error_only_from_the_named_state():
    progress = Progress(Clock())
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
