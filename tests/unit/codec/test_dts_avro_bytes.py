"""The Avro primitives against those of a library."""

import io

import fastavro
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setl.codec.dts.avro_bytes import block_bytes, data_bytes, double_bytes, long_bytes, text_bytes

TEXT = st.text(st.characters(codec="utf-8"), max_size=200)


def written(schema, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


@given(st.integers(-(2**63), 2**63 - 1))
@example(0)
@example(-1)
@example(63)
@example(64)
@example(-64)
@example(-65)
@example(8191)
@example(8192)
@example(-8192)
@example(2**63 - 1)
@example(-(2**63))
def test_longs(number):
    assert long_bytes(number) == written("long", number)


@given(st.floats(allow_nan=False))
def test_doubles(number):
    assert double_bytes(number) == written("double", number)


@given(TEXT)
@example("🙂" * 5000)
def test_texts(text):
    assert text_bytes(text) == written("string", text)


def test_half_of_a_surrogate_pair_is_no_text():
    with pytest.raises(UnicodeEncodeError):
        text_bytes("\ud83d")


@given(st.binary(max_size=300))
def test_bytes(data):
    assert data_bytes(data) == written("bytes", data)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=200))
def test_arrays(numbers):
    schema = {"type": "array", "items": "long"}
    assert block_bytes([long_bytes(n) for n in numbers]) == written(schema, numbers)


@given(st.dictionaries(TEXT, TEXT, max_size=20))
def test_maps(entries):
    pairs = [text_bytes(key) + text_bytes(value) for key, value in entries.items()]
    assert block_bytes(pairs) == written({"type": "map", "values": "string"}, entries)
