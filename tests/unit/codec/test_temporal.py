from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.codec.temporal import clock_text, date_text, day_text, timestamp_text


@given(st.integers(-719_162, 2_932_896))
def test_days_since_1970_are_those_of_the_calendar(days):
    assert day_text(days) == (date(1970, 1, 1) + timedelta(days=days)).isoformat()


@given(st.integers(1, 2**32 - 1), st.integers(0, 999_999))
def test_timestamps_are_utc(seconds, micros):
    expected = datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros, tzinfo=None)
    assert timestamp_text(seconds, micros) == expected.isoformat(" ", "microseconds")


@pytest.mark.parametrize(
    ("seconds", "micros", "text"),
    [
        (0, 0, "0000-00-00 00:00:00.000000"),
        (0, 1, "1970-01-01 00:00:00.000001"),
        (951_782_400, 0, "2000-02-29 00:00:00.000000"),
        (4_107_542_399, 0, "2100-02-28 23:59:59.000000"),
    ],
)
def test_timestamps_at_their_edges(seconds, micros, text):
    assert timestamp_text(seconds, micros) == text


def test_parts_keep_their_digits():
    assert date_text(0, 0, 0) == "0000-00-00"
    assert clock_text(838, 5, 9) == "838:05:09"
