"""One rule says whether two sides agree, for all ways to compare them."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.bulk.comparison import Held, Merging, What, judge
from setl.bulk.verdict import TableVerdict

# Rows of one side: the key by which they are compared, what they say, and their table.
Rows = list[tuple[int, bytes, int]]

contents = st.sampled_from([b"a", b"b", b"c"])
rows = st.lists(st.tuples(st.integers(0, 2), contents, st.integers(0, 2)), max_size=7)


def held(side: Rows, key: int, merging: Merging, tables: bool = True) -> Held:
    own = [(said, table) for k, said, table in side if k == key]
    said = [each for each, _ in own]
    if merging in {Merging.ROWS, Merging.COUNTED}:
        said = sorted(set(said))
    return Held(len(own), tuple(sorted(said)), tables=len({t for _, t in own}) if tables else 0)


def verdict(source: Rows, target: Rows, merging: Merging) -> TableVerdict:
    """As a comparison comes to it, without the servers and the shuffle."""
    counts, merged = Counter[What](), 0
    for key in {key for key, _, _ in source + target}:
        there, here = held(source, key, merging), held(target, key, merging, tables=False)
        merged += there.merged(merging)
        what = judge(there, here, merging)
        if what is not None:
            counts[what] += 1
    numbers = (counts[what] for what in (What.MISSING, What.EXTRA, What.DIFFERENT))
    return TableVerdict("s.t", "s.t", len(source), len(target), *numbers, merged=merged)


def multiset(side: Rows) -> Counter[tuple[int, bytes]]:
    return Counter((key, said) for key, said, _ in side)


@given(rows, rows)
def test_without_merging_sides_agree_if_they_have_the_same_rows_and_else_not(source, target):
    found = verdict(source, target, Merging.NONE)
    assert found.equal == found.agrees == (multiset(source) == multiset(target))


@given(rows, rows)
def test_rows_without_a_key_agree_if_each_is_there_as_often_and_else_not(source, target):
    # All that a row says is its key then.
    whole = [
        [(10 * key + said[0], said, table) for key, said, table in s] for s in (source, target)
    ]
    found = verdict(whole[0], whole[1], Merging.COUNTED)
    assert found.equal == found.agrees == (multiset(source) == multiset(target))
    one, other = map(multiset, (source, target))
    assert found.missing == len(one.keys() - other.keys())
    assert found.extra == len(other.keys() - one.keys())
    assert found.different == sum(one[row] != other[row] for row in one.keys() & other.keys())


@given(rows)
def test_a_side_agrees_with_itself_in_any_order(source):
    assert verdict(source, source[::-1], Merging.NONE).equal


@pytest.mark.parametrize("merging", Merging)
@given(rows, rows)
def test_equal_is_said_of_equal_rows_only_whatever_may_be_merged(merging, source, target):
    found = verdict(source, target, merging)
    if found.equal:
        assert multiset(source) == multiset(target)
        assert found.source_rows == found.target_rows
    if found.agrees:
        assert found.source_rows == found.target_rows + found.merged
        assert {key for key, _, _ in source} == {key for key, _, _ in target}
        assert set(multiset(target)) <= set(multiset(source))


@given(rows)
def test_rows_of_several_tables_may_be_one_row_and_rows_of_one_table_may_not(source):
    last = {key: (key, said, 0) for key, said, _ in source}
    target = list(last.values())
    assert verdict(source, target, Merging.ROWS).agrees
    once = Counter((key, table) for key, _, table in source)
    distinct = max(once.values(), default=1) == 1
    assert verdict(source, target, Merging.TABLES).agrees == distinct


def test_numbers_of_rows_that_do_not_agree_are_never_equal():
    assert not TableVerdict("s.t", "s.t", 4, 3, 0, 0, 0).agrees
    assert not TableVerdict("s.t", "s.t", 4, 3, 0, 0, 0, merged=2).agrees
    assert TableVerdict("s.t", "s.t", 4, 3, 0, 0, 0, merged=1).agrees
    assert not TableVerdict("s.t", "s.t", 4, 3, 0, 0, 0, merged=1).equal


def test_another_form_of_a_row_is_as_right():
    one = Held(1, (b"a",), frozenset({b"A"}))
    assert judge(one, Held(1, (b"A",)), Merging.NONE) is None
    assert judge(one, Held(1, (b"b",)), Merging.NONE) is What.DIFFERENT
    assert judge(one, Held(2, (b"A", b"A")), Merging.NONE) is What.DIFFERENT
