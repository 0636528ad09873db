from setl.run.loads.size import SECONDS, LoadSize


def test_it_starts_with_one_batch_and_grows_while_the_target_stores_up():
    size = LoadSize(most=40_000)
    assert size.rows == 1
    seen = []
    for _ in range(4):
        size.loaded(max(1_000, size.rows), 0.1)
        seen.append(size.rows)
    assert seen == [4_000, 16_000, 40_000, 40_000]


def test_a_slow_target_gets_loads_that_it_can_finish_soon():
    size = LoadSize(most=40_000)
    for _ in range(10):
        rows = max(10_000, size.rows)
        size.loaded(rows, rows / 1_000)
    assert size.rows == 1_000 * SECONDS


def test_a_target_that_recovers_gets_more_again():
    size = LoadSize(most=40_000)
    size.loaded(1_000, 100.0)
    assert size.rows == 20
    for _ in range(12):
        size.loaded(size.rows, size.rows / 50_000)
    assert size.rows == 40_000


def test_a_load_without_rows_says_nothing():
    size = LoadSize(most=10)
    size.loaded(0, 5.0)
    assert size.rows == 1
