"""Entries of records that stand alone, and what they may not be."""

from zlib import crc32

import pytest

from setl.codec.keyed_record import key_and_value
from setl.codec.row_codec import single_entries
from setl.errors import DataError
from setl.model.entry import EntryKind
from setl.model.position import KafkaPosition
from setl.transform.work import codec_named
from tests.unit.formats.records import FORMATS, SECONDS, records_of
from tests.unit.systems.kafka.standalone import entries_of, kinds

EACH_FORMAT = pytest.mark.parametrize("format_", FORMATS)


@EACH_FORMAT
def test_rows_of_one_table_and_second_are_one_entry_and_end_with_a_commit(format_):
    insert = records_of(format_).insert
    rows = [insert(n) for n in range(3)]
    other, later = insert(9, table="other"), insert(4, seconds=SECONDS + 1)
    _, (entries, error) = entries_of(format_, *rows, later, other)
    assert error is None
    assert kinds(entries) == "RCRCRC"
    first = entries[0]
    assert (first.schema, first.table, first.rows) == ("shop", "orders", 3)
    assert isinstance(first.position, KafkaPosition)
    assert first.timestamp == first.position.timestamp == SECONDS
    assert [e.position.offset for e in entries] == [3, 3, 4, 4, 5, 5]
    # As the source compares it with the record before a checkpoint.
    assert first.position.record == crc32(rows[-1][1])
    codec = codec_named(format_)
    singles = list(single_entries(codec, first))
    assert [e.position.offset for e in singles] == [1, 2, 3]
    assert [key_and_value(e.payload) for e in singles] == rows
    assert [codec.decode(e.payload, ()).images for e in singles] == [
        [(None, (n,))] for n in range(3)
    ]


@EACH_FORMAT
def test_what_changes_no_row_moves_the_position(format_):
    _, (entries, _) = entries_of(format_, records_of(format_).heartbeat())
    assert [(e.kind, e.timestamp, e.position.offset) for e in entries] == [
        (EntryKind.HEARTBEAT, float(SECONDS), 1)
    ]


@EACH_FORMAT
def test_schema_changes_are_statements_of_their_own(format_):
    made = records_of(format_)
    _, (entries, _) = entries_of(format_, made.insert(1), made.truncate(), made.insert(1))
    assert kinds(entries) == "RCDRC"
    assert entries[2].statement == "TRUNCATE TABLE `orders`"
    assert (entries[2].default_schema, entries[2].table) == ("shop", "orders")


@EACH_FORMAT
def test_a_record_of_nothing_is_no_tombstone(format_):
    _, (entries, error) = entries_of(format_, records_of(format_).insert(1), (None, None))
    assert (kinds(entries), error) == ("RCH", None)


@EACH_FORMAT
def test_a_heartbeat_of_a_relay_has_the_time_that_the_relay_has_reached(format_):
    relayed, created, appended = [("setl", b"1 2 3")], (1, 1_700_000_009_999), (2, 9_999_999)
    beats = [(relayed, created), (relayed, appended), (None, created)]
    made, (entries, _) = entries_of(format_, *((None, None, *beat) for beat in beats))
    assert [entry.timestamp for entry in entries] == [1_700_000_009, 0, 0]
    assert made.time == 1_700_000_009


@EACH_FORMAT
@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\0\0\0\0\7\2\2",
        b"{",
        b"[]",
        b"\xff{}",
        b'{"id": 1, "name": "x"}',
        b"[" * 100_000,
        b'{"schema":{},"payload":{"op":"c"}}',
        b'{"schema":{},"payload":NaN}',
        b'{"op":"c","source":{"connector":"mysql"}}',
    ],
    ids=["empty", "avro", "cut", "list", "bytes", "unwrapped", "deep", "bare", "nan", "nameless"],
)
def test_damage_is_an_error_with_the_place_of_the_record(format_, value):
    _, (entries, error) = entries_of(format_, (None, value), first=7)
    assert entries == []
    assert isinstance(error, DataError)
    assert error.where["position"] == "orders[0]@7"
