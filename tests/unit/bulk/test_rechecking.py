import pytest

from setl.bulk.comparison import Difference, Held, Merging, What, judge
from setl.bulk.position_waiter import WaitOutcome
from setl.bulk.rechecking import Look, Rechecking


def held(rows):
    """Digests are written as letters; '' is no row."""
    return Held(len(rows), tuple(c.encode() for c in sorted(rows)))


def difference(key, source, target):
    sides = held(source), held(target)
    what = judge(*sides, Merging.NONE)
    return Difference(key, what or What.DIFFERENT, None, *sides)


def contents(rows):
    return {key: held(row) for key, row in rows.items() if row}


def look(before, target, after, wait_outcome=WaitOutcome.CAUGHT_UP):
    return Look(contents(before), contents(target), contents(after), wait_outcome)


def outcome(rechecking):
    rechecked = rechecking.end()
    return {
        **{d.key: d.what.value for d in rechecked.different},
        **{d.key: "undecided" for d in rechecked.undecided},
    }


def rechecked(first, *looks):
    """What becomes of one key: source and target at first, then looks at it."""
    rechecking = Rechecking([difference("k", *first)], Merging.NONE)
    for before, target, after, wait_outcome in looks:
        rechecking.look(look({"k": before}, {"k": target}, {"k": after}, wait_outcome))
    return outcome(rechecking).get("k", "equal")


THERE, UNKNOWN, LATE = WaitOutcome


@pytest.mark.parametrize(
    ("first", "looks", "becomes"),
    [
        # The target has to have what the source had all the time.
        (("a", "b"), [("a", "b", "a", THERE)], "different"),
        (("a", ""), [("a", "", "a", THERE)], "missing"),
        (("", "a"), [("", "a", "", THERE)], "extra"),
        (("a", "b"), [("a", "a", "a", THERE)], "equal"),
        (("", "a"), [("", "", "", THERE)], "equal"),
        # It has another row than at first, and still the wrong one.
        (("a", "b"), [("a", "c", "a", THERE)], "different"),
        # Two rows of one key are one too many, whatever they say.
        (("a", "aa"), [("a", "aa", "a", THERE)], "different"),
        # As many rows as at the source, each of them once.
        (("ab", "a"), [("ab", "a", "ab", THERE)], "different"),
        (("ab", "a"), [("ab", "ba", "ab", THERE)], "equal"),
        (("ab", "a"), [("a", "a", "ab", THERE)], "equal"),
        # It has what the source had before, or what it got after: it follows.
        (("a", "b"), [("a", "a", "c", THERE)], "equal"),
        (("a", "b"), [("a", "c", "c", THERE)], "equal"),
        (("a", "b"), [("a", "", "", THERE)], "equal"),
        # What lies between two looks at the source, nobody knows.
        (("a", "z"), [("a", "b", "c", THERE)], "undecided"),
        (("a", "z"), [("a", "b", "c", THERE), ("c", "d", "e", THERE)], "undecided"),
        (("a", "z"), [("a", "b", "c", THERE), ("c", "c", "c", THERE)], "equal"),
        (("a", "z"), [("a", "b", "c", THERE), ("c", "b", "c", THERE)], "different"),
        # The target cannot have what nobody brings.
        (("a", "b"), [("a", "b", "a", LATE)], "different"),
        (("a", "b"), [("c", "b", "d", LATE)], "different"),
        (("a", "b"), [("a", "a", "a", LATE)], "equal"),
        # Nobody can tell: it counts if it never comes to agree.
        (("a", ""), [("a", "", "a", UNKNOWN)] * 3, "missing"),
        (("a", ""), [("a", "", "a", UNKNOWN), ("a", "a", "a", UNKNOWN)], "equal"),
        (("b", "a"), [("b", "a", "c", UNKNOWN), ("c", "a", "d", UNKNOWN)], "different"),
        (("b", "a"), [("c", "b", "d", UNKNOWN)], "equal"),
        (("b", "a"), [("c", "b", "c", UNKNOWN), ("c", "b", "c", UNKNOWN)], "different"),
        (("a", "b"), [], "different"),
    ],
)
def test_what_becomes_of_a_key(first, looks, becomes):
    assert rechecked(first, *looks) == becomes


def test_keys_are_followed_by_themselves():
    rechecking = Rechecking(
        [
            difference("1", "a", "b"),
            difference("2", "a", ""),
            *[difference(key, "x", "y") for key in "345"],
        ],
        Merging.NONE,
    )
    rechecking.look(
        look(
            {"1": "a", "2": "a", "3": "x", "4": "x", "5": "x"},
            {"1": "a", "3": "y", "4": "y", "5": "z"},
            {"1": "a", "2": "a", "3": "x", "4": "q", "5": "q"},
        )
    )
    assert sorted(d.key for d in rechecking.pending) == ["2", "3", "4", "5"]
    still = {"2": "a", "3": "x"}
    rechecking.look(
        look(
            {**still, "4": "q", "5": "q"},
            {"3": "y", "4": "q", "5": "y"},
            {**still, "4": "q", "5": "r"},
        )
    )
    assert [d.key for d in rechecking.pending] == ["5"]
    rechecked = rechecking.end()
    assert {d.key: d.what for d in rechecked.different} == {"2": What.MISSING, "3": What.DIFFERENT}
    assert [d.key for d in rechecked.undecided] == ["5"]
    assert rechecked.caught_up == 2


def test_a_row_that_goes_and_comes_back_within_a_look_is_no_difference():
    rechecking = Rechecking([difference("1", "", "a")], Merging.NONE)
    rechecking.look(look({}, {"1": "a"}, {}))
    assert [d.key for d in rechecking.pending] == ["1"]
    rechecking.look(look({}, {}, {}))
    rechecked = rechecking.end()
    assert (rechecked.different, rechecked.undecided, rechecked.caught_up) == ([], [], 1)


def test_a_difference_is_reported_as_it_was_last():
    rechecking = Rechecking([difference("1", "a", "b")], Merging.NONE)
    rechecking.look(look({"1": "a"}, {}, {"1": "a"}))
    (found,) = rechecking.end().different
    assert (found.what, found.source, found.target) == (What.MISSING, held("a"), held(""))


@pytest.mark.parametrize(
    ("first", "looks", "more"),
    [
        (("a", "b"), [("a", "a", "a", THERE)], (0, 0)),
        (("a", ""), [("a", "a", "a", THERE)], (0, 1)),
        (("a", "b"), [("a", "a", "", THERE)], (0, 0)),
        (("a", "b"), [("a", "", "", THERE)], (-1, -1)),
        (("ab", "a"), [("a", "a", "a", THERE)], (-1, 0)),
        (("a", ""), [("", "", "", LATE)], (-1, 0)),
        (("b", "a"), [("c", "b", "d", UNKNOWN)], (0, 0)),
        (("a", ""), [], (0, 0)),
    ],
)
def test_rows_are_counted_as_they_were_judged(first, looks, more):
    rechecking = Rechecking([difference("k", *first)], Merging.NONE)
    for before, target, after, wait_outcome in looks:
        rechecking.look(look({"k": before}, {"k": target}, {"k": after}, wait_outcome))
    found = rechecking.end()
    assert (found.more_source_rows, found.more_target_rows) == more
    if not (found.different or found.undecided):
        there, here = (len(side) + n for side, n in zip(first, more, strict=True))
        assert there == here
