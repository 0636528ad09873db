"""What a site does with a change while it waits for an answer, and what it never does."""

import pytest

from setl.load.conflicts.agreement import Kept, meet
from setl.load.conflicts.resolve import Rules, Winner, age_by, same
from setl.model.change import ABSENT
from setl.model.conflict import Step
from setl.model.schema import Column, Kind

HOME = Rules(from_home=True)
KEY = (1,)


def step(before, after, **more):
    return Step(7, KEY, before, after, **more)


def asked():
    return "new"


def test_while_it_waits_changes_are_passed_over_and_nothing_is_asked_again():
    kept = Kept((1, "b"), question="q")
    for one in (step((1, "b"), (1, "c")), step((1, "x"), (1, "b")), step((1, "b"), None)):
        assert meet(HOME, kept, one, asked) == (kept, None)


def test_it_asks_again_when_the_answer_is_overdue():
    kept = Kept((1, "b"), question="q", overdue=True)
    after, told = meet(HOME, kept, step((1, "b"), (1, "c")), asked)
    assert after == Kept((1, "c"), question="new")
    assert told is not None
    assert told.asks == "new"


def test_an_answer_to_another_question_says_nothing():
    for question in ("", "q"):
        kept = Kept((1, "b"), question=question)
        assert meet(HOME, kept, step((1, "b"), (1, "c"), answers="old"), asked) == (kept, None)


def test_an_answer_ends_the_waiting():
    kept = Kept((1, "b"), question="q")
    after, told = meet(HOME, kept, step((1, "b"), (1, "c"), answers="q"), asked)
    assert (after, told) == (Kept((1, "c")), None)


def test_the_same_change_at_both_sites_is_no_conflict_but_is_agreed_on():
    after, told = meet(HOME, Kept((1, "b")), step((1, "a"), (1, "b")), asked)
    assert told is not None
    assert (told.winner, told.asks, after.question) == (Winner.BOTH, "new", "new")


def test_columns_that_a_change_does_not_mention_stay():
    after, told = meet(HOME, Kept((1, "a", "x")), step((1, "a", ABSENT), (1, "b", ABSENT)), asked)
    assert (after, told) == (Kept((1, "b", "x")), None)
    assert not same((1, "a"), None)


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
    age = age_by(1, Column("touched", kind))
    assert age((1, older)) < age((1, newer))
