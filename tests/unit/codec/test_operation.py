"""What the front of a row event tells."""

import struct

import pytest

from setl.codec.binlog.event import EventType
from setl.codec.binlog.rows.operation import operation_of
from setl.model.change import Op


def event(kind, flags):
    return struct.pack("<IBIIIH", 1, kind, 1, 40, 99, 0) + bytes(6) + struct.pack("<H", flags)


@pytest.mark.parametrize("flags", [0, 1, 2, 3, 10])
@pytest.mark.parametrize(
    ("kind", "op"),
    [
        (EventType.WRITE_ROWS, Op.INSERT),
        (EventType.UPDATE_ROWS_V1, Op.UPDATE),
        (EventType.PARTIAL_UPDATE_ROWS, Op.UPDATE),
        (EventType.DELETE_ROWS, Op.DELETE),
        (EventType.MARIADB_DELETE_ROWS_COMPRESSED_V1, Op.DELETE),
    ],
)
def test_an_event_says_what_it_does_and_whether_keys_were_checked(kind, op, flags):
    assert operation_of(event(kind, flags)) == (op, not flags & 2)


def test_what_says_nothing():
    assert operation_of(event(EventType.QUERY, 0)) is None
    assert operation_of(b"short") is None
