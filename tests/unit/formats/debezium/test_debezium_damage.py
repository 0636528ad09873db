"""Whatever a record of Debezium is, it is read, or refused as a record that cannot be."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from setl.codec.debezium.reading.header import DebeziumHeaderReader
from setl.codec.debezium.reading.rows import DebeziumRowCodec
from tests.unit.formats.damage import ANY, changed, damaged, paths, tried
from tests.unit.formats.debezium.recorded import recorded


def wide(op):
    return next(r for r in recorded("typical") if r.value and f'"op":"{op}"'.encode() in r.value)


RECORDS = {op: wide(op) for op in "rud"}
PARSED = {op: json.loads(record.value or b"") for op, record in RECORDS.items()}
PLACES = {op: list(paths(value)) for op, value in PARSED.items()}


@settings(max_examples=300, deadline=None)
@given(st.sampled_from("rud"), st.data(), ANY)
def test_changed_records(op, data, other):
    path = data.draw(st.sampled_from(PLACES[op]))
    value = json.dumps(changed(PARSED[op], path, other)).encode()
    tried(DebeziumHeaderReader(), DebeziumRowCodec(), RECORDS[op].key, value)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_bytes(data):
    for value in damaged(RECORDS["u"].value, data):
        tried(DebeziumHeaderReader(), DebeziumRowCodec(), None, value)
