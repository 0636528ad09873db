"""Two sites that write one row end as the model says, whatever they write and whenever it is read.

SETL_TEST_CONFLICT_RUNS says how many random histories are run, SETL_TEST_SEED which.
"""

import itertools
import os
import random
from collections import Counter

import pytest

from setl.systems.mysql.conflicts.outcome import MOST_NEWS
from tests.unit.systems.mysql.conflicts.model import outcome
from tests.unit.systems.mysql.conflicts.two_sites import (
    Policy,
    Site,
    exchanged,
    loaded,
    table_read,
    unread,
    written,
)

POLICIES = [Policy(newest, home) for newest in (False, True) for home in (0, 1)]
RUNS = int(os.environ.get("SETL_TEST_CONFLICT_RUNS", "10000"))
SEED = int(os.environ.get("SETL_TEST_SEED", "14"))


def ids(policy):
    return f"{'newest' if policy.newest else 'home'}, home {policy.home}"


def age(row):
    return row[1] is not None, row[1] or 0


def expected(policy, first, sites):
    writes = [site.writes for site in sites]
    return outcome(first, writes, policy.home, age if policy.newest else None)


def checked(policy, first, sites, reported: object = ""):
    """Let the sites read all there is: both end as the model says, and keep nothing."""
    waiting = sum(unread(sites))
    ends, messages = exchanged(policy, sites)
    wanted = expected(policy, first, ends)
    assert [site.row for site in ends] == [wanted, wanted], reported
    assert [site.memory for site in ends] == [None, None], reported
    assert messages <= 2 * waiting + 4, reported
    return wanted


def at(sites, number, row):
    return tuple(written(s, row) if n == number else s for n, s in enumerate(sites))


def read(policy, sites, number, count, redelivered=0, appearing=()):
    there = sites[1 - number]
    one = loaded(policy, number, sites[number], there, count, redelivered, appearing)
    return (one, sites[1]) if number == 0 else (sites[0], one)


def test_random_histories():
    ends = Counter()
    for number in range(RUNS):
        chance = random.Random(SEED * 1_000_000 + number)
        policy = chance.choice(POLICIES)
        first = chance.choice([None, (0, chance.randint(0, 3))])
        sites, writes, busy = (Site(first), Site(first)), chance.randint(1, 8), chance.random()
        while writes:
            site = chance.randrange(2)
            if chance.random() < busy * 0.6:
                row = (chance.randint(1, 2), chance.choice([None, 0, 1, 2, 3]))
                row = chance.choice([None, None, row, row, row])
                writes -= row != sites[site].row
                sites = at(sites, site, row)
            else:
                again, row = chance.choice([0, 0, 3]), (3, chance.choice([None, 0, 1, 2, 3]))
                appearing = chance.choice([(), (), (row,), (row, None), (row, (4, 2))])
                sites = read(policy, sites, site, chance.randint(1, 4), again, appearing)
            busy += 0.01
        ends[checked(policy, first, sites, f"run {number}") is None] += 1
    assert min(ends.values()) > RUNS / 10


def _of_tables(policy, firsts):
    """Which of two rows stays that no client wrote, when tables are read."""
    if None in firsts or firsts[0] == firsts[1]:
        return firsts[0] or firsts[1]
    ages = [age(row) if policy.newest else (True, 0) for row in firsts]
    return firsts[policy.home] if ages[0] == ages[1] else max(firsts, key=age)


def test_tables_that_are_read_while_both_sites_write():
    """In one direction or both, once or again, of rows that differed before.

    A row that a site's clients never wrote and that no load has looked at may differ for ever.
    """
    ends, unwritten = Counter(), 0
    for number in range(RUNS):
        chance = random.Random(SEED * 7_000_000 + number)
        policy = chance.choice(POLICIES)
        firsts = [chance.choice([None, (n, chance.choice([None, 0, 1, 2]))]) for n in (0, 1)]
        sites, writes = (Site(firsts[0]), Site(firsts[1])), chance.randint(0, 5)
        reads = chance.randint(1, 3)
        directions, looked = chance.choice([[0], [1], [0, 1]]), False
        while writes or reads:
            site, what = chance.randrange(2), chance.random()
            if what < 0.2 and writes:
                row = (chance.randint(1, 2), chance.choice([None, 0, 1, 2, 3]))
                row = chance.choice([None, None, row, row, row])
                writes -= row != sites[site].row
                sites = at(sites, site, row)
            elif what < 0.4 and reads:
                site = chance.choice(directions)
                there = sites[1 - site]
                looked = looked or (there.row is not None and there.memory is None)
                one = table_read(policy, site, sites[site], sites[1 - site])
                sites = (one, sites[1]) if site == 0 else (sites[0], one)
                reads -= 1
            else:
                sites = read(policy, sites, site, chance.randint(1, 4), chance.choice([0, 0, 3]))
        ends_now, _ = exchanged(policy, sites)
        assert [site.memory for site in ends_now] == [None, None], number
        rows = [site.row for site in ends_now]
        if any(site.writes for site in ends_now):
            wanted = expected(policy, None, ends_now)
        elif looked:
            wanted, unwritten = _of_tables(policy, firsts), unwritten + 1
        else:
            continue  # there was nothing to read
        if chance.random() < 0.5 and rows == [wanted, wanted]:
            # Reading once more says nothing new.
            again = table_read(policy, 0, ends_now[0], ends_now[1])
            assert again == ends_now[0], number
        assert rows == [wanted, wanted], (number, policy, firsts, sites)
        ends[wanted is None] += 1
    assert min(ends.values()) > RUNS / 20
    assert unwritten > RUNS / 20


@pytest.mark.parametrize("policy", POLICIES, ids=ids)
def test_every_order_of_a_few_writes_and_loads(policy):
    """Two writes at one site and one at the other, a delete and a clock that goes back included."""
    rows, first = (None, (1, 1), (3, 2)), (0, 1)
    count, ends = 0, set()
    for plan in set(itertools.permutations(["w0", "w0", "w1", "l0", "l0", "l1", "l1"])):
        for values in itertools.product(rows, repeat=3):
            sites, following = (Site(first), Site(first)), iter(values)
            for what, site in plan:
                number = int(site)
                if what == "w":
                    sites = at(sites, number, next(following))
                else:
                    sites = read(policy, sites, number, 1)
            count += 1
            ends.add(checked(policy, first, sites, (plan, values)))
    assert ends >= {*rows}
    assert count > 5_000


@pytest.mark.parametrize("policy", POLICIES, ids=ids)
@pytest.mark.parametrize("appearing", [((7, 3),), ((7, 6),), ((7, 9),), ((7, 3), None, (8, 1))])
def test_a_row_that_appears_while_a_load_leaves_it_missing(policy, appearing):
    """Nothing locks a row that is not there, so a client may insert one before the load commits."""
    first, appeared = (1, 6), 0
    for plan in set(itertools.permutations(["w0", "w1", "w1", "l0", "l0", "l1", "l1"])):
        for during in (0, 1):
            sites, loads = (Site(first), Site(first)), itertools.count()
            following = (iter([None]), iter([(2, 9), None]))
            for what, site in plan:
                number = int(site)
                if what == "w":
                    sites = at(sites, number, next(following[number]))
                    continue
                meanwhile = appearing if number == 0 and next(loads) == during else ()
                before = len(sites[0].writes)
                sites = read(policy, sites, number, 9, appearing=meanwhile)
                appeared += len(sites[0].writes) > before
            checked(policy, first, sites, (plan, during))
    assert appeared > 200


@pytest.mark.parametrize("policy", POLICIES, ids=ids)
def test_writes_that_saw_each_other_end_with_the_last(policy):
    """Also of an older clock, also a row that was deleted before."""
    for rows in itertools.permutations([(1, 3), (2, 1), None, (3, None), (1, 1)]):
        sites = (Site((0, 2)), Site((0, 2)))
        for number, row in enumerate(rows):
            sites = at(sites, number % 2, row)
            sites, _ = exchanged(policy, sites)
            assert [site.row for site in sites] == [row, row]


@pytest.mark.parametrize("home", [0, 1])
@pytest.mark.parametrize("age_of", [4, 5, 6])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_delete_counts_with_the_age_of_its_row_and_wins_over_one_as_new(home, age_of, order):
    policy, first = Policy(True, home), (1, 5)
    deleting, updating = order
    sites = at((Site(first), Site(first)), deleting, None)
    sites = at(sites, updating, (2, age_of))
    assert checked(policy, first, sites) == ((2, 6) if age_of == 6 else None)


@pytest.mark.parametrize("writes", [((1, 30), None), ((1, 10), (1, 30), None)])
@pytest.mark.parametrize("home", [0, 1])
def test_an_older_change_under_way_does_not_bring_a_deleted_row_back(writes, home):
    policy, first = Policy(True, home), (0, 1)
    for loads in itertools.chain.from_iterable(itertools.product("ab", repeat=n) for n in range(4)):
        for plan in set(itertools.permutations(["0"] * len(writes) + ["1", *loads])):
            other = plan.index("1")
            last = max(i for i, one in enumerate(plan) if one == "0")
            if "b" in plan[:other] or "a" in plan[:last]:
                continue  # one has seen the other
            sites, following = (Site(first), Site(first)), iter(writes)
            for one in plan:
                if one in "01":
                    row = next(following) if one == "0" else (2, 20)
                    sites = at(sites, int(one), row)
                else:
                    sites = read(policy, sites, "ab".index(one), 1)
            assert checked(policy, first, sites, plan) is None


@pytest.mark.parametrize("home", [0, 1])
@pytest.mark.parametrize("states", [(None, (2, 9)), ((2, 9), None), ((2, 9), (3, 1))])
def test_the_home_site_wins(home, states):
    policy, first = Policy(False, home), (1, 1)
    sites = tuple(written(Site(first), state) for state in states)
    assert checked(policy, first, sites) == states[home]


@pytest.mark.parametrize("home", [0, 1])
def test_of_two_rows_as_new_as_each_other_the_home_sites_stays(home):
    policy, first, rows = Policy(True, home), (1, 1), ((2, 5), (3, 5))
    sites = tuple(written(Site(first), row) for row in rows)
    assert checked(policy, first, sites) == rows[home]


@pytest.mark.parametrize("policy", POLICIES, ids=ids)
def test_a_change_both_made_and_one_took_back(policy):
    """Comparing rows alone would take both for applied, and they would change places."""
    first = (5, 5)
    sites = at(at((Site(first), Site(first)), 0, (7, 7)), 0, first)
    sites = at(sites, 1, (7, 7))
    checked(policy, first, read(policy, read(policy, sites, 1, 1), 0, 1))


def test_a_row_that_nobody_wrote_differently_becomes_that_of_the_next_write():
    for policy in POLICIES:
        sites = at((Site((1, 1)), Site((2, 9))), 0, (3, 3))
        ends, _ = exchanged(policy, sites)
        assert [site.row for site in ends] == [(3, 3), (3, 3)]


@pytest.mark.parametrize("number", range(10))
def test_a_row_that_gets_lower_and_lower_at_both_sites(number):
    """With a memory of 32 values, the sites ended different for the last of them."""
    choose = random.Random(number)
    policy, first, values, writes = Policy(True, choose.randint(0, 1)), (0, 999), [900, 900], 0
    sites = (Site(first), Site(first))
    for _ in range(choose.randint(2, 6)):
        side = choose.randrange(2)
        if choose.random() < 0.65:
            for _ in range(choose.choice([1, 2, 20, 34, 40])):
                writes += 1
                values[side] -= choose.randint(1, 3)
                sites = at(sites, side, (writes, values[side]))
        else:
            sites = read(policy, sites, side, choose.choice([1, 5, 30, 50, 100]))
    checked(policy, first, sites)


def test_the_memory_of_a_busy_row_is_bounded():
    policy, first = Policy(True, 0), (0, 3 * MOST_NEWS)
    sites = (Site(first), Site(first))
    for number in range(MOST_NEWS + 50):
        sites = at(sites, 0, (number, 2 * MOST_NEWS - number))
        sites = read(policy, sites, 1, 1)
    assert sites[1].memory is not None
    assert len(sites[1].memory.theirs.news) == MOST_NEWS
    checked(policy, first, sites)
