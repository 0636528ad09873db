"""Only what differs twice counts."""

import pytest

from setl.bulk.comparison import What
from setl.bulk.verdict import ColumnDifference, DifferingKeys, KeyDifference, TableVerdict
from setl.run.verification.ambiguity import seen_twice, stood_still

M, X, D = What.MISSING, What.EXTRA, What.DIFFERENT


def verdict(rows, *, values=None, known=True, named=100):
    """A verdict about rows: key → what; `values` of a different row are shown."""
    values = values or {}
    samples = [
        KeyDifference(
            str(key), what, (ColumnDifference("n", *values.get(key, (1, 2))),) if what is D else ()
        )
        for key, what in list(rows.items())[:named]
    ]
    counts = [sum(what is kind for what in rows.values()) for kind in (M, X, D)]
    differing = DifferingKeys(unknown=len(rows))
    if known:
        differing = DifferingKeys(("id",), tuple(((key,), what) for key, what in rows.items()))
    return TableVerdict(
        "s.t", "c.t", 9, 9, *counts, sample_keys=tuple(samples), differing=differing
    )


def reported(found):
    return (found.missing, found.extra, found.different), [s.key for s in found.sample_keys]


@pytest.mark.parametrize("judge", [seen_twice, stood_still])
@pytest.mark.parametrize(
    ("first", "again", "expected"),
    [
        ({1: M, 2: X, 3: D}, {1: M, 2: X, 3: D}, ((1, 1, 1), ["1", "2", "3"])),
        ({1: M, 2: X}, {2: X, 3: D}, ((0, 1, 0), ["2"])),
        ({1: M}, {1: D}, ((0, 0, 0), [])),
        ({1: M}, {}, ((0, 0, 0), [])),
    ],
    ids=["the same", "one of them", "in another way", "no more"],
)
def test_a_key_counts_if_it_differs_in_the_same_way_both_times(judge, first, again, expected):
    assert reported(judge(verdict(first), verdict(again))) == expected


@pytest.mark.parametrize("judge", [seen_twice, stood_still])
def test_keys_to_repair_are_those_that_count(judge):
    found = judge(verdict({1: M, 2: X}), verdict({2: X, 3: D}))
    assert found.differing == DifferingKeys(("id",), (((2,), X),))


def test_a_row_that_moves_on_is_undecided_where_it_may_be_changed_on_both_sides():
    first = verdict({1: D, 2: D}, values={1: (5, 4), 2: (7, 7.5)})
    again = verdict({1: D, 2: D}, values={1: (5, 4), 2: (8, 7.5)})
    found = stood_still(first, again)
    assert reported(found) == ((0, 0, 1), ["1"])
    assert (found.undecided, found.differing.keys) == (1, (((1,), D),)), "the other is not repaired"
    assert reported(seen_twice(first, again)) == ((0, 0, 2), ["1", "2"])


def test_a_row_that_agreed_when_it_was_read_to_be_shown_is_undecided_there():
    agreed = TableVerdict(
        "s.t", "c.t", 9, 9, 0, 0, 1, sample_keys=(KeyDifference("1", D),),
        differing=DifferingKeys(("id",), (((1,), D),)),
    )  # fmt: skip
    found = stood_still(agreed, agreed)
    assert (found.different, found.undecided) == (0, 1)


def test_where_nobody_knows_the_keys_at_the_source_rows_must_stand_still_too():
    first = verdict({1: D}, values={1: (5, 4)}, known=False)
    assert reported(seen_twice(first, first)) == ((0, 0, 1), ["1"])
    again = verdict({1: D}, values={1: (6, 5)}, known=False)
    assert reported(seen_twice(first, again)) == ((0, 0, 0), [])


def test_keys_that_are_too_many_to_be_named_count_as_far_as_both_have_them():
    first = verdict(dict.fromkeys(range(50), M), known=False, named=10)
    again = verdict(dict.fromkeys(range(30), M), known=False, named=10)
    assert seen_twice(first, again).missing == 30
