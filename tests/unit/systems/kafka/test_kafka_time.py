"""The position of a commit time, by the records themselves."""

import random
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.errors import PositionLostError
from setl.systems.kafka.by_time import first_since, position_at_time
from setl.systems.kafka.partition import PartitionView
from tests.unit.codec.dts_records import record
from tests.unit.select.fakes import ManualClock
from tests.unit.systems.kafka.fake_topic import (
    BASE,
    GAP,
    ONE,
    PARTITION,
    FakeTopic,
    begin_and_commit,
    dated_by_its_begin,
    row,
    stream,
)

STREAM = stream(range(200))


def position(topic, seconds):
    view = PartitionView(cast("Any", topic), PARTITION, timeout=2.0, clock=ManualClock())
    return position_at_time(view, view.bounds(), seconds, 10_000.0)


def test_a_start_by_time_is_the_beginning_of_the_first_transaction_since():
    for seconds, offset in ((0, 0), (1, 2), (30, 2), (31, 4), (30 * 199, 398)):
        found = position(FakeTopic(STREAM), BASE + seconds)
        assert found.offset == offset
        assert found.origin == ONE
        if offset:
            # What the record before it says, which is how the position is found again.
            assert found.timestamp == BASE + 30 * (offset // 2 - 1)
            assert found.record


def test_a_heartbeat_since_is_read_from_the_end_of_the_transaction_before():
    idle = [record("HEARTBEAT", sourceTimestamp=BASE + n) for n in (5, 6, 7)]
    values = [*begin_and_commit(1, BASE), *idle, *begin_and_commit(2, BASE + 10)]
    assert position(FakeTopic(values), BASE + 6).offset == 2


def test_a_topic_from_its_very_beginning_has_everything_since_any_time():
    assert position(FakeTopic(STREAM), BASE - 10_000).offset == 0


def test_a_time_inside_a_transaction_goes_back_to_its_beginning():
    long = [
        record("BEGIN", sourceTimestamp=BASE + 200),
        *[row(BASE + 200 + n) for n in range(400)],
        record("COMMIT", sourceTimestamp=BASE + 600),
    ]
    values = [*begin_and_commit(1, BASE), *long, *begin_and_commit(2, BASE + 700)]
    for seconds in (1, 200, 201, 500, 600):
        assert position(FakeTopic(values), BASE + seconds).offset == 2
    assert position(FakeTopic(values), BASE + 601).offset == 2 + len(long)


@pytest.mark.parametrize("ended", [1000, 1600])
def test_what_was_committed_while_a_statement_ran_for_long_is_not_left_out(ended):
    """Bisection meets its rows, which are older than all that stands before them."""
    before, behind = stream(range(160), 10), stream(range(161, 200), 10)
    values = [*before, *dated_by_its_begin(160, 1000, 4000, ended), *behind]
    for seconds in (1010, 1300, 1590):
        assert position(FakeTopic(values), BASE + seconds).offset == seconds // 5
    assert position(FakeTopic(values), BASE + 1610).offset == 320 + 4002


def test_what_is_too_large_to_be_looked_through_is_no_position(monkeypatch):
    monkeypatch.setattr("setl.systems.kafka.by_time._MOST_LOOKED_BACK", 1000)
    values = [
        *stream(range(160), 10),
        *dated_by_its_begin(160, 1000, 4000, 1000),
        *stream([161], 10),
    ]
    with pytest.raises(PositionLostError, match="do not show what is older: name an offset"):
        position(FakeTopic(values), BASE + 1300)


@pytest.mark.parametrize("values", [[], [b""] * 50, [GAP] * 5])
def test_a_topic_without_times_has_no_position_of_a_time(values):
    with pytest.raises(PositionLostError, match="no record that has a time") as raised:
        position(FakeTopic(values), BASE)
    assert "--to latest" in raised.value.hint


def test_a_time_that_has_not_come_yet_names_the_newest_record():
    with pytest.raises(PositionLostError) as raised:
        position(FakeTopic([*STREAM, b"", GAP]), BASE + 6000)
    text = f"the newest record is of 2026-09-21 15:52:50 UTC ({BASE + 30 * 199}), at offset 399"
    assert text in str(raised.value)
    assert "--to latest` (402)" in raised.value.hint


def test_a_time_whose_records_have_expired_names_the_oldest_record():
    topic = FakeTopic(STREAM, first=100)
    with pytest.raises(PositionLostError) as raised:
        position(topic, BASE + 30 * 50 - 1)
    text = f"the oldest is of 2026-09-21 14:38:20 UTC ({BASE + 30 * 50}), at offset 100"
    assert f"older records have expired, {text}" in str(raised.value)
    assert position(topic, BASE + 30 * 50).offset == 100
    assert position(topic, BASE + 30 * 50 + 1).offset == 102


def test_a_transaction_whose_beginning_has_expired_cannot_be_read():
    with pytest.raises(PositionLostError, match="of the transaction at offset 101 the beginning"):
        position(FakeTopic([*STREAM[:100], *STREAM[100:]], first=101), BASE + 30 * 50)
    idle = [record("HEARTBEAT", sourceTimestamp=BASE + 30 * 50 - 5), b"", *STREAM[100:]]
    assert position(FakeTopic([b""] * 7 + idle, first=7), BASE + 30 * 50 - 5).offset == 7


def test_fillers_and_gaps_have_no_time_and_are_passed_over():
    values = []
    for number in range(40):
        values += [*begin_and_commit(number, BASE + number), b"\0", b"", GAP]
    values[50:50] = [b""] * 500
    for number in (0, 7, 10, 11, 39):
        offset = position(FakeTopic(values), BASE + number).offset
        behind = values.index(begin_and_commit(number - 1, BASE + number - 1)[1]) if number else -1
        assert offset in (behind + 1, values.index(begin_and_commit(number, BASE + number)[0]))


def test_the_search_reads_few_records():
    topic = FakeTopic(stream(range(50_000)))
    position(topic, BASE + 30 * 31_415)
    assert topic.polls < 150


@given(st.integers(0, 2**32), st.integers(0, 60), st.integers(0, 400))
def test_nothing_committed_since_stands_before_the_position(seed, disorder, seconds):
    chance = random.Random(seed)
    values, times = [], []
    for number in range(120):
        at = 3 * number + chance.randint(0, disorder)
        for value in begin_and_commit(number, BASE + at):
            values.append(value)
            times.append(at)
            if chance.random() < 0.2:
                values.append(chance.choice([b"", GAP]))
                times.append(-1)
    topic = FakeTopic(values)
    since = [offset for offset, at in enumerate(times) if at >= seconds]
    view = PartitionView(cast("Any", topic), PARTITION, timeout=2.0, clock=ManualClock())
    found = first_since(view, view.bounds(), BASE + seconds, 10_000.0)
    if not since:
        assert found is None
        with pytest.raises(PositionLostError, match="the newest record"):
            position(topic, BASE + seconds)
        return
    assert found is not None
    assert found.offset == since[0]
    # Between there and the position is nothing but the beginning of that transaction.
    offset = position(topic, BASE + seconds).offset
    assert all(at < seconds for at in times[:offset])
    assert sum(at >= 0 for at in times[offset : since[0]]) <= 1
