"""Whether a position of a binlog surely lies behind a pipeline."""

import pytest

from setl.model.position import BinlogOrigin, BinlogPosition, KafkaPosition
from setl.systems.mysql.binlog.reached import binlog_passed

FILE, ANEW = BinlogOrigin("a", 1, 1_700_000_000), BinlogOrigin("a", 1, 1_800_000_000)
A, B = BinlogOrigin("a"), BinlogOrigin("b")
U, V = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"


def at(file, offset, gtid="", origin: BinlogOrigin | None = A):
    return BinlogPosition(file, offset, gtid, origin)


@pytest.mark.parametrize(
    ("reached", "position", "passed"),
    [
        # By offset, on one server only.
        (at("b.1", 100), at("b.1", 100), True),
        (at("b.1", 99), at("b.1", 100), False),
        (at("b.10", 4), at("b.9", 900), True),
        (at("b.2", 500, origin=B), at("b.1", 100), False),
        (at("b.2", 500, origin=None), at("b.1", 100), False),
        # By GTID, wherever they lie.
        (at("b.1", 4, f"{U}:1-9", B), at("z.7", 900, f"{U}:1-9"), True),
        (at("b.1", 4, f"{U}:1-9", B), at("", 0, f"{U}:7"), True),
        (at("b.1", 4, f"{U}:1-9", B), at("", 0, f"{U}:10"), False),
        (at("b.1", 4, f"{U}:1-9,{V}:1-3"), at("", 0, f"{V}:2-3,{U}:1"), True),
        (at("b.1", 4, f"{U}:1-9"), at("", 0, f"{V}:1"), False),
        (at("b.1", 4, f"{U}:1-9:tag:1-4"), at("", 0, f"{U}:tag:4"), True),
        (at("b.1", 4, f"{U}:1-9:tag:1-4"), at("", 0, f"{U}:tag:5"), False),
        (at("b.1", 4, f"{U}:1-3:7-9"), at("", 0, f"{U}:5"), False),
        # GTIDs decide, not offsets, where a server's binlogs began again.
        (at("b.9", 900, f"{U}:1-9"), at("b.1", 200, f"{U}:1-9,{V}:1"), False),
        # Offsets in the very same file do, where a checkpoint lacks a GTID that was before it.
        (at("b.1", 900, f"{U}:1-4:6-9", FILE), at("b.1", 900, f"{U}:1-9", FILE), True),
        (at("b.1", 899, f"{U}:1-4:6-9", FILE), at("b.1", 900, f"{U}:1-9", FILE), False),
        (at("b.1", 900, f"{U}:1-4:6-9", FILE), at("b.1", 900, f"{U}:1-9", ANEW), False),
        (at("b.2", 900, f"{U}:1-4:6-9", FILE), at("b.1", 900, f"{U}:1-9", FILE), False),
        # MariaDB: the last of a domain.
        (at("b.1", 4, "0-1-9", B), at("", 0, "0-1-9"), True),
        (at("b.1", 4, "0-1-9", B), at("", 0, "0-1-10"), False),
        (at("b.1", 4, "0-1-9,5-1-2", B), at("", 0, "5-1-3"), False),
        (at("b.1", 4, "0-1-9,5-1-2", B), at("", 0, "5-1-2"), True),
        (at("b.1", 4, "0-1-9", B), at("", 0, "7-1-1"), False),
        # Another server went on in the domain: only the position tells, and only where it is known.
        (at("b.1", 4, "0-2-9"), at("", 0, "0-1-5"), False),
        (at("b.1", 400, "0-2-9"), at("b.1", 300, "0-1-5"), True),
        (at("b.1", 200, "0-2-9"), at("b.1", 300, "0-1-5"), False),
        # Another notation says nothing.
        (at("b.1", 4, "0-1-9", B), at("", 0, f"{U}:1"), False),
    ],
)
def test_passed(reached, position, passed):
    assert binlog_passed(reached, position) is passed


def test_a_position_of_another_system_is_not_passed():
    assert not binlog_passed(KafkaPosition("t", 0, 9), at("b.1", 4))
