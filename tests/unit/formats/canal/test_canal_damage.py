"""Whatever a flat message is, it is read, or refused as a message that cannot be."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from setl.codec.canal.reading.header import CanalHeaderReader
from setl.codec.canal.reading.rows import CanalRowCodec
from tests.unit.formats.canal.records import canal
from tests.unit.formats.damage import ANY, changed, damaged, paths, tried

TYPES = {
    "id": "int", "d": "decimal(5,2)", "b": "binary(3)", "e": "enum('a','b')", "t": "timestamp(3)",
    "g": "point", "y": "year", "s": "set('x')", "n": "bit(3)", "i": "time(2)", "f": "double",
}  # fmt: skip
ROW = {
    "id": "1", "d": "1.50", "b": "a", "e": "1", "t": "2020-01-01 00:00:00.5", "g": "\0\0\0\0\1",
    "y": "2020", "s": "1", "n": "5", "i": "-01:00:00", "f": "1E10",
}  # fmt: skip
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
    for value in damaged(json.dumps(FLAT).encode(), data):
        tried(CanalHeaderReader(), CanalRowCodec("UTC"), None, value)
