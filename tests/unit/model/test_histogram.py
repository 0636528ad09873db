import pickle

import pytest

from setl.model.histogram import Histogram
from setl.model.loaded import Loaded

BOUNDS = (1.0, 10.0)


def test_a_bound_belongs_to_the_range_below_it():
    histogram = Histogram.of([0.5, 1.0, 1.5, 10.0, 11.0], BOUNDS)
    assert histogram.counts == (2, 2, 1)
    assert histogram.count == 5
    assert histogram.total == 24.0


def test_a_sum_counts_what_both_have_counted():
    one, two = [0.25, 3.0], [0.75, 30.0, 4.0]
    assert Histogram.of(one, BOUNDS) + Histogram.of(two, BOUNDS) == Histogram.of(one + two, BOUNDS)
    assert Histogram() + Histogram.of(one, BOUNDS) == Histogram.of(one, BOUNDS) + Histogram()


def test_other_bounds_are_refused():
    with pytest.raises(ValueError, match="bounds"):
        _ = Histogram.of([1.0], BOUNDS) + Histogram.of([1.0], (2.0,))


def test_what_tasks_measured_comes_back_in_what_they_return():
    tasks = [Loaded(statements=Histogram.of([0.5 + n], BOUNDS), began=9.0 - n) for n in range(3)]
    back = sum((pickle.loads(pickle.dumps(task)) for task in tasks), Loaded())
    assert back.statements == Histogram.of([0.5, 1.5, 2.5], BOUNDS)
    assert back.began == 7.0, "when the first of them began to write"
