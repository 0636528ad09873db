"""What a relay writes of every type is read as it was, but for what the format itself loses."""

import pytest

from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.binlog.tables.table_map import ColumnType, WireColumn
from setl.codec.binlog_tables import BinlogColumn
from setl.codec.canal.reading.columns import message_column
from setl.codec.canal.reading.header import CanalHeaderReader
from setl.codec.canal.reading.rows import CanalRowCodec
from setl.codec.canal.writing.columns import canal_column
from setl.codec.canal.writing.messages import CanalMessages
from setl.codec.debezium.reading.header import DebeziumHeaderReader
from setl.codec.debezium.reading.rows import DebeziumRowCodec
from setl.codec.debezium.writing.events import DebeziumEvents, TransactionSource
from setl.codec.keyed_record import keyed
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition
from setl.model.schema import Column, Kind
from tests.unit.codec.binlog_events import entries_of, stored

DAYS = (Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP)


def entries():
    """Entries of rows of every type, with their rows."""
    events, said = stored("every_type")
    start = BinlogPosition(said["start"]["file"], said["start"]["offset"])
    codec = BinlogRowCodec()
    for entry in entries_of(events, start)[0]:
        if entry.kind is EntryKind.ROWS:
            yield entry, codec.decode(entry.payload, entry.context)


def differing(schema, rows, read):
    """Columns whose values are others; digits behind a point are not counted."""
    assert schema.names == read.schema.names
    for side in (0, 1):
        for column, one, two in zip(
            schema.columns, rows[side] or (), read.images[0][side] or (), strict=False
        ):
            if one != two and str(one).rstrip("0").rstrip(".") != str(two).rstrip("0").rstrip("."):
                yield column, one, two


def test_flat_messages():
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


def test_change_events():
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
