"""Two sites that write one row end equal, whatever they write and whenever it is read."""

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setl.load.conflicts.agreement import Kept
from tests.unit.load.conflicts.two_sites import (
    Policy,
    Site,
    forgotten,
    loaded,
    settled,
    unread,
    written,
)

POLICIES = [Policy(newest, home) for newest in (False, True) for home in (0, 1)]
ROWS = (None, (1, 1), (2, 1), (3, 2))


def ids(policy):
    return f"{'newest' if policy.newest else 'home'}, home {policy.home}"


rows = st.one_of(st.none(), st.tuples(st.integers(1, 3), st.integers(1, 3)))
action = st.one_of(
    st.tuples(st.just("write"), st.integers(0, 1), rows),
    st.tuples(
        st.just("load"), st.integers(0, 1), st.integers(1, 4), st.integers(0, 3), st.booleans()
    ),
)


def done(policy, sites, one):
    number = one[1]
    site, other = sites[number], sites[1 - number]
    if one[0] == "write":
        site = written(site, one[2])
    else:
        site = loaded(policy, number, site, other, one[2], one[3], overdue=one[4])
    return (site, other) if number == 0 else (other, site)


@pytest.mark.parametrize("policy", POLICIES, ids=ids)
@settings(max_examples=500)
@given(rows, st.lists(action, max_size=40))
def test_both_end_equal_and_the_exchange_ends(policy, first, actions):
    sites = (Site(Kept(first)), Site(Kept(first)))
    for one in actions:
        sites = done(policy, sites, one)
    waiting = sum(unread(sites))
    sites, messages = settled(policy, sites)
    assert sites[0].row == sites[1].row
    assert [site.kept.question for site in sites] == ["", ""]
    assert messages <= 2 * waiting + 2


@pytest.mark.parametrize("home", [0, 1])
@settings(max_examples=500)
@given(
    st.lists(st.tuples(st.sampled_from(["write", "load"]), st.integers(0, 1), st.integers(1, 4)))
)
def test_with_clocks_that_agree_the_newest_write_stays(home, actions):
    policy = Policy(True, home)
    first = (0, 0)
    sites = (Site(Kept(first)), Site(Kept(first)))
    newest = first
    for age, (what, number, detail) in enumerate(actions, 1):
        if what == "write":
            newest = (detail, age)
            sites = done(policy, sites, ("write", number, newest))
        else:
            sites = done(policy, sites, ("load", number, detail, 0, False))
    sites, _ = settled(policy, sites)
    assert sites[0].row == sites[1].row == newest


@pytest.mark.parametrize("home", [0, 1])
@pytest.mark.parametrize("age", [4, 5, 6])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_delete_counts_with_the_age_of_its_row_and_wins_over_one_as_new(home, age, order):
    policy, first = Policy(True, home), (1, 5)
    deleting, updating = order
    sites = [Site(Kept(first)), Site(Kept(first))]
    sites[deleting] = written(sites[deleting], None)
    sites[updating] = written(sites[updating], (2, age))
    sites, _ = settled(policy, sites)
    expected = (2, 6) if age == 6 else None
    assert [site.row for site in sites] == [expected, expected]


@pytest.mark.parametrize("home", [0, 1])
@pytest.mark.parametrize("states", [(None, (2, 9)), ((2, 9), None), ((2, 9), (3, 1))])
def test_the_home_site_wins(home, states):
    policy = Policy(False, home)
    sites = tuple(written(Site(Kept((1, 1))), state) for state in states)
    sites, _ = settled(policy, sites)
    assert [site.row for site in sites] == [states[home]] * 2


@pytest.mark.parametrize("home", [0, 1])
def test_of_two_rows_as_new_as_each_other_the_home_sites_stays(home):
    policy, rows = Policy(True, home), ((2, 5), (3, 5))
    sites = tuple(written(Site(Kept((1, 1))), row) for row in rows)
    sites, _ = settled(policy, sites)
    assert [site.row for site in sites] == [rows[home]] * 2


@pytest.mark.parametrize("policy", POLICIES, ids=ids)
def test_a_change_both_made_and_one_took_back(policy):
    """Found by hand: comparing values alone takes both for applied, and they change places."""
    a, b = Site(Kept((5, 5))), Site(Kept((5, 5)))
    a = written(written(a, (7, 7)), (5, 5))
    b = written(b, (7, 7))
    b, a = loaded(policy, 1, b, a, 1), loaded(policy, 0, a, b, 1)
    (a, b), _ = settled(policy, (a, b))
    assert a.row == b.row


@pytest.mark.parametrize("policy", POLICIES, ids=ids)
def test_no_order_of_a_few_writes_and_loads_leaves_them_different(policy):
    """All orders of three writes at one site and two at the other, and of the loads between."""
    start = ((Site(Kept(ROWS[1])), Site(Kept(ROWS[1]))), (3, 2))
    seen, queue, ends = set(), deque([start]), 0
    while queue:
        sites, writes = queue.popleft()
        following = []
        for number in (0, 1):
            if writes[number]:
                left = (writes[0] - (number == 0), writes[1] - (number == 1))
                following += [
                    (done(policy, sites, ("write", number, row)), left)
                    for row in ROWS
                    if row != sites[number].row
                ]
            if unread(sites)[1 - number]:
                following.append((done(policy, sites, ("load", number, 1, 1, False)), writes))
        if not any(unread(sites)):
            ends += 1
            assert sites[0].row == sites[1].row, sites
        for sites_after, left in following:
            place = (forgotten(sites_after), left)
            if place not in seen:
                seen.add(place)
                queue.append((sites_after, left))
    assert ends > 20
    assert len(seen) > 30_000
