"""Which groups tables are in, and which patterns have tables in common."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.channel.names.overlaps import overlap
from setl.channel.names.patterns import parse_from
from setl.channel.rules.groups import wrong_groups

MYSQL = {"type": "mysql"}


def problems(*tables, target=MYSQL):
    return list(wrong_groups(tables, target))


def entry(source, group=None, to=None):
    return {"from": source, **({"group": group} if group else {}), **({"to": to} if to else {})}


def test_entries_with_the_same_from_agree_in_their_group():
    assert not problems(entry("s.t", "g"), entry("s.t", "g", "u"))
    [(path, text)] = problems(entry("s.t", "g"), entry("s.t", "h", "u"))
    assert path == ("tables", 1, "group")
    assert text == "puts a table in two groups: tables[0] has it in `g`"
    [(path, text)] = problems(entry("s.t", "g"), entry("s.t", None, "u"))
    assert (path, text) == (("tables", 1), "puts a table in two groups: tables[0] has it in `g`")
    [(path, text)] = problems(entry("s.t"), entry("s.t", "g", "u"))
    assert text == "puts a table in two groups: tables[0] has it in no group"
    # The other spelling stands for the same table.
    assert problems(entry("s.t", "g"), entry("s.\\t", "h", "u"))


def test_an_exact_name_decides_for_its_table():
    assert not problems(entry("s.*", "g"), entry("s.t"))
    assert not problems(entry("s.t", "h"), entry("s.*", "g"))


def test_a_wildcard_must_not_claim_tables_of_an_earlier_one():
    assert not problems(entry("s.order_*", "g"), entry("s.*"))
    assert not problems(entry("s.order_*", "g"), entry("s.item_*", "h"))
    [(path, text)] = problems(entry("s.*"), entry("s.order_*", "g"))
    assert path == ("tables", 1, "group")
    assert text == (
        "puts tables in a group that go by tables[0], which comes first: tables[0] has them in"
        " no group"
    )
    [(_, text)] = problems(entry("s.*_items", "g"), entry("s.order_*", "h"))
    assert text.endswith("tables[0] has them in `g`")


def test_one_table_takes_rows_of_one_group():
    assert not problems(entry("s.a", "g", "s.all"), entry("s.b", "g", "s.all"))
    [(path, text)] = problems(entry("s.a", "g", "s.all"), entry("s.b", None, "all"))
    assert path == ("tables", 1)
    assert text == (
        "brings rows into s.all as tables[0] does, but its tables are not in the same group"
    )
    assert problems(entry("s.all"), entry("s.b_*", "g", "all"))
    assert not problems(entry("s.a", "g", "all"), entry("r.b", None, "all"))
    # An index has no transactions, and its rows have ids of their own.
    index = {"type": "elasticsearch"}
    assert not problems(entry("s.a", "g", "all"), entry("s.b", None, "all"), target=index)


@pytest.mark.parametrize(
    "table", [{}, {"from": 3}, {"from": "${X}"}, {"from": "s"}, {"from": "s.t", "group": 5}]
)
def test_what_is_wrong_elsewhere_is_passed_over(table):
    assert not problems(table, entry("s.t", "g"), {**table, "to": 4})


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("s.t", "s.t", True), ("s.t", "s.u", False), ("s.t", "r.t", False), ("s.*", "*.t", True),
        ("s.a*", "s.*b", True), ("s.a*", "s.b*", False), ("s.a*c", "s.ab", False),
        ("s.?", "s.ab", False), ("s.??", "s.a?", True), ("s.*?", "s.a", True),
        ("s.t[1-9]", "s.t10", True), ("s.t[1-9]", "s.tx", False), ("s.t[1-9]", "s.t", False),
        ("s.t[1-9]", "s.*[5-6]", True), ("s.t_[1-9]", "s.t_?x", False),
        ("s.*a*b*", "s.*b*a*", True), ("s.\\*", "s.x", False), ("s.\\*", "s.*", True),
    ],
)  # fmt: skip
def test_overlapping_patterns(one, other, expected):
    assert overlap(parse_from(one), parse_from(other)) is expected
    assert overlap(parse_from(other), parse_from(one)) is expected


PATTERNS = st.text("ab*?", min_size=1, max_size=5)


@given(PATTERNS, PATTERNS, st.lists(st.text("ab", min_size=1, max_size=6), min_size=5))
def test_patterns_that_match_one_name_overlap(one, other, names):
    first, second = parse_from(f"s.{one}"), parse_from(f"s.{other}")
    both = [
        n for n in names if first.match("s", n) is not None and second.match("s", n) is not None
    ]
    assert overlap(first, second) or not both
