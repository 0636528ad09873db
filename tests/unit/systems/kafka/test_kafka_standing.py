"""A partition that does not go on although there is more in it, and what is said of it."""

from types import SimpleNamespace
from typing import Any

import pytest

from setl.errors import TransientError

from .fake_reader import records


@pytest.fixture
def hanging(opened):
    """A source that has read up to a transaction at offset 5, with 4 of 9 records behind it."""
    source, reader = opened
    reader.held, reader.end = (0, 5), 9
    reader.polls = [records(2, 3, 4)]
    source.read(10, 1)
    return source, reader


def test_an_open_transaction_is_reported_with_the_records_that_wait_and_the_hints(hanging):
    source, _ = hanging
    source.read(10, 8)
    assert source.blocked() is None, "most end soon"
    source.read(10, 5)
    blocked = source.blocked()
    assert blocked.transaction
    assert 10 <= blocked.seconds < 14
    assert source.waiting_for() == blocked.what
    # The clock of the test began at 1000 s.
    assert "transaction that is open at orders[0]@5: 4 records wait since" in blocked.what
    assert "1970-01-01 00:16:4" in blocked.what
    for tool in ("--topic orders --partition 0 --start-offset 5", "--bootstrap-server b1:9092"):
        assert tool in blocked.hint
    assert source.behind() == 4


def test_its_end_ends_it(hanging):
    source, reader = hanging
    source.read(10, 30)
    assert source.blocked() is not None
    reader.polls = [records(5, 6, 7)]
    source.read(10, 1)
    assert (source.blocked(), source.waiting_for()) == (None, "")
    reader.next = 9  # the last one is no record
    source.read(10, 30)
    assert source.blocked() is None


def test_one_after_another_is_no_hang(hanging):
    """Records that nobody is shown have moved the end; from there on it counts again."""
    source, reader = hanging
    source.read(10, 9)
    reader.held, reader.next, reader.end = (0, 8), 8, 12
    source.read(10, 9)
    assert source.blocked() is None
    source.read(10, 4)
    assert "@8: 4 records" in source.blocked().what


def test_records_that_do_not_come_are_reported_too(hanging):
    source, reader = hanging
    reader.held = (0, 9)
    source.read(10, 30)
    blocked = source.blocked()
    assert not blocked.transaction
    assert "orders[0]@5" in blocked.what
    assert "setl peek" in blocked.hint


def test_nobody_is_asked_while_nothing_is_wrong(opened):
    source, reader = opened
    reader.end, reader.next = 3, 3
    source.read(10, 0.1)

    def bounds(_):
        pytest.fail("asked for nothing")

    reader.bounds = bounds
    source.read(10, 60)
    reader.end = 4  # a transaction that has just begun
    source.read(10, 2)
    assert source.blocked() is None


def test_what_is_closed_waits_for_nothing(hanging):
    source, reader = hanging
    source.read(10, 30)
    reader.lost_connection = True
    with pytest.raises(TransientError):
        source.read(10, 1)
    source.close()
    assert source.blocked() is None


def test_while_another_member_has_the_partition_that_is_what_it_waits_for(hanging):
    source, _ = hanging
    source.read(10, 30)
    group: Any = SimpleNamespace(waiting_for="another member", in_noted_turn=False)
    source.group = group
    assert (source.waiting_for(), source.blocked()) == ("another member", None)
