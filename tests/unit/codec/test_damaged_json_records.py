"""Whatever a record is, it is read, or refused as a record that cannot be."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from setl.codec.canal.reading.header import CanalHeaderReader
from setl.codec.canal.reading.rows import CanalRowCodec
from setl.codec.debezium.reading.header import DebeziumHeaderReader
from setl.codec.debezium.reading.rows import DebeziumRowCodec
from setl.codec.keyed_record import keyed
from setl.errors import DataError
from setl.model.entry import EntryKind
from tests.unit.codec.debezium_recorded import recorded
from tests.unit.codec.json_records import canal

TYPES = {
    "id": "int", "d": "decimal(5,2)", "b": "binary(3)", "e": "enum('a','b')", "t": "timestamp(3)",
    "g": "point", "y": "year", "s": "set('x')", "n": "bit(3)", "i": "time(2)", "f": "double",
}  # fmt: skip
ROW = {
    "id": "1", "d": "1.50", "b": "a", "e": "1", "t": "2020-01-01 00:00:00.5", "g": "\0\0\0\0\1",
    "y": "2020", "s": "1", "n": "5", "i": "-01:00:00", "f": "1E10",
}  # fmt: skip
ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.sampled_from(["-1", "99999999999999999999", "=", "AA==", "0", "2020-13-45", "x?"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


def paths(value, path=()):
    yield path
    if isinstance(value, dict):
        for name, member in value.items():
            yield from paths(member, (*path, name))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from paths(member, (*path, index))


def changed(value, path, other):
    if not path:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], other)
    return copy


def tried(reader, codec, key, value):
    try:
        header = reader.read(key, value)
        if header.kind is EntryKind.ROWS:
            rows = codec.decode(keyed(key, value), ())
            width = len(rows.schema.columns)
            assert all(len(row) == width for pair in rows.images for row in pair if row)
    except DataError:
        pass


def wide(op):
    return next(r for r in recorded("typical") if r.value and f'"op":"{op}"'.encode() in r.value)


RECORDS = {op: wide(op) for op in "rud"}
PARSED = {op: json.loads(record.value or b"") for op, record in RECORDS.items()}
PLACES = {op: list(paths(value)) for op, value in PARSED.items()}


@settings(max_examples=300, deadline=None)
@given(st.sampled_from("rud"), st.data(), ANY)
def test_changed_records_of_debezium(op, data, other):
    path = data.draw(st.sampled_from(PLACES[op]))
    value = json.dumps(changed(PARSED[op], path, other)).encode()
    tried(DebeziumHeaderReader(), DebeziumRowCodec(), RECORDS[op].key, value)


FLAT = json.loads(canal("UPDATE", [ROW], [{"d": "2.00"}], types=TYPES))
FLAT_PLACES = list(paths(FLAT))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(FLAT_PLACES), ANY)
def test_changed_flat_messages(path, other):
    tried(
        CanalHeaderReader(),
        CanalRowCodec("UTC"),
        None,
        json.dumps(changed(FLAT, path, other)).encode(),
    )


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_bytes(data):
    value = data.draw(st.sampled_from([RECORDS["u"].value, json.dumps(FLAT).encode()]))
    at = data.draw(st.integers(0, len(value) - 1))
    with_byte = value[:at] + bytes([data.draw(st.integers(0, 255))]) + value[at + 1 :]
    for damaged in (with_byte, value[:at], value[at:]):
        tried(DebeziumHeaderReader(), DebeziumRowCodec(), None, damaged)
        tried(CanalHeaderReader(), CanalRowCodec("UTC"), None, damaged)
