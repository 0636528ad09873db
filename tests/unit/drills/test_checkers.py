"""Each checker passes what is right, and notices what it is there for."""

from collections import Counter

import pytest

from setl.codec.dts.relayed import HEARTBEAT, LAST, RelayPosition, RelayTransaction
from setl.systems.mysql.stored.marks import mark_id
from setl_drills.binlog import Transaction
from setl_drills.checkers import (
    Advance,
    check_bank,
    check_documents,
    check_epochs,
    check_equal,
    check_flat,
    check_relay_positions,
    check_set,
    check_stream,
    count_echoes,
    longest_gap,
    longest_silence,
    median,
    outage_until_epoch,
)

KEY = "c/ab"
OTHER = "c/ba"


def load(epoch, *, pipeline=KEY, slot=0, rows=None, position="f.1:4"):
    info = f"{epoch}.7.{slot}.123.abcdef"
    return Transaction(
        position, marks=[(mark_id(pipeline, slot), 5, info)], rows=Counter(rows or {})
    )


def fence(epoch, pipeline=KEY):
    return Transaction("f.1:4", fences=[(pipeline, epoch)])


def stored(epoch, pipeline=KEY):
    return Transaction("f.1:4", checkpoints=[(pipeline, epoch)])


def users(rows):
    return Transaction("f.1:4", rows=Counter(rows))


@pytest.mark.parametrize(
    ("found", "lost", "unexpected"),
    [({1, 2, 3}, set(), set()), ({1, 3, 9}, {2}, set()), ({1, 2, 3, 4}, set(), {4})],
)
def test_a_set(found, lost, unexpected):
    """9 is of a commit that nobody acknowledged: it may be there or not."""
    verdict = check_set({1, 2, 3}, {9}, found)
    assert (verdict.lost, verdict.unexpected) == (lost, unexpected)


def test_the_bank():
    assert check_bank({1: 5, 2: 15}, 2, 10) == []
    assert "19" in check_bank({1: 4, 2: 15}, 2, 10)[0]
    assert "1 accounts" in check_bank({1: 20}, 2, 10)[0]


def test_checksums():
    assert check_equal({"t": 1}, {"t": 1}) == []
    assert check_equal({"t": 1}, {"t": 2})
    assert check_equal({"t": 1, "u": 1}, {"t": 1})


def test_documents():
    rows = {"1": {"v": "a"}, "2": {"v": "b"}}
    assert check_documents(rows, rows) == ([], [], [])
    assert check_documents(rows, {"1": {"v": "a"}}) == (["2"], [], [])
    assert check_documents({"1": {"v": "a"}}, rows) == ([], ["2"], [])
    assert check_documents(rows, {**rows, "2": {"v": "c"}}) == ([], [], ["2"])


@pytest.mark.parametrize(
    ("stream", "echoes"),
    [
        ([users({("t", "a"): 3}), load(1, rows={("t", "b"): 4})], 0),
        ([load(1, rows={("t", "a"): 2, ("t", "b"): 1})], 2),  # a pipeline brings rows home
        ([users({("t", "b"): 1})], 1),  # a row of the other site, without a mark
    ],
)
def test_echoes(stream, echoes):
    assert count_echoes(stream, "a") == echoes


@pytest.mark.parametrize(
    ("stream", "problem"),
    [
        ([fence(0), fence(5), load(5), stored(5), load(5, slot=1), fence(9), load(9)], ""),
        # Other pipelines do not count.
        ([fence(9), load(9), load(5, pipeline=OTHER), fence(5, OTHER), stored(5, OTHER)], ""),
        ([fence(5), load(5), fence(9), load(9), load(5)], "epoch 5 after epoch 9"),
        ([fence(5), load(5), fence(9), load(5)], "epoch 5 while the fence is at 9"),
        ([fence(5), load(9)], "epoch 9"),
        ([fence(5), load(5), fence(9), stored(5)], "epoch 5"),
        ([fence(9), fence(5)], "fell from 9 to 5"),
    ],
)
def test_epochs(stream, problem):
    found = check_epochs(stream, KEY)
    assert bool(found) == bool(problem)
    assert problem in "".join(found)


@pytest.mark.parametrize(
    ("found", "lost", "repeated", "moved"),
    [
        ("abcb", 0, 0, False),
        ("abc", 1, 0, False),
        ("abcbb", 0, 1, False),
        ("abcbx", 0, 1, False),
        ("acbb", 0, 0, True),
        ("acxx", 2, 2, False),
        ("", 4, 0, False),
    ],
)
def test_a_stream(found, lost, repeated, moved):
    verdict = check_stream("abcb", found)
    assert (verdict.lost, verdict.repeated, verdict.moved) == (lost, repeated, moved)


def at(begin, ordinal, generation=1, file="binlog.000009"):
    return RelayPosition(RelayTransaction(generation, file, begin), ordinal)


def test_positions_that_grow():
    assert not check_relay_positions([])
    assert not check_relay_positions([
        at(4, HEARTBEAT), at(4, HEARTBEAT), at(4, 0), at(4, 70), at(4, LAST),
        at(900, 0), at(900, 33), at(4, 0, file="binlog.000010"),
        at(4, HEARTBEAT, generation=2, file="binlog.000001"),
    ])  # fmt: skip


@pytest.mark.parametrize(
    "positions",
    [
        [at(4, 70), at(4, 70)],
        [at(4, LAST), at(4, 0)],
        [at(900, HEARTBEAT), at(4, LAST)],
        [at(4, 0, generation=2), at(900, 0)],
        [at(4, 0, file="binlog.000010"), at(900, 0)],
    ],
)
def test_positions_that_do_not(positions):
    assert len(check_relay_positions(positions)) == 1


def test_an_outage_ends_with_the_first_load_of_a_newer_epoch():
    seen = [Advance(10.0, 5), Advance(10.4, 5), Advance(15.0, 9), Advance(15.1, 9)]
    assert outage_until_epoch(seen, 10.2, 5) == (pytest.approx(4.8), 9)
    assert outage_until_epoch(seen[:2], 10.2, 5) is None  # what the dying leader still commits


def test_silences_count_from_the_fault_and_gaps_alone():
    seen = [Advance(9.0, 5), Advance(10.3, 5), Advance(16.0, 5), Advance(16.1, 5)]
    assert longest_silence(seen, 10.0, 16.1) == pytest.approx(6.0)
    seen = [Advance(10.0, 5), Advance(12.0, 5), Advance(13.5, 9)]
    assert longest_gap(seen, 10.0, 13.5) == pytest.approx(2.0)
    assert [median([]), median([3.0, 1.0, 2.0]), median([1.0, 2.0])] == [None, 2.0, 1.0]


def test_flat_and_not_flat():
    assert check_flat([100, 101, 99, 100, 102, 100], factor=1.2, allowance=0)[0]
    growing = [100, 110, 120, 130, 140, 150]
    assert check_flat(growing, factor=1.2, allowance=0) == (False, 100, 140)
    assert check_flat(growing, factor=1.2, allowance=50)[0]
    assert check_flat([1, 100], factor=1.0, allowance=0)[0]  # too few samples prove nothing
