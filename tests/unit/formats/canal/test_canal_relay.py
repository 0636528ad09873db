"""A relay that writes Canal's format: from a binlog's bytes; values that it cannot have."""

import json
from dataclasses import replace

import pytest

from setl.codec.binlog.tables.table_map import ColumnType, WireColumn
from setl.codec.binlog_tables import BinlogColumn
from setl.codec.canal.reading.columns import message_column
from setl.codec.canal.reading.header import CanalHeaderReader
from setl.codec.canal.reading.rows import CanalRowCodec
from setl.codec.canal.writing.columns import canal_column
from setl.codec.canal.writing.messages import CanalMessages
from setl.codec.keyed_record import keyed
from setl.errors import DataError
from setl.model.labels import marked
from setl.model.schema import Column, Kind
from setl.printable import text_of_bytes
from setl.relay.canal import CanalSerializer
from tests.unit.formats.both_ways import differing, entries
from tests.unit.formats.canal.records import image
from tests.unit.relay.format_relay import relayed, table_of
from tests.unit.relay.test_relay_bytes import Stopped


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


def test_a_day_that_does_not_exist_is_its_text():
    dates = table_of(Kind.DATE, WireColumn(ColumnType.DATE))
    assert image(dates, "2023-02-31") == "2023-02-31"


def test_a_label_that_prints_like_another_one_is_its_number():
    labels = table_of(Kind.ENUM, WireColumn(ColumnType.ENUM, 1))
    assert [image(labels, v) for v in ("a", "b", marked("3=a"))] == ["1", "2", "3"]


def test_two_rows_never_have_one_key():
    given, value = (
        table_of(Kind.TEXT, WireColumn(ColumnType.VARCHAR, 1)),
        text_of_bytes("sjis", "5c"),
    )
    keyed_by_it = given._replace(schema=replace(given.schema, key=(0, 1)))
    with pytest.raises(DataError, match="the key has a character"):
        image(keyed_by_it, value)
    assert image(given, value) == "\\"


def test_numbers_with_an_exponent_are_those_of_java():
    floats = table_of(Kind.FLOAT, WireColumn(ColumnType.DOUBLE, 8), width=8)
    values = [0.001, 0.00099, 9999999.0, 1e7, -1.25e-7, 123456789.0, 0.0, 1e22]
    assert [image(floats, value) for value in values] == [
        "0.001", "9.9E-4", "9999999.0", "1.0E7", "-1.25E-7", "1.23456789E8", "0.0", "1.0E22",
    ]  # fmt: skip


def test_what_is_written_is_read_as_it_was():
    messages = CanalMessages()
    codec, count = CanalRowCodec("UTC"), 0
    for entry, rows in entries():
        written = messages.rows(1, entry, rows, "", 0)
        for images, value in zip(rows.images, written, strict=True):
            header = CanalHeaderReader().read(None, value)
            assert (header.schema, header.table) == (entry.schema, entry.table)
            read = codec.decode(keyed(None, value), ())
            assert list(differing(rows.schema, images, read)) == []
            count += 1
    assert count > 5


@pytest.mark.parametrize("kind", [Kind.ENUM, Kind.SET])
def test_labels_are_numbered_as_the_type_describes_them(kind):
    labels = ("\\", "1", "it's", "a\nb\r\0", "\\'", "x")
    wire = WireColumn(ColumnType.ENUM, 1)
    written = canal_column(BinlogColumn(Column("v", kind), wire, "utf8mb4", labels))
    read = message_column("v", written.mysql_type, "")
    assert [read.read(written.write(label)) for label in labels] == list(labels)
