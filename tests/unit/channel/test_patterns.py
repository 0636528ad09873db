"""The patterns of `from` and `to`."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.channel.names.patterns import (
    PatternError,
    escape,
    index_problem,
    parse_from,
    parse_index_target,
    parse_table_target,
)

# Few letters, so that patterns and names meet; the special ones among them.
NAMES = st.text(st.sampled_from("ab1.*?[]\\-_é"), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("pattern", "name", "carried"),
    [
        ("shop.orders", ("shop", "orders"), ()),
        ("shop.orders", ("shop", "Orders"), None),
        ("shop.orders", ("shop", "orders2"), None),
        ("*.orders", ("shop", "orders"), ("shop",)),
        ("shop.*", ("shop", ""), ("",)),
        ("shop.o*s", ("shop", "os"), ("",)),
        ("shop.*_*", ("shop", "a_b_c"), ("a", "b_c")),
        ("shop.order_?", ("shop", "order_1"), ("1",)),
        ("shop.order_?", ("shop", "order_12"), None),
        ("shop.t[1-128]", ("shop", "t128"), ("128",)),
        ("shop.t[1-128]", ("shop", "t129"), None),
        ("shop.t[1-128]", ("shop", "t0"), None),
        ("shop.t[1-128]", ("shop", "t01"), None),
        ("shop.t[001-128]", ("shop", "t001"), ("001",)),
        ("shop.t[001-128]", ("shop", "t1"), None),
        ("shop.t[08-100]", ("shop", "t09"), ("09",)),
        ("shop.t[08-100]", ("shop", "t100"), ("100",)),
        ("shop.t[0-9]", ("shop", "t٣"), None),  # a digit, but not one of ours
        ("shop.*[1-9]", ("shop", "a12"), ("a1", "2")),  # the range decides where * ends
        ("shop.[1-9][1-9]", ("shop", "12"), ("1", "2")),
        ("a\\.b.c", ("a.b", "c"), ()),
        ("a\\.b.c", ("aXb", "c"), None),
        ("a.b\\*", ("a", "b*"), ()),
        ("a.b\\*", ("a", "bc"), None),
        ("a.b\\\\*", ("a", "b\\x"), ("x",)),
        ("a.*", ("a", "x.y"), ("x.y",)),
        ("a.*", ("a", "x\ny"), ("x\ny",)),
    ],
)
def test_matching(pattern, name, carried):
    assert parse_from(pattern).match(*name) == carried


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("orders", "must be schema.table"),
        ("a.b.c", "must be schema.table"),
        ("a\\.b", "must be schema.table"),
        ("", "must be schema.table"),
        (".b", "must not leave a name empty"),
        ("a.", "must not leave a name empty"),
        ("a.b\\", "must not end with a backslash"),
        ("a.b[", "must write a range of numbers"),
        ("a.b[1]", "must write a range of numbers"),
        ("a.b[a-z]", "must write a range of numbers"),
        ("a.b[9-1]", "must not have the range [9-1]"),
        ("a.b\0", "must not leave a name empty"),
        ("mysql.user", "must not name a system schema"),
        ("RETL.xdual", "must not name a system schema"),
        ("Information_Schema.*", "must not name a system schema"),
    ],
)
def test_malformed(pattern, reason):
    with pytest.raises(PatternError, match=f"^{re.escape(reason)}"):
        parse_from(pattern)


@pytest.mark.parametrize(
    ("pattern", "to", "name", "target"),
    [
        ("s.*", "t", ("s", "x"), ("s", "t")),
        ("s.*", "d.*", ("s", "x"), ("d", "x")),
        ("s_*.t_*", "d_*.u_*", ("s_1", "t_2"), ("d_1", "u_2")),
        ("s_*.t_*", "all.u_*_*", ("s_1", "t_2"), ("all", "u_1_2")),
        ("s.t[01-16]", "u*", ("s", "t07"), ("s", "u07")),
        ("s.t", "a\\.b.c\\*", ("s", "t"), ("a.b", "c*")),
    ],
)
def test_targets(pattern, to, name, target):
    source = parse_from(pattern)
    carried = source.match(*name)
    assert carried is not None
    assert parse_table_target(to, source).fill(name[0], carried) == target


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ("d.*_*", "has 2 * where `from` has 1 wildcards"),
        ("a.b.c", "must be schema.table or table"),
        ("x?", "must not have ? in it"),
        ("x[1-2]", "must not have [ in it"),
        ("retl.x", "must not name a system schema"),
        ("a.", "must not leave a name empty"),
    ],
)
def test_malformed_targets(to, reason):
    with pytest.raises(PatternError, match=f"^{re.escape(reason)}"):
        parse_table_target(to, parse_from("s.*"))


def test_indexes():
    source = parse_from("s.t_*")
    assert parse_index_target("logs.t-*", source).fill("", ("7",)) == ("", "logs.t-7")
    assert parse_index_target("logs", source).fill("", ("7",)) == ("", "logs")
    with pytest.raises(PatternError, match="lower case"):
        parse_index_target("Logs", source)
    with pytest.raises(PatternError, match="has 2"):
        parse_index_target("a*b*", source)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("orders", ""),
        ("a.b-c_d+1", ""),
        ("é", ""),
        ("Orders", "lower case"),
        ("a b", "a space"),
        ("a/b", "/"),
        ("a:b", ":"),
        ('a"<>|,#', '" # , < > |'),
        ("-a", "start with"),
        ("_a", "start with"),
        ("+a", "start with"),
        ("", "index name"),
        (".", "index name"),
        ("..", "index name"),
        ("é" * 128, "255 bytes"),
        ("a" * 255, ""),
    ],
)
def test_names_of_indexes(name, part):
    reason = index_problem(name)
    assert part in reason
    assert bool(reason) == bool(part)


@given(NAMES, NAMES)
def test_an_escaped_name_stands_for_itself_only(schema, table):
    pattern = parse_from(f"{escape(schema)}.{escape(table)}")
    assert pattern.exact == (schema, table)
    assert pattern.match(schema, table) == ()
    assert pattern.match(schema, table + "a") is None


@given(st.lists(st.sampled_from(["a", "b", "1", "*", "?", "[1-11]", "[01-11]"]), max_size=5), NAMES)
def test_matching_is_what_trying_everything_gives(parts, name):
    pattern = parse_from("s." + ("".join(parts) or "a"))
    carried = pattern.match("s", name)
    assert (carried is not None) == _matches(parts or ["a"], name)
    if carried is not None:
        texts = iter(carried)
        assert name == "".join(p if p in {"a", "b", "1"} else next(texts) for p in parts or ["a"])


def _matches(parts, name):
    """Every way to cut the name into as many pieces as there are parts."""
    for cuts in itertools.combinations_with_replacement(range(len(name) + 1), len(parts) - 1):
        edges = [0, *cuts, len(name)]
        pieces = [name[a:b] for a, b in itertools.pairwise(edges)]
        if all(itertools.starmap(_fits, zip(parts, pieces, strict=True))):
            return True
    return False


def _fits(part, piece):
    if part == "*":
        return True
    if part == "?":
        return len(piece) == 1
    if part == "[1-11]":
        return piece in {str(n) for n in range(1, 12)}
    if part == "[01-11]":
        return piece in {f"{n:02}" for n in range(1, 12)}
    return part == piece


def test_many_stars_end_soon():
    pattern = parse_from("s." + "*a" * 20 + "b")
    assert pattern.match("s", "a" * 64) is None
