"""How many rows go into one execution of a statement."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.errors import DataError
from setl.systems.mysql.load import bulk
from setl.systems.mysql.load.row_statement import Limits

PACKET = bulk._BESIDE_ROWS + 50


def given_out(rows, limits):
    """The executions, and whether it ended at a row that is too long."""
    found = []
    try:
        ends = list(accumulate(map(len, rows)))
        found.extend(rows[start:stop] for start, stop in bulk.executions(ends, limits))
    except DataError:
        return found, True
    return found, False


@given(st.lists(st.integers(0, 60), min_size=1, max_size=40), st.integers(1, 60), st.integers(1, 9))
def test_each_takes_as_many_as_fit(sizes, size, count):
    rows = [bytes([number]) * length for number, length in enumerate(sizes)]
    found, refused = given_out(rows, Limits(rows=count, size=size, packet=PACKET))
    too_long = next((number for number, row in enumerate(rows) if len(row) > 50), None)
    assert refused is (too_long is not None)
    assert [row for some in found for row in some] == rows[:too_long]
    most = min(size, 50)
    for number, some in enumerate(found):
        assert 1 <= len(some) <= count
        assert len(some) == 1 or sum(map(len, some)) <= most
        following = found[number + 1][0] if number + 1 < len(found) else None
        if following is not None and len(some) < count:
            assert sum(map(len, some)) + len(following) > most


def test_a_row_that_is_too_long_is_reported_after_those_before_it():
    rows = [b"a", b"b", b"c" * 51, b"d"]
    assert given_out(rows, Limits(packet=PACKET)) == ([[b"a", b"b"]], True)
    with pytest.raises(DataError, match="too long"):
        list(bulk.executions([51, 52], Limits(packet=PACKET)))
