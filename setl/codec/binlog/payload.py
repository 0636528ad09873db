"""MySQL's TRANSACTION_PAYLOAD event: a transaction whose events are compressed together.

The body is a list of fields (type, length, value, each a length-encoded integer), ended by a
type of 0, and then the payload: whole events without checksums, from BEGIN to XID. Source:
``codecs/binary.cpp`` in MySQL's ``libs/mysql/binlog/event``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from setl.codec.binlog.event import CHECKSUM_BYTES, HEADER_BYTES, packed_integer

_PAYLOAD_SIZE: Final = 1
_COMPRESSION: Final = 2
_PLAIN_SIZE: Final = 3  # UNCOMPRESSED_SIZE
_ZSTD: Final = 0
_NONE: Final = 255

_PIECE: Final = 1024 * 1024  # bytes uncompressed at a time
_LARGEST: Final = 1024 * 1024 * 1024  # MySQL's own limit of an event


def payload_events(event: bytes, *, checksum: bool) -> Iterator[bytes]:
    """The events inside, one after another, without holding all of them.

    Raises:
        ValueError, IndexError, OSError: the bytes are none, or damaged.
    """
    compression, start, size, plain_size = _payload(event, checksum=checksum)
    if compression == _NONE:
        yield from _events(_Plain(event, start, size), plain_size)
    elif compression == _ZSTD:
        # Imported here: it takes a while, which `setl --help` and the like need not wait.
        import pyarrow as pa  # noqa: PLC0415

        source = pa.BufferReader(pa.py_buffer(event).slice(start, size))
        with pa.CompressedInputStream(source, "zstd") as stream:
            yield from _events(stream, plain_size)
    else:
        raise ValueError(f"it is compressed in an unknown way ({compression})")


def _payload(event: bytes, *, checksum: bool) -> tuple[int, int, int, int]:
    """Type of the compression, where the payload begins, its bytes, and those that it becomes."""
    values: dict[int, int] = {}
    field, at = packed_integer(event, HEADER_BYTES)
    while field:
        length, at = packed_integer(event, at)
        values[field], _ = packed_integer(event, at)
        field, at = packed_integer(event, at + length)
    size, compression = values[_PAYLOAD_SIZE], values[_COMPRESSION]
    there = len(event) - (CHECKSUM_BYTES if checksum else 0) - at
    if size != there:
        raise ValueError(f"its payload has {there} bytes and not {size}")
    # MySQL leaves that out where nothing is compressed.
    plain_size = values.get(_PLAIN_SIZE, size) if compression == _NONE else values[_PLAIN_SIZE]
    return compression, at, size, plain_size


class _Plain:
    """Reads a payload that is not compressed, as a file."""

    def __init__(self, event: bytes, start: int, size: int) -> None:
        self._event = event
        self._at = start
        self._end = start + size

    def read(self, size: int) -> bytes:
        at = self._at
        self._at = min(self._end, at + size)
        return self._event[at : self._at]


def _events(stream: Any, size: int) -> Iterator[bytes]:
    """The events that come out of a stream, which has to be of `size` bytes."""
    data, at = b"", 0
    left = size
    while True:
        needed = HEADER_BYTES
        while len(data) - at >= HEADER_BYTES:
            needed = int.from_bytes(data[at + 9 : at + 13], "little")
            if not HEADER_BYTES <= needed <= min(_LARGEST, len(data) - at + left):
                raise ValueError(f"an event of {needed} bytes is in it")
            if len(data) - at < needed:
                break
            yield data[at : at + needed]
            at += needed
            needed = HEADER_BYTES
        data, at = data[at:], 0
        # Twice as much each time: room is taken before it is known whether so much comes.
        more = stream.read(max(_PIECE, min(needed - len(data), len(data))))
        if not more:
            break
        left -= len(more)
        if left < 0:
            raise ValueError(f"more than {size} bytes came out of it")
        data += more
    if data:
        raise ValueError("its payload ends inside an event")
    if left:
        raise ValueError(f"{size - left} bytes came out of it instead of {size}")
