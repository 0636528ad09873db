"""Entries of records that stand alone, and what they may not be."""

import json
from typing import TYPE_CHECKING, cast
from zlib import crc32

import pytest

from setl.codec.canal.reading.header import CanalHeaderReader
from setl.codec.debezium.reading.header import DebeziumHeaderReader
from setl.codec.keyed_record import key_and_value
from setl.codec.row_codec import single_entries
from setl.errors import DataError, FatalError
from setl.model.entry import EntryKind
from setl.model.position import KafkaOrigin, KafkaPosition
from setl.systems.kafka.record import TopicPartition
from setl.systems.kafka.source.record_entries import StandaloneEntries
from setl.transform.work import codec_named
from tests.unit.codec.json_records import canal, debezium, key

if TYPE_CHECKING:
    import confluent_kafka

PLACE = TopicPartition("orders", 0)


class Message:
    def __init__(self, offset, key=None, value=None, headers=None, stamp=(0, 0)):
        self._offset, self._key, self._value = offset, key, value
        self._headers, self._stamp = headers, stamp

    def headers(self):
        return self._headers

    def timestamp(self):
        return self._stamp

    def offset(self):
        return self._offset

    def key(self):
        return self._key

    def value(self):
        return self._value


def message(offset, *record):
    return cast("confluent_kafka.Message", Message(offset, *record))


def messages(*records, first=0):
    return [message(first + i, *record) for i, record in enumerate(records)]


def entries_of(reader, *records, first=0, start=0):
    """Entries of records, each a key and a value, and the error behind them."""
    made = StandaloneEntries(PLACE, KafkaOrigin(), KafkaPosition("orders", 0, start), reader)
    return made, made.of(messages(*records, first=first))


def kinds(entries):
    return "".join(entry.kind.name[0] for entry in entries)


def test_rows_of_one_table_and_second_are_one_entry_and_end_with_a_commit():
    rows = [(key(id=n), debezium("c", after={"id": n})) for n in range(3)]
    other = (key(id=9), debezium("c", after={"id": 9}, table="other"))
    later = (key(id=4), debezium("c", after={"id": 4}, seconds=1_700_000_001))
    _, (entries, error) = entries_of(DebeziumHeaderReader(), *rows, later, other)
    assert error is None
    assert kinds(entries) == "RCRCRC"
    first = entries[0]
    assert (first.schema, first.table, first.rows) == ("shop", "orders", 3)
    assert isinstance(first.position, KafkaPosition)
    assert first.timestamp == first.position.timestamp == 1_700_000_000
    assert [e.position.offset for e in entries] == [3, 3, 4, 4, 5, 5]
    # As the source compares it with the record before a checkpoint.
    assert first.position.record == crc32(rows[-1][1])
    codec = codec_named("debezium")
    singles = list(single_entries(codec, first))
    assert [e.position.offset for e in singles] == [1, 2, 3]
    assert [key_and_value(e.payload) for e in singles] == rows
    assert [codec.decode(e.payload, ()).images for e in singles] == [
        [(None, (n,))] for n in range(3)
    ]


def test_what_changes_no_row_moves_the_position():
    beat = json.dumps({"ts_ms": 1_700_000_005_000}).encode()
    _, (entries, _) = entries_of(DebeziumHeaderReader(), (b"{}", beat))
    assert [(e.kind, e.timestamp, e.position.offset) for e in entries] == [
        (EntryKind.HEARTBEAT, 1_700_000_005.0, 1)
    ]


def test_schema_changes_are_statements_of_their_own():
    records = [
        (key(id=1), debezium("c", after={"id": 1})),
        (None, debezium("t", before=None, after=None)),
        (key(id=1), debezium("c", after={"id": 1})),
    ]
    _, (entries, _) = entries_of(DebeziumHeaderReader(), *records)
    assert kinds(entries) == "RCDRC"
    assert entries[2].statement == "TRUNCATE TABLE `orders`"
    assert (entries[2].default_schema, entries[2].table) == ("shop", "orders")


def test_a_tombstone_behind_its_delete_is_passed_over():
    gone = key(id=1)
    records = [
        (gone, debezium("d", before={"id": 1})),
        (key(id=2), debezium("d", before={"id": 2})),
        (gone, None),
        (key(id=2), None),
    ]
    _, (entries, error) = entries_of(DebeziumHeaderReader(), *records)
    assert error is None
    assert kinds(entries) == "RCHH"


def test_a_tombstone_without_its_delete_stops():
    rows = [(key(id=1), debezium("c", after={"id": 1}))] * 100
    made, (entries, error) = entries_of(DebeziumHeaderReader(), *rows, (key(id=2), None))
    assert kinds(entries) == "RC"
    assert isinstance(error, FatalError)
    assert "orders[0]@100" in str(error)
    assert "cleanup.policy" in error.hint
    assert made.next == 100


def test_a_record_of_nothing_is_no_tombstone():
    records = [(key(id=1), debezium("c", after={"id": 1})), (None, None)]
    _, (entries, error) = entries_of(DebeziumHeaderReader(), *records)
    assert (kinds(entries), error) == ("RCH", None)


def test_a_heartbeat_of_a_relay_has_the_time_that_the_relay_has_reached():
    relayed, created, appended = [("setl", b"1 2 3")], (1, 1_700_000_009_999), (2, 9_999_999)
    beats = [(relayed, created), (relayed, appended), (None, created)]
    made, (entries, _) = entries_of(CanalHeaderReader(), *((None, None, *beat) for beat in beats))
    assert [entry.timestamp for entry in entries] == [1_700_000_009, 0, 0]
    assert made.time == 1_700_000_009


def test_shortly_after_a_start_the_delete_may_stand_before_it():
    made = StandaloneEntries(
        PLACE, KafkaOrigin(), KafkaPosition("orders", 0, 6), DebeziumHeaderReader()
    )
    assert not made.is_repeat(message(5, key(id=1), debezium("d", before={"id": 1})))
    # Of two connectors: d1 d2 | t1 t2.
    entries, error = made.of(messages((key(id=1), None), (key(id=2), None), first=6))
    assert (kinds(entries), error) == ("HH", None)


def test_rows_of_a_flat_message_count():
    message = canal("INSERT", [{"id": "1"}, {"id": "2"}])
    _, (entries, _) = entries_of(CanalHeaderReader(), (None, message))
    assert kinds(entries) == "RC"
    assert entries[0].rows == 2


def test_a_logged_statement_of_canal_is_one():
    message = canal("DELETE", None, sql="DELETE FROM orders")
    _, (entries, _) = entries_of(CanalHeaderReader(), (None, message))
    assert kinds(entries) == "SC"
    assert (entries[0].statement, entries[0].default_schema) == ("DELETE FROM orders", "shop")


@pytest.mark.parametrize("reader", [DebeziumHeaderReader, CanalHeaderReader])
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
def test_damage_is_an_error_with_the_place_of_the_record(reader, value):
    _, (entries, error) = entries_of(reader(), (None, value), first=7)
    assert entries == []
    assert isinstance(error, DataError)
    assert error.where["position"] == "orders[0]@7"
