"""What a site does with a change before it knows its own writes, and what it remembers."""

import pytest

from setl.model.change import ABSENT
from setl.model.conflict import SiteWrites
from setl.model.schema import Column, Kind
from setl.systems.mysql.conflicts.agreement import NewWrites, RowMemory, row_outcome
from setl.systems.mysql.conflicts.outcome import MOST_NEWS, Guess, joined
from setl.systems.mysql.conflicts.resolve import Rules, Winner, age_by, same

HOME = Rules(from_home=True)
NEWEST = Rules(True, age_by(Column("touched", Kind.INTEGER)), 1)
KEY = (1,)


def said(row, *, version=5, value=None, seen=0):
    return SiteWrites(((version, value if row is None else row[1]),), seen, row)


def change(before, row, **more):
    return NewWrites(said(row, **more), before, None, passed=False, through=7)


def test_a_change_that_finds_its_row_is_no_conflict():
    found = row_outcome(NEWEST, (1, 3), None, change((1, 3), (1, 2)))
    assert (found.row, found.winner, found.is_reported) == ((1, 2), None, True)
    assert found.memory == RowMemory(said((1, 2)), None, (1, 2), 7)
    assert found.memory is not None
    assert found.memory.plain


def test_what_is_passed_is_forgotten():
    memory = RowMemory(said((1, 2)), None, (1, 2), 7)
    found = row_outcome(NEWEST, (1, 2), memory, NewWrites(None, None, None, passed=True, through=9))
    assert (found.row, found.memory, found.is_reported) == ((1, 2), None, False)


@pytest.mark.parametrize("rules", [NEWEST, Rules(from_home=False)])
def test_a_row_that_is_gone_stays_gone_until_it_is_known_how_new_it_was(rules):
    found = row_outcome(rules, None, None, change((1, 2), (1, 9)))
    assert (found.row, found.winner) == (None, Winner.TARGET)
    assert found.memory is not None
    assert found.memory.guess == Guess(None, 0)
    # Nothing was told of it before the source had passed it: nobody has deleted it.
    after = row_outcome(
        rules, None, found.memory, NewWrites(None, None, None, passed=True, through=9)
    )
    assert (after.row, after.winner, after.is_reported) == ((1, 9), Winner.SOURCE, True)


@pytest.mark.parametrize(("value", "stays"), [(8, (1, 9)), (9, None), (10, None)])
def test_a_delete_is_reported_with_the_value_that_the_row_had(value, stays):
    memory = row_outcome(NEWEST, None, None, change((1, 2), (1, 9))).memory
    reported = said(None, version=3, value=value)
    found = row_outcome(
        NEWEST, None, memory, NewWrites(None, None, reported, passed=True, through=9)
    )
    assert found.row == stays


def test_what_a_client_wrote_after_a_load_has_seen_it():
    memory = RowMemory(said((1, 9)), said((1, 2), version=3), (1, 9), 7)
    reported = said((1, 1), version=4, seen=7)
    found = row_outcome(
        NEWEST, (1, 1), memory, NewWrites(None, None, reported, passed=False, through=9)
    )
    assert (found.row, found.is_reported) == ((1, 1), False)
    assert found.memory is not None
    assert found.memory.ours == SiteWrites(((3, 2), (4, 1)), 7, (1, 1))


def test_what_nobody_took_in_is_not_remembered():
    reported = said((1, 1))
    found = row_outcome(
        NEWEST, (1, 1), None, NewWrites(None, None, reported, passed=False, through=9)
    )
    assert (found.memory, found.is_reported) == (None, False)


def test_the_same_at_both_sites_is_a_conflict_that_both_win():
    assert row_outcome(HOME, (1, 3), None, change((1, 2), (1, 3))).winner is Winner.BOTH


def test_columns_that_a_change_does_not_mention_stay():
    found = row_outcome(HOME, (1, "a", "x"), None, change((1, "a", ABSENT), (1, "b", ABSENT)))
    assert found.row == (1, "b", "x")
    assert not same((1, "a"), None)


def test_values_below_a_later_one_say_nothing_and_the_rest_is_bounded():
    found = None
    for version, value in enumerate([3, 9, 5, 7, 7, 2]):
        found = joined(NEWEST, found, said((1, value), version=version))
    assert found is not None
    assert found.news == ((1, 9), (4, 7), (5, 2))
    for version in range(10, 20 + MOST_NEWS):
        found = joined(NEWEST, found, said((1, -version), version=version))
    assert len(found.news) == MOST_NEWS
    assert found.news[0][1] == 9
    assert joined(HOME, said((1, 9)), said((1, 2), version=8)).news == ((8, 2),)


@pytest.mark.parametrize(
    ("kind", "older", "newer"),
    [
        (Kind.DECIMAL, "9.50", "10.25"),
        (Kind.INTEGER, 9, 10),
        (Kind.DATETIME, "2026-01-02 03:04:05.000000", "2026-01-02 03:04:05.000001"),
        (Kind.TIMESTAMP, None, "0000-00-00 00:00:00.000000"),
        (Kind.DECIMAL, None, "-5"),
    ],
)
def test_ages_compare_as_their_columns_do(kind, older, newer):
    age = age_by(Column("touched", kind))
    assert age(older) < age(newer)
