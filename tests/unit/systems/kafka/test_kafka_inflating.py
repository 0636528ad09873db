"""Compressed batches of every kind, and what a small one may grow to."""

import struct

import pyarrow as pa
import pytest

from setl.systems.kafka.inflating import inflated

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
PLAIN = b"some records " * 1000


def streamed(codec, data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def snappy(data):
    return pa.compress(data, codec="snappy", asbytes=True)


def xerial(*blocks):
    head = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    return head + b"".join(struct.pack(">i", len(b)) + b for b in map(snappy, blocks))


def every(data):
    yield GZIP, streamed("gzip", data)
    yield LZ4, streamed("lz4", data)
    yield ZSTD, streamed("zstd", data)
    yield SNAPPY, snappy(data)
    half = len(data) // 2
    yield SNAPPY, xerial(data[:half], data[half:])


@pytest.mark.parametrize(("kind", "data"), list(every(PLAIN)))
def test_batches_of_every_kind(kind, data):
    assert inflated(kind, data) == PLAIN


@pytest.mark.parametrize(("kind", "data"), list(every(bytes(20 << 20))))
def test_a_small_batch_does_not_take_all_memory(kind, data):
    assert len(data) < 1 << 20
    with pytest.raises(ValueError, match="holds more than 1000000 bytes"):
        inflated(kind, data, 1_000_000)


@pytest.mark.parametrize(("kind", "data"), list(every(PLAIN)))
def test_damage_is_an_error(kind, data):
    with pytest.raises(ValueError, match=r"uncompressed|block|size|bytes"):
        inflated(kind, b"\xff" * 20 + data[20:])
    with pytest.raises(ValueError, match="unknown way"):
        inflated(7, data)
