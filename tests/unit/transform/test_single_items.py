"""Work items of one record each, made of those that hold runs."""

import pytest

from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.dts.row_chunks import CHUNK_FRONT, joined
from setl.codec.dts.rows import DtsRowCodec
from setl.transform.work import WorkItem, single_items
from tests.unit.codec.binlog_events import EventWriter

RECORDS = [(11, b"first"), (12, b"second"), (15, b"last")]
RUN = joined(RECORDS)


def singles(codec, payload):
    item = WorkItem((0,), 100, (), payload, ("shop", "orders"))
    return [(single.version, single.payload) for single in single_items(codec, [item])]


@pytest.mark.parametrize("left", [3, 2, 1])
def test_what_is_left_of_a_run_of_records_is_taken_apart_like_the_whole(left):
    begun = sum(CHUNK_FRONT.size + len(value) for _, value in RECORDS[: 3 - left])
    expected = [(100 - (15 - offset), value) for offset, value in RECORDS][3 - left :]
    assert singles(DtsRowCodec(), RUN[begun:]) == expected


def test_a_record_alone_is_itself():
    assert singles(DtsRowCodec(), b"record") == [(100, b"record")]


def test_events_of_a_binlog_are_taken_apart_wherever_a_run_begins():
    writer = EventWriter()
    events = [writer.rows(30, 1, [b"\0" + bytes([n, 0, 0, 0])]) for n in range(3)]
    size = len(events[0])
    for left in (3, 2, 1):
        payload = b"".join(events[3 - left :])
        expected = [(100 - size * (2 - n), events[n]) for n in range(3)][3 - left :]
        assert singles(BinlogRowCodec(), payload) == expected
