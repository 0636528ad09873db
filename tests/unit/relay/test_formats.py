"""Records in Debezium's and Canal's format: from a binlog's bytes; values they cannot have."""

import json
from dataclasses import replace

import pytest

from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.binlog.tables.table_map import ColumnType, WireColumn
from setl.codec.binlog_tables import BinlogColumn, BinlogTable
from setl.codec.canal.writing.messages import CanalTable
from setl.codec.debezium.writing.tables import DebeziumTable
from setl.codec.dts.relayed import HEARTBEAT
from setl.errors import DataError
from setl.model.change import ABSENT, DecodedRows, Op
from setl.model.checkpoint import Checkpoint
from setl.model.labels import marked
from setl.model.schema import Column, Kind, RowSchema
from setl.printable import text_of_bytes
from setl.relay.canal import CanalSerializer
from setl.relay.debezium import DebeziumSerializer
from setl.relay.interceptor import Interceptor
from setl.relay.partitioning import PartitionBy, Partitioner
from setl.relay.sequence import Sequencer
from tests.unit.codec.binlog_events import entries_of
from tests.unit.relay.relay_streams import ShopIsMapped, position
from tests.unit.relay.test_relay_bytes import START, Stopped, binlog


def relayed(serializer, by: PartitionBy = "order", partitions=1, mariadb=False):
    relay = Sequencer(
        Checkpoint(START, generation=2),
        [None] * partitions,
        interceptor=Interceptor(ShopIsMapped(), own_tables=False),
        partitioner=Partitioner(by, partitions),
        codec=BinlogRowCodec(),
        serializer=serializer,
    )
    entries, _ = entries_of(binlog(mariadb=mariadb), START)
    found = [[] for _ in range(partitions)]
    for record in relay.records(entries).records:
        found[record.partition].append(record)
    return found, relay.heartbeat(1.7e9)


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


def test_rows_and_schema_changes_are_flat_messages():
    ((records,), (beat,)) = relayed(CanalSerializer(Stopped()))
    messages = [json.loads(record.value or b"") for record in records]
    assert [m["type"] for m in messages] == [
        *["INSERT"] * 8, *["UPDATE"] * 4, "DELETE", "ALTER",
    ]  # fmt: skip
    assert (messages[8]["data"], messages[8]["old"]) == ([{"id": "100"}], [{"id": "0"}])
    assert [m["id"] for m in messages] == sorted({m["id"] for m in messages})
    assert {r.key for r in records} == {None}
    assert (beat.key, beat.value) == (None, None)


def table_of(kind, wire, **column):
    schema = RowSchema("s", "t", (Column("id", Kind.INTEGER), Column("v", kind, **column)), (0,))
    columns = (
        BinlogColumn(schema.columns[0], WireColumn(ColumnType.LONG), nullable=False),
        BinlogColumn(schema.columns[1], wire, labels=("a", "b", "a")),
    )
    return BinlogTable(schema, columns)


def in_debezium(table, value):
    made = DebeziumTable(table, "p", "mysql", schemas=False, exact_decimals=False)
    return json.loads(made.image((1, value)))["v"]


def in_canal(table, value):
    made = CanalTable(table)
    return json.loads(made.image(made.texts((1, value))))["v"]


TEXT = table_of(Kind.TEXT, WireColumn(ColumnType.VARCHAR, 9))
BOTH = pytest.mark.parametrize("written", [in_debezium, in_canal])


@BOTH
def test_a_row_that_lacks_a_column_is_refused(written):
    with pytest.raises(DataError, match="lacks columns") as caught:
        written(TEXT, ABSENT)
    assert "binlog_row_image=FULL" in caught.value.hint
    assert caught.value.where["table"] == "t"


@BOTH
def test_text_without_a_form_in_utf8_is_refused(written):
    with pytest.raises(DataError, match="no form in UTF-8") as caught:
        written(TEXT, text_of_bytes("big5", "A15A"))
    assert "format: dts" in caught.value.hint
    # The second encoding of a character is that character.
    assert written(TEXT, text_of_bytes("cp932", "8790")) == "≒"


def test_a_day_that_does_not_exist_is_refused():
    dates = table_of(Kind.DATE, WireColumn(ColumnType.DATE))
    with pytest.raises(DataError, match="the day 2023-02-31 does not exist") as caught:
        in_debezium(dates, "2023-02-31")
    assert caught.value.where["column"] == "v"
    assert in_canal(dates, "2023-02-31") == "2023-02-31"
    assert in_debezium(dates, "2024-00-00") is None


def test_a_label_that_prints_like_another_one_is_its_text_or_its_number():
    labels = table_of(Kind.ENUM, WireColumn(ColumnType.ENUM, 1))
    third = marked("3=a")
    assert [in_debezium(labels, v) for v in ("a", "b", third)] == ["a", "b", "a"]
    assert [in_canal(labels, v) for v in ("a", "b", third)] == ["1", "2", "3"]


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
    if kind is Kind.TEXT:
        with pytest.raises(DataError, match=f"the key has {what}"):
            in_canal(keyed, value)
        assert in_canal(given, value) == "\\"


def test_numbers_with_an_exponent_are_those_of_java():
    floats = table_of(Kind.FLOAT, WireColumn(ColumnType.DOUBLE, 8), width=8)
    values = [0.001, 0.00099, 9999999.0, 1e7, -1.25e-7, 123456789.0, 0.0, 1e22]
    assert [in_canal(floats, value) for value in values] == [
        "0.001", "9.9E-4", "9999999.0", "1.0E7", "-1.25E-7", "1.23456789E8", "0.0", "1.0E22",
    ]  # fmt: skip
    assert [in_debezium(floats, value) for value in values] == values


@pytest.mark.parametrize("form", [debezium(), CanalSerializer(Stopped())])
def test_what_an_image_leaves_out_since_it_did_not_change_is_in_the_one_before(form):
    entries, _ = entries_of(binlog(), START)
    rows = next(e for e in entries if e.table == "orders")
    schema = BinlogRowCodec().decode(rows.payload, rows.context).schema
    changes = DecodedRows(schema, Op.UPDATE, [((1,), (ABSENT,))])
    writer = form.transaction(START, entries[0], rows)
    ((message,),) = writer.rows(1, rows, changes)
    value = json.loads(message.value)
    assert value.get("after", {"id": 1}) == {"id": 1}
    assert value.get("data", [{"id": "1"}]) == [{"id": "1"}]
    with pytest.raises(DataError, match="lacks columns"):
        writer.rows(1, rows, changes._replace(images=[((ABSENT,), (1,))]))
