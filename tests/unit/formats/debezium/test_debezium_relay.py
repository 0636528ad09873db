"""A relay that writes Debezium's format: from a binlog's bytes; values that it cannot have."""

import json
from dataclasses import replace

import pytest

from setl.codec.binlog.tables.table_map import ColumnType, WireColumn
from setl.codec.debezium.reading.header import DebeziumHeaderReader
from setl.codec.debezium.reading.rows import DebeziumRowCodec
from setl.codec.debezium.writing.events import DebeziumEvents, TransactionSource
from setl.codec.debezium.writing.tables import DebeziumTable
from setl.codec.dts.relayed import HEARTBEAT
from setl.codec.keyed_record import keyed
from setl.errors import DataError
from setl.model.labels import marked
from setl.model.schema import Kind
from setl.printable import text_of_bytes
from setl.relay.debezium import DebeziumSerializer
from tests.unit.formats.both_ways import differing, entries
from tests.unit.formats.debezium.records import image
from tests.unit.relay.format_relay import relayed, table_of
from tests.unit.relay.relay_streams import position
from tests.unit.relay.test_relay_bytes import Stopped

DAYS = (Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP)


def debezium(mariadb=False, **more):
    return DebeziumSerializer("p", Stopped(), mariadb=mariadb, **more)


def events(records):
    """Operation, or what a statement is, by key; None for tombstones."""
    for record in records:
        key = record.key and json.loads(record.key)
        value = record.value and json.loads(record.value)
        yield key and key.get("id"), value and (value.get("op") or value["ddl"].split()[0])


@pytest.mark.parametrize("mariadb", [False, True])
def test_rows_are_events_and_marks_are_none(mariadb):
    ((records,), (beat,)) = relayed(debezium(mariadb), mariadb=mariadb)
    moves = [
        each
        for n in range(4)
        for each in ((n, "d"), (n, None), (100 + n, "c"))
    ]  # fmt: skip
    assert list(events(records)) == [*[(n, "c") for n in range(8)], *moves, (7, "d"), (7, None)]
    value = json.loads(records[0].value or b"")
    source = value["source"]
    assert (source["name"], source["db"], source["table"]) == ("p", "shop", "orders")
    assert source["connector"] == ("mariadb" if mariadb else "mysql")
    assert source["gtid"].endswith("42")
    assert [json.loads(r.value or b"")["source"]["row"] for r in records[:8]] == [*range(8)]
    assert value["ts_ms"] == 1_700_000_000_000
    places = [position(record) for record in records]
    assert {place.transaction.format for place in places} == {"debezium"}
    assert [p.order for p in places] == sorted({p.order for p in places})
    assert (beat.key, beat.value, position(beat).ordinal) == (None, None, HEARTBEAT)


def test_a_row_that_moves_to_another_partition_has_its_tombstone_in_the_former():
    partitions, _ = relayed(debezium(), "key", 3)
    last = {}
    for number, records in enumerate(partitions):
        for key, op in events(records):
            last.setdefault(key, []).append((number, op))
    for found in last.values():
        assert len({number for number, _ in found}) == 1
    assert [op for _, op in last[0]] == ["c", "d", None]
    assert [op for _, op in last[100]] == ["c"]


def test_schema_changes_are_events_if_they_are_wanted():
    ((records,), _) = relayed(debezium(schema_changes=True))
    assert json.loads(records[-1].key or b"") == {"databaseName": "shop"}
    value = json.loads(records[-1].value or b"")
    assert value["ddl"] == "ALTER TABLE orders ADD x INT"
    assert (value["databaseName"], value["tableChanges"]) == ("shop", [])
    ((rows,), _) = relayed(debezium())
    assert len(rows) == len(records) - 1


def test_a_day_that_does_not_exist_is_refused():
    dates = table_of(Kind.DATE, WireColumn(ColumnType.DATE))
    with pytest.raises(DataError, match="the day 2023-02-31 does not exist") as caught:
        image(dates, "2023-02-31")
    assert caught.value.where["column"] == "v"
    assert image(dates, "2024-00-00") is None


def test_a_label_that_prints_like_another_one_is_its_text():
    labels = table_of(Kind.ENUM, WireColumn(ColumnType.ENUM, 1))
    third = marked("3=a")
    assert [image(labels, v) for v in ("a", "b", third)] == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("kind", "type_", "value", "what"),
    [
        (Kind.ENUM, ColumnType.ENUM, marked("3=a"), "'a', number 3 of the labels"),
        (Kind.SET, ColumnType.SET, marked("4=a"), "'a', number 4 of the labels"),
        (Kind.TEXT, ColumnType.VARCHAR, text_of_bytes("sjis", "5c"), "a character"),
        (Kind.DATE, ColumnType.DATE, "0000-00-00", "the date 0000-00-00"),
        (Kind.DATETIME, ColumnType.DATETIME2, "2024-00-10 00:00:00.000000", "the date 2024-00-10"),
    ],
)
def test_two_rows_never_have_one_key(kind, type_, value, what):
    given = table_of(kind, WireColumn(type_, 1))
    keyed = given._replace(schema=replace(given.schema, key=(0, 1)))
    table = DebeziumTable(keyed, "p", "mysql", schemas=False, exact_decimals=False)
    with pytest.raises(DataError, match=f"the key has {what}"):
        table.key((1, value))


def test_numbers_with_an_exponent_are_numbers():
    floats = table_of(Kind.FLOAT, WireColumn(ColumnType.DOUBLE, 8), width=8)
    values = [0.001, 0.00099, 9999999.0, 1e7, -1.25e-7, 123456789.0, 0.0, 1e22]
    assert [image(floats, value) for value in values] == values


def test_what_is_written_is_read_as_it_was():
    events = DebeziumEvents("p", mariadb=True, schemas=True, exact_decimals=False)
    source, codec, found = TransactionSource("", 0, 0), DebeziumRowCodec(), []
    for entry, rows in entries():
        written = events.rows(source, entry, entry.position, rows, 0)
        for images, ((value, key), *_) in zip(rows.images, written, strict=True):
            header = DebeziumHeaderReader().read(key, value)
            assert (header.schema, header.table) == (entry.schema, entry.table)
            found += differing(rows.schema, images, codec.decode(keyed(key, value or b""), ()))
    zeros = [each for each in found if each[0].kind in DAYS and "-00" in each[1]]
    assert {two for _, _, two in zeros} == {None}
    assert len(found) == len(zeros) > 5
