"""Bisection does all that can be done, finds exactly what cannot, and is cheap."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.bisection import bisect_faults
from setl.errors import DataError, FatalError


class Statement:
    """Takes things together, or none of them if one is faulty."""

    def __init__(self, faulty, most=10**6):
        self.faulty = faulty
        self.most = most
        self.done = []
        self.attempts = 0

    def attempt(self, start, stop):
        self.attempts += 1
        if stop - start > self.most:
            return False
        if self.faulty & set(range(start, stop)):
            raise DataError(f"one of {start} to {stop}")
        self.done += range(start, stop)
        return True


@st.composite
def cases(draw):
    count = draw(st.integers(0, 300))
    faulty = draw(st.sets(st.integers(0, count - 1), max_size=20)) if count else set()
    return count, faulty, draw(st.sampled_from([0, 1, 7, 64, 1000]))


@given(cases())
def test_all_but_the_faulty_ones_are_done_once_and_in_order(case):
    count, faulty, together = case
    statement, refused = Statement(faulty), []
    bisect_faults(count, statement.attempt, lambda i, _: refused.append(i), together=together)
    assert refused == sorted(faulty)
    assert statement.done == [i for i in range(count) if i not in faulty]
    step = min(together or count, count)
    chunks = math.ceil(count / step) if count else 0
    bound = chunks + 2 * len(faulty) * math.ceil(math.log2(max(2, step)))
    assert statement.attempts <= bound


@given(cases(), st.integers(1, 50))
def test_what_is_too_much_for_one_attempt_is_divided(case, most):
    count, faulty, _ = case
    statement, refused = Statement(faulty, most), []
    bisect_faults(count, statement.attempt, lambda i, _: refused.append(i))
    assert refused == sorted(faulty)
    assert statement.done == [i for i in range(count) if i not in faulty]


def test_a_thousand_rows_with_three_faulty_ones_take_no_hundred_statements():
    statement, refused = Statement({3, 500, 999}), []
    bisect_faults(1000, statement.attempt, lambda i, _: refused.append(i))
    assert refused == [3, 500, 999]
    assert statement.attempts <= 61


def test_who_is_reported_may_end_it():
    statement = Statement({1, 5})

    def end(number, error):
        raise error

    with pytest.raises(DataError, match="one of 1 to 2"):
        bisect_faults(8, statement.attempt, end)
    assert 7 not in statement.done


def test_another_error_is_nobodys_fault():
    def attempt(start, stop):
        raise FatalError("no table")

    with pytest.raises(FatalError):
        bisect_faults(8, attempt, lambda *_: pytest.fail("no row was refused"))
