"""What standing verification does next, and what it remembers."""

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from setl.bulk.comparison import What
from setl.bulk.range_comparison import RangeOutcome
from setl.bulk.verdict import KeyDifference, TableVerdict
from setl.model.standing import (
    SAMPLED_TABLES,
    SAMPLES,
    TABLES,
    TableFinding,
    Verification,
    VerificationPass,
)
from setl.run.verification import course
from setl.run.verification.course import Name
from setl.run.verification.figures import verification_figures

HOUR = 3600.0
ORDERS, USERS = Name("shop.orders", "copy.orders"), Name("shop.users", "copy.users")


def verdict(name, missing=0, extra=0, different=0, undecided=0):
    keys = [KeyDifference(str(n), What.MISSING) for n in range(missing)]
    return TableVerdict(
        name.table, name.target, 0, 0, missing, extra, different,
        undecided=undecided, sample_keys=tuple(keys),
    )  # fmt: skip


def compare(state, tables, rows=10, last=None, now=5.0, **found):
    name = Name(state.position.table, state.position.target)
    outcome = RangeOutcome(last, rows, verdict(name, **found))
    found = course.found_in(name, outcome.verdict, now)
    return as_any(course.compared(state, outcome, found, tables, now))


def begun(*args) -> Any:
    """A pass that has begun; its position is known to be there."""
    return course.begun(*args)


def as_any(state) -> Any:
    return state


def test_a_pass_goes_through_the_tables_in_their_order_range_by_range():
    tables = (USERS, ORDERS)
    state = begun(Verification(), tables, 30, 1.0)
    seen = []
    for last in ((10,), None, (b"\xff", "é", None, 1.5), None):
        seen.append((state.position.table, state.position.after))
        state = compare(state, tables, last=last)
    assert seen == [
        ("shop.orders", None),
        ("shop.orders", (10,)),
        ("shop.users", None),
        ("shop.users", (b"\xff", "é", None, 1.5)),
    ]
    assert state.last == VerificationPass(1, 1.0, 5.0, rows=40)
    assert not state.under_way
    assert state.position is None


@pytest.mark.parametrize(
    ("state", "now", "left"),
    [
        (Verification(), 7.0, 0.0),
        (Verification(now=VerificationPass(1, 100.0)), 100.0, 0.0),
        (Verification(now=VerificationPass(1, 100.0, 200.0)), 300.0, HOUR - 200),
        (Verification(now=VerificationPass(1, 100.0, 9000.0)), 9000.0, 0.0),
        (Verification(now=VerificationPass(1, 9000.0, 9000.0)), 5.0, HOUR),
    ],
    ids=["first", "under way", "early", "took longer", "clock set back"],
)
def test_a_pass_begins_so_long_after_the_last_began(state, now, left):
    assert course.seconds_left(state, HOUR, now) == left


def test_it_is_stored_exactly():
    tables = (ORDERS, USERS)
    state = begun(Verification(epoch=7), tables, None, 1.25)
    state = compare(state, tables, last=(2**63, b"\x00\xff", "1.10", "\U0001f600'\"", None))
    state = course.to_repair(
        state, ["load-1"], 3, 100, course.found_in(ORDERS, verdict(ORDERS, 3), 4.0)
    )
    assert Verification.from_json(json.loads(json.dumps(state.to_json()))) == state


def test_what_differs_is_stored_until_a_later_pass_finds_the_table_equal():
    tables = (ORDERS, USERS)
    state = begun(Verification(), tables, None, 1.0)
    state = compare(state, tables, missing=2, different=1)
    assert course.differences(state) == 3
    state = compare(state, tables)
    [stored] = state.findings
    assert (stored.table, stored.missing, stored.different) == ("shop.orders", 2, 1)
    assert state.last.differences == 3
    state = begun(state, tables, None, 2.0)
    assert course.differences(state) == 3, "a pass that has not been there knows no better"
    state = compare(state, tables, last=(1,), extra=1)
    assert course.differences(state) == 3
    state = compare(state, tables, last=None)
    assert course.differences(state) == 1
    state = compare(state, tables)
    state = begun(state, tables, None, 3.0)
    state = compare(compare(state, tables), tables)
    assert (state.findings, course.differences(state)) == ((), 0)


def test_a_repaired_range_is_compared_once_more_and_counts_only_what_is_left():
    tables = (ORDERS,)
    state = begun(Verification(), tables, None, 1.0)
    found = course.found_in(ORDERS, verdict(ORDERS, missing=3), 2.0)
    state = as_any(course.to_repair(state, ["load-7"], 3, 50, found))
    assert course.differences(state) == 3, "it is told before it is repaired"
    assert (state.position.after, state.asked) == (None, 3)
    state = compare(state, tables, different=1)
    assert state.now == VerificationPass(1, 1.0, 5.0, rows=10, found=3, repaired=2)
    assert course.differences(state) == state.last.differences == 1
    assert state.repair is None


def test_a_table_that_is_left_out_says_so_and_stores_what_is_known_of_it():
    tables = (ORDERS, USERS)
    state = begun(Verification(), tables, 100, 1.0)
    state = compare(state, tables, last=(5,), extra=2)
    state = as_any(course.left_out(course.failed(state), "no such table", tables, 2.0))
    assert state.position.table == "shop.users"
    state = compare(state, tables)
    [stored] = state.findings
    assert (stored.extra, stored.error) == (2, "no such table")
    assert state.last.tables_left_out == 1
    assert 0 < course.coverage(state) < 1


def test_a_leader_goes_on_with_the_tables_that_there_are_by_now():
    tables = (ORDERS, USERS)
    state = compare(begun(Verification(), tables, None, 1.0), tables, last=(5,))
    assert course.on_the_way(state, tables, 2.0) == state
    later = as_any(course.on_the_way(state, (USERS,), 2.0))
    assert (later.position.table, later.position.after) == ("shop.users", None)
    assert not course.on_the_way(state, (Name("a.a", "b.b"),), 2.0).under_way
    assert not course.begun(Verification(), (), None, 1.0).under_way


def test_tables_that_are_gone_are_not_spoken_of_any_more():
    gone = TableFinding("shop.gone", "copy.gone", missing=4)
    state = begun(Verification(findings=(gone,)), (ORDERS,), None, 1.0)
    assert course.differences(state) == 4
    assert course.differences(compare(state, (ORDERS,))) == 0


def test_what_is_stored_is_bounded_however_much_differs():
    tables = [Name(f"shop.t{n:04}", "é" * 10_000 + str(n)) for n in range(TABLES + 5)]
    state = begun(Verification(), tables, None, 1.0)
    while state.under_way:
        for last in (("é" * 3072,), None):
            state = compare(state, tables, last=last, missing=SAMPLES + 1)
    assert len(state.findings) == TABLES
    assert sum(bool(found.rows) for found in state.findings) == SAMPLED_TABLES
    assert state.unnamed_tables == 5
    assert course.differences(state) == 2 * (SAMPLES + 1) * len(tables)
    assert len(json.dumps(state.to_json(), ensure_ascii=False).encode()) < 900_000


def test_coverage_is_that_of_rows_and_whole_only_at_the_end():
    tables = (ORDERS,)
    state = begun(Verification(), tables, 40, 1.0)
    assert course.coverage(state) == 0.0
    state = compare(state, tables, last=(1,))
    assert course.coverage(state) == 0.25
    state = compare(state, tables, rows=100, last=(2,))
    assert course.coverage(state) < 1, "the estimate was too low"
    assert course.coverage(compare(state, tables)) == 1.0


def test_the_age_counts_from_the_last_whole_pass_and_before_that_from_the_first_begin():
    assert verification_figures(Verification(), HOUR, 50.0).age is None
    state = begun(Verification(), (ORDERS,), None, 10.0)
    assert verification_figures(state, HOUR, 50.0).age == 40.0
    state = compare(state, (ORDERS,), now=60.0)
    reported = verification_figures(state, HOUR, 100.0)
    assert (reported.state, reported.age, reported.next_at) == ("waiting", 40.0, 10.0 + HOUR)
    state = begun(state, (ORDERS,), None, 4000.0)
    assert verification_figures(state, HOUR, 4000.0).age == 3940.0


def test_the_rate_holds_on_the_average_whatever_the_ranges():
    draw = random.Random(5)
    passed = rows = 0.0
    for _ in range(200):
        size, seconds = draw.randint(0, 5000), draw.random()
        rows += size
        passed += seconds + course.pause_after(size, seconds, 1000)
        assert rows <= 1000 * passed + 1e-6


def test_another_release_may_have_written_what_cannot_be_read():
    good = replace(Verification(), epoch=3).to_json()
    for wrong in ({}, {**good, "now": 5}, {**good, "epoch": "x"}, {**good, "findings": [{}]}):
        with pytest.raises((KeyError, TypeError, ValueError)):
            Verification.from_json(wrong)
