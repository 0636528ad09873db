"""Heartbeats as pipelines of one process read them: each is decoded once."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.errors import DataError
from setl.extract.heartbeats import Heartbeats
from setl.model.change import DecodedRows, Op
from setl.model.entry import Entry, EntryKind
from setl.model.position import BinlogPosition
from tests.unit.codec.binlog_events import EventWriter, entries_of, one_row

POSITION = BinlogPosition("binlog.000003", 400)


def beat(payload, context=(b"format", b"map")):
    return Entry(
        EntryKind.ROWS, POSITION, 5.0, "retl", "xdual", payload=payload, rows=1, context=context
    )


class Codec:
    """Decodes a payload ``id,second`` and counts how often."""

    def __init__(self):
        self.asked = []

    def decode(self, payload, context):
        self.asked.append((payload, context))
        if payload == b"bad":
            raise DataError("damaged")
        number, second = payload.split(b",")
        row = (int(number), f"2026-11-27 10:00:{second.decode()}")
        schema = cast("Any", SimpleNamespace(names=("ID", "X")))
        return DecodedRows(schema, Op.INSERT, [(None, row)])


def test_what_several_pipelines_read_is_decoded_once():
    heartbeats, codec = Heartbeats(), cast("Any", Codec())
    (seen,) = heartbeats.read(codec, beat(b"7,01"))
    assert seen.id == 7
    assert all(heartbeats.read(codec, beat(b"7,01")) == [seen] for _ in range(3))
    (later,) = heartbeats.read(codec, beat(b"7,02"))
    assert later.written_at - seen.written_at == 1
    assert [payload for payload, _ in codec.asked] == [b"7,01", b"7,02"]


def test_what_says_something_else_is_decoded_by_itself():
    """Another table, another server's format, or another way to decode it."""
    heartbeats, codec, other = Heartbeats(), cast("Any", Codec()), cast("Any", Codec())
    heartbeats.read(codec, beat(b"7,01"))
    heartbeats.read(codec, beat(b"7,01", (b"format", b"another map")))
    heartbeats.read(other, beat(b"7,01"))
    assert len(codec.asked) == 2
    assert len(other.asked) == 1
    heartbeats.read(codec, beat(b"7,01"))
    assert len(codec.asked) == 2, "each source has its own last one"


def test_what_cannot_be_decoded_is_reported_to_each():
    heartbeats, codec = Heartbeats(), cast("Any", Codec())
    for _ in range(2):
        with pytest.raises(DataError, match="damaged"):
            heartbeats.read(codec, beat(b"bad"))


def test_few_are_stored():
    heartbeats, codec = Heartbeats(), cast("Any", Codec())
    for number in range(1000):
        heartbeats.read(codec, beat(b"7,01", (b"%d" % number,)))
    assert len(heartbeats._last) <= 64


def rows_of(writer):
    events = [*writer.opening(), writer.gtid(1), writer.query("BEGIN")]
    events += [*one_row(writer, schema="retl", table="xdual"), writer.xid()]
    entries, _ = entries_of(events, checksum=writer.checksum)
    return next(entry for entry in entries if entry.kind is EntryKind.ROWS)


def test_streams_that_begin_at_different_times_partition_what_describes_a_table():
    """So that what one of them has decoded is known to the others."""
    first, later = EventWriter(), EventWriter(offset=90_000)
    later.seconds += 3600
    one, other = rows_of(first), rows_of(later)
    assert one.context is other.context
    unlike = [rows_of(EventWriter(checksum=False)), rows_of(EventWriter(mariadb=True))]
    assert all(each.context != one.context for each in unlike)
    codec = BinlogRowCodec()
    for each in (one, other, *unlike):
        ((_, after),) = codec.decode(each.payload, each.context).images
        assert after == (1,)
