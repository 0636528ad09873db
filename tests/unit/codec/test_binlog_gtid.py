import struct
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.codec.binlog.transactions.gtid import (
    MariadbGtids,
    MysqlGtids,
    gtids_beyond,
    mariadb_missing,
    same_gtids,
)
from setl.errors import FatalError
from tests.unit.codec.binlog_events import EventWriter

A = "00000000-0000-0000-0000-00000000000a"
B = "00000000-0000-0000-0000-00000000000b"


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("", ""),
        (f"{A}:1-5", f"{A}:1-5"),
        (f"{A}:5", f"{A}:5"),
        (f"{A}:1-3:4-5:9", f"{A}:1-5:9"),
        (f"{A}:9:1-3:2-4", f"{A}:1-4:9"),
        (f"{B}:1,\n{A.upper()}:2-3", f"{A}:2-3,{B}:1"),
        (f"{A}:tag:1-5", f"{A}:tag:1-5"),
        (
            f"{A}:1-3:9:nightly_2:4:1-3:Other:7,\n{B}:2",
            f"{A}:1-3:9,{A}:nightly_2:1-4,{A}:other:7,{B}:2",
        ),
    ],
)
def test_mysql_sets_are_read_and_written(text, normal):
    assert str(MysqlGtids(text)) == normal
    assert str(MysqlGtids(normal)) == normal


@pytest.mark.parametrize(
    "text", [f"{A}:1-", f"{A}:1-5:9tag:3", f"{A}:tag-x:1", f"{A}:{'t' * 33}:1"]
)
def test_what_is_no_set_of_mysql(text):
    with pytest.raises(FatalError, match="not a set of GTIDs"):
        MysqlGtids(text)


def test_numbers_with_and_without_a_tag_are_apart():
    gtids = MysqlGtids(f"{A}:1-3:tag:1-4")
    gtids.add(f"{A}:4")
    gtids.add(f"{A}:tag:7")
    assert str(gtids) == f"{A}:1-4,{A}:tag:1-4:7"
    assert same_gtids(str(gtids), f"{A.upper()}:tag:7:1-4, {A}:1-4")
    assert not same_gtids(f"{A}:1-4", f"{A}:tag:1-4")


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 6)), max_size=30))
def test_mysql_sets_hold_exactly_what_was_added(ranges):
    gtids = MysqlGtids()
    expected = set()
    for first, more in ranges:
        gtids.add_interval(A, first, first + more)
        expected |= set(range(first, first + more + 1))
    held = []
    for part in str(gtids).split(":")[1:]:
        first, _, last = part.partition("-")
        held += range(int(first), int(last or first) + 1)
    assert held == sorted(expected)
    # No two neighbours are left apart.
    ends = [int(p.partition("-")[2] or p) for p in str(gtids).split(":")[1:]]
    assert all(e + 1 not in expected for e in ends)


def test_previous_gtids_have_exclusive_ends():
    body = EventWriter.previous_gtids_body({A: [(1, 6), (8, 9)], B: [(3, 4)]})
    assert str(MysqlGtids.from_previous_event(body)) == f"{A}:1-5:8,{B}:3"
    with pytest.raises(ValueError, match="form 2"):
        MysqlGtids.from_previous_event(EventWriter.previous_gtids_body({}, form=2))


@pytest.mark.parametrize(
    "text", ["", f"{A}:1-5:8,{B}:3", f"{A}:1-5,{A}:nightly:2-3:9,{B}:{'t' * 32}:7"]
)
def test_a_server_is_reported_what_it_would_tell(text):
    gtids = MysqlGtids(text)
    assert str(MysqlGtids.from_previous_event(gtids.encoded())) == text


def test_previous_gtids_with_tags():
    body = struct.pack("<Q", 1 << 56 | 2 << 8 | 1)
    body += uuid.UUID(A).bytes + b"\0" + struct.pack("<QQQ", 1, 1, 6)
    body += uuid.UUID(A).bytes + b"\x06tag" + struct.pack("<QQQQQ", 2, 1, 2, 5, 7)
    assert str(MysqlGtids.from_previous_event(body)) == f"{A}:1-5,{A}:tag:1:5-6"
    assert MysqlGtids.from_previous_event(body).encoded() == body


def test_mariadb_stores_the_last_of_each_domain():
    gtids = MariadbGtids("2-5-7, 0-1-100")
    assert str(gtids) == "0-1-100,2-5-7"
    gtids.add("0-2-101")
    gtids.add("10-1-1")
    assert str(gtids) == "0-2-101,2-5-7,10-1-1"
    assert str(MariadbGtids()) == ""


def test_gtid_list_events():
    body = struct.pack("<I", 2 | 0x30000000) + struct.pack("<IIQ", 1, 2, 3)
    body += struct.pack("<IIQ", 4, 5, 2**40)
    assert str(MariadbGtids.from_list_event(body)) == f"1-2-3,4-5-{2**40}"


def test_uuids_are_written_as_the_server_does():
    server = uuid.UUID("9D437549-9A4C-11EA-9659-9EFC635AF2AE")
    body = EventWriter.previous_gtids_body({str(server): [(1, 2)]})
    assert str(MysqlGtids.from_previous_event(body)) == "9d437549-9a4c-11ea-9659-9efc635af2ae:1"


@pytest.mark.parametrize(
    ("state", "gtid", "missing"),
    [
        ("0-1-5", "0-1-5", ""),
        ("0-1-6", "0-1-5", ""),
        ("0-1-4", "0-1-5", "0-1-5"),
        # Another server's transaction of that number is another transaction.
        ("0-2-5", "0-1-5", "0-1-5"),
        ("0-1-5,0-2-9", "0-1-5", ""),
        ("0-1-4,0-2-9", "0-1-5", "0-1-5"),
        ("0-1-5,1-1-1", "0-1-5", ""),
        ("0-1-9", "0-1-5, 1-1-1,2-7-3", "1-1-1,2-7-3"),
        ("", "0-1-5", "0-1-5"),
        ("0-1-5", "", ""),
    ],
)
def test_what_a_site_binlog_lacks(state, gtid, missing):
    assert mariadb_missing(state, gtid) == missing


@pytest.mark.parametrize("text", ["3E11FA47-71CA-11E1-9E33-C80AA9429562:1-5", "0-1", "a-b-c"])
def test_what_is_no_gtid_of_mariadb(text):
    with pytest.raises(ValueError):  # noqa: PT011
        mariadb_missing("0-1-5", text)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("", "", True),
        ("0-1-5", "0-1-5", True),
        ("1-1-7, 0-1-5", "0-1-5,1-1-7", True),
        ("0-1-5", "0-2-5", False),
        ("0-1-5", "0-1-5,1-1-1", False),
        ("0-1-5", "", False),
        (f"{A}:1-3:4", f"{A.upper()}:1-4", True),
        (f"{A}:1-3", f"{A}:1-4", False),
    ],
)
def test_whether_gtids_are_the_same(one, other, same):
    assert same_gtids(one, other) is same
    assert same_gtids(other, one) is same


def numbers_of(gtids):
    return {
        (source, number)
        for source, (starts, ends) in gtids._intervals.items()
        for first, last in zip(starts, ends, strict=True)
        for number in range(first, last + 1)
    }


sets = st.sets(st.tuples(st.sampled_from((A, B, f"{A}:tag")), st.integers(1, 30)))


def set_of(pairs):
    gtids = MysqlGtids()
    for source, number in pairs:
        gtids.add(f"{source}:{number}")
    return gtids


@given(sets, sets)
def test_mysql_sets_are_taken_from_each_other_and_joined(one, other):
    first, second = set_of(one), set_of(other)
    assert numbers_of(first.without(second)) == one - other
    assert gtids_beyond(str(first), str(second)) == str(set_of(one - other))
    first.add_all(second)
    assert numbers_of(first) == one | other
    assert numbers_of(second) == other


@pytest.mark.parametrize(
    ("one", "other", "beyond"),
    [
        ("", "", ""),
        ("0-1-5", "", "0-1-5"),
        ("", "0-1-5", ""),
        ("0-1-5", "0-1-5", ""),
        ("0-1-5,3-1-2", "3-1-2,0-1-5", ""),
        ("0-1-6", "0-1-5", "0-1-6"),
        ("0-1-4", "0-1-5", ""),
        ("0-2-5", "0-1-5", "0-2-5"),  # the number was given to another one
        ("0-1-5,3-1-2", "0-1-5", "3-1-2"),
    ],
)
def test_positions_of_mariadb_are_before_or_beyond_each_other(one, other, beyond):
    assert gtids_beyond(one, other) == beyond
