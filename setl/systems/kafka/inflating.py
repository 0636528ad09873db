"""Undoes the compression of a batch of records, up to a size.

With pyarrow, which has all of Kafka's codecs and is there for Spark; kafka-python wants a library
for each and sets no limit, so that a batch of a few kilobytes could take all memory.

Source: https://kafka.apache.org/documentation/#recordbatch, the lowest bits of ``attributes``;
blocks of snappy: ``SnappyOutputStream`` of xerial's snappy-java.
"""

from __future__ import annotations

import struct
from typing import Any, Final

LARGEST: Final = 256 * 1024 * 1024
"""Bytes of records that a batch may hold; brokers refuse batches of far less."""

_STREAMS: Final = {1: "gzip", 3: "lz4", 4: "zstd"}
_SNAPPY: Final = 2
_PIECE: Final = 1024 * 1024
_XERIAL: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = 16  # with two versions behind the magic bytes


def inflated(kind: int, data: bytes, most: int = LARGEST) -> bytes:
    """The plain bytes of a batch.

    Args:
        kind: how it is compressed, as its attributes say.
        data: the bytes.
        most: bytes that it may have.

    Raises:
        ValueError: it is compressed in an unknown way, damaged, or larger.
    """
    # Imported here: it takes a while, which `setl --help` and the like need not wait.
    import pyarrow as pa  # noqa: PLC0415

    try:
        if kind == _SNAPPY:
            return b"".join(_snappy(pa, block, most) for block in _blocks(data, most))
        codec = _STREAMS.get(kind)
        if codec is None:
            raise ValueError(f"it is compressed in an unknown way ({kind})")
        return _stream(pa, codec, data, most)
    except (OSError, struct.error) as error:
        raise ValueError(f"it cannot be uncompressed: {error}") from error


def _stream(pa: Any, codec: str, data: bytes, most: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    with pa.CompressedInputStream(pa.BufferReader(data), codec) as stream:
        while piece := stream.read(_PIECE):
            size += len(piece)
            if size > most:
                raise _too_large(most)
            pieces.append(piece)
    return b"".join(pieces)


def _blocks(data: bytes, most: int) -> list[bytes]:
    """The blocks of snappy; all is one where nothing says otherwise."""
    if not data.startswith(_XERIAL):
        return [data]
    blocks: list[bytes] = []
    at, plain = _XERIAL_HEADER, 0
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        if size <= 0:
            raise ValueError(f"a block of it has {size} bytes")
        blocks.append(data[at + 4 : at + 4 + size])
        plain += _plain_size(blocks[-1])
        if plain > most:
            raise _too_large(most)
        at += 4 + size
    return blocks


def _snappy(pa: Any, block: bytes, most: int) -> bytes:
    size = _plain_size(block)
    if size > most:
        raise _too_large(most)
    plain: bytes = pa.decompress(block, decompressed_size=size, codec="snappy", asbytes=True)
    return plain


def _plain_size(block: bytes) -> int:
    """What a block of snappy says that it holds: seven bits a byte, the lowest first."""
    size = 0
    for n, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << 7 * n
        if not byte & 0x80:
            return size
    raise ValueError("a block of it has no size")


def _too_large(most: int) -> ValueError:
    return ValueError(f"it holds more than {most} bytes")
