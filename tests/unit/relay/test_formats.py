"""What the formats have in common in which each record stands alone."""

import json

import pytest

from setl.channel.file import KafkaTarget
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.binlog.tables.table_map import ColumnType, WireColumn
from setl.errors import DataError
from setl.model.change import ABSENT, DecodedRows, Op
from setl.model.schema import Kind
from setl.printable import text_of_bytes
from setl.relay.formats import RecordFormat, serializer_maker
from tests.unit.codec.binlog_events import entries_of
from tests.unit.formats.records import FORMATS, records_of
from tests.unit.relay.format_relay import table_of
from tests.unit.relay.test_relay_bytes import START, Stopped, binlog

TEXT = table_of(Kind.TEXT, WireColumn(ColumnType.VARCHAR, 9))
EACH = pytest.mark.parametrize("format_", FORMATS)


@EACH
def test_a_row_that_lacks_a_column_is_refused(format_):
    with pytest.raises(DataError, match="lacks columns") as caught:
        records_of(format_).image(TEXT, ABSENT)
    assert "binlog_row_image=FULL" in caught.value.hint
    assert caught.value.where["table"] == "t"


@EACH
def test_text_without_a_form_in_utf8_is_refused(format_):
    written = records_of(format_).image
    with pytest.raises(DataError, match="no form in UTF-8") as caught:
        written(TEXT, text_of_bytes("big5", "A15A"))
    assert "format: dts" in caught.value.hint
    # The second encoding of a character is that character.
    assert written(TEXT, text_of_bytes("cp932", "8790")) == "≒"


@EACH
def test_what_an_image_leaves_out_since_it_did_not_change_is_in_the_one_before(format_):
    target = KafkaTarget(type="kafka", format=format_, brokers=["k:9092"], topic="t")
    made = serializer_maker(format_)
    assert made is not None
    form = made(RecordFormat(format_, "t", options=target.format_options), "8.4.0", Stopped())
    entries, _ = entries_of(binlog(), START)
    rows = next(e for e in entries if e.table == "orders")
    schema = BinlogRowCodec().decode(rows.payload, rows.context).schema
    changes = DecodedRows(schema, Op.UPDATE, [((1,), (ABSENT,))])
    writer = form.transaction(START, entries[0], rows)
    ((message,),) = writer.rows(1, rows, changes)
    value = json.loads(message.value or b"")
    assert value.get("after", {"id": 1}) == {"id": 1}
    assert value.get("data", [{"id": "1"}]) == [{"id": "1"}]
    with pytest.raises(DataError, match="lacks columns"):
        writer.rows(1, rows, changes._replace(images=[((ABSENT,), (1,))]))
