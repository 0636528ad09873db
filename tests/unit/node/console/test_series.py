"""Figures over time: what is kept, how coarse, and never more than there is room for."""

import itertools
import math

from setl.node.console.figures import (
    COARSE_POINTS,
    FINE_POINTS,
    Point,
    Ring,
    Series,
    as_columns,
    merged,
    of_columns,
)


def test_a_ring_stores_the_last_points_in_order():
    ring = Ring(3)
    assert list(ring) == []
    for n in range(1, 8):
        ring.add(Point(float(n), n / 10, n * 2.0, 0.0))
        assert [p.at for p in ring] == [float(m) for m in range(max(1, n - 2), n + 1)]


def test_the_past_is_stored_by_minutes_and_within_a_bound():
    series = Series()
    for n in range(20 * (COARSE_POINTS + FINE_POINTS)):
        series.add(Point(n * 5.0, float(n % 12), 1.0, 2.0))
    points = series.points()
    assert len(points) <= COARSE_POINTS + FINE_POINTS
    times = [p.at for p in points]
    assert times == sorted(set(times))
    gaps = {later - earlier for earlier, later in itertools.pairwise(times)}
    assert gaps == {5.0, 60.0}
    # What lies in a minute is told by its worst lag and its mean rate.
    assert {p.lag for p in points[:100]} == {11.0}
    assert {p.rows for p in points[:100]} == {1.0}


def test_points_after_a_time_and_unknown_values():
    series = Series()
    for n in range(4):
        series.add(Point(n * 5.0, math.nan if n == 1 else 1.0, 3.0, 0.0))
    assert series.last == 15.0
    after = series.points(since=0.0)
    assert [p.at for p in after] == [5.0, 10.0, 15.0]
    columns = as_columns(after)
    assert columns["lag"] == [None, 1.0, 1.0]
    again = of_columns(columns)
    assert as_columns(again) == columns
    assert as_columns([]) == {"at": [], "lag": [], "rows": [], "pending": []}


def test_what_another_release_sends_is_no_crash():
    assert of_columns({"at": [1.0]}) == []
    assert of_columns({}) == []


def test_leaders_before_and_after_make_one_series():
    first = [Point(1.0, 1, 1, 1), Point(2.0, 1, 1, 1)]
    second = [Point(3.0, 2, 2, 2)]
    assert merged([second, first, []]) == [*first, *second]
