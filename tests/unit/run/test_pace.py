from setl.run.measured.pace import PaceTracker, Retrying, Stage


class Clock:
    def __init__(self):
        self.time = 1000.0

    def monotonic(self):
        return self.time

    def now(self):
        return self.time

    def pass_(self, seconds):
        self.time += seconds


def begun():
    clock = Clock()
    return clock, PaceTracker(clock)


def failing(keeper) -> Retrying:
    retrying = keeper.pace().retrying
    assert retrying is not None
    return retrying


def test_a_stage_is_counted_from_when_it_was_entered():
    clock, keeper = begun()
    assert keeper.pace().stage is Stage.NONE
    keeper.enter(Stage.TAKE_OVER)
    clock.pass_(3)
    keeper.enter(Stage.SELECT)
    clock.pass_(2)
    keeper.enter(Stage.SELECT)  # a loop comes past again and again
    pace = keeper.pace()
    assert (pace.stage, pace.in_stage, pace.still, pace.attempt) == (Stage.SELECT, 2, 2, 5)


def test_what_moves_inside_a_stage_counts_and_leaves_the_stage_as_old_as_it_is():
    clock, keeper = begun()
    keeper.enter(Stage.LOAD)
    clock.pass_(50)
    keeper.moved()
    clock.pass_(7)
    assert (keeper.pace().in_stage, keeper.pace().still) == (57, 7)


def test_failures_are_counted_from_the_beginning_of_the_stage_that_failed_first():
    clock, keeper = begun()
    keeper.enter(Stage.LOAD)
    clock.pass_(10)
    keeper.failed("lock on row 17")
    for number in (18, 19):
        clock.pass_(1)
        keeper.enter(Stage.TAKE_OVER)
        keeper.enter(Stage.LOAD)
        clock.pass_(10)
        keeper.failed(f"lock on row {number}")
    retrying = failing(keeper)
    assert (retrying.stage, retrying.attempts, retrying.same) == (Stage.LOAD, 3, 3)
    assert retrying.seconds == 32
    assert retrying.error == "lock on row 19"
    assert keeper.pace().attempt == 10


def test_another_error_is_counted_again_as_the_same():
    _, keeper = begun()
    keeper.failed("one")
    keeper.failed("one")
    keeper.failed("two")
    assert (failing(keeper).attempts, failing(keeper).same) == (3, 1)


def test_idle_hours_before_a_failure_are_not_part_of_it():
    clock, keeper = begun()
    keeper.enter(Stage.SELECT)
    clock.pass_(7200)
    keeper.failed("connection lost")
    clock.pass_(4)
    assert failing(keeper).seconds == 4


def test_a_success_forgets_the_failures_and_is_an_advance():
    clock, keeper = begun()
    keeper.enter(Stage.LOAD)
    keeper.failed("one")
    clock.pass_(100)
    keeper.succeeded()
    clock.pass_(1)
    assert keeper.pace().retrying is None
    assert keeper.pace().still == 1
    keeper.failed("two")
    assert failing(keeper).same == 1
