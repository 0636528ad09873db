"""MariaDB's compressed events: what ``log_bin_compress`` makes of QUERY and ROWS events.

The end of such an event is compressed: the statement, or all row images. In front of the bytes
of zlib stand a byte with the method and the number of bytes of the plain length, and that
length, highest byte first. Source: ``binlog_buf_compress`` and ``row_log_event_uncompress`` in
MariaDB's ``log_event.cc``.
"""

from __future__ import annotations

import zlib
from typing import Final

from setl.codec.binlog.event import (
    CHECKSUM_BYTES,
    COMPRESSED_ROWS,
    EVENT_HEADER,
    FIRST_ROWS,
    HEADER_BYTES,
    UPDATES,
    EventType,
    extra_data_end,
    packed_integer,
)

_COMPRESSED: Final = 0x80
_METHOD: Final = 0x70  # 0 is zlib, and there is no other
_LENGTH_BYTES: Final = 0x07
_LARGEST: Final = 1024 * 1024 * 1024  # the servers' own limit of an event


def inflated_rows(event: bytes, *, checksum: bool) -> bytes:
    """A compressed ROWS event as the event that it is otherwise, without a checksum.

    Raises:
        ValueError, IndexError, KeyError: it is none, or damaged.
    """
    at = _images_start(event)
    end = len(event) - CHECKSUM_BYTES if checksum else len(event)
    return _plain(event, COMPRESSED_ROWS[event[4]], at, end)


def inflated_query(event: bytes, *, checksum: bool) -> bytes:
    """A compressed QUERY event as a plain one, without a checksum.

    Raises:
        ValueError, IndexError: it is none, or damaged.
    """
    # Thread and seconds, the length of the schema's name, error, length of status variables.
    schema = event[HEADER_BYTES + 8]
    status = int.from_bytes(event[HEADER_BYTES + 11 : HEADER_BYTES + 13], "little")
    at = HEADER_BYTES + 13 + status + schema + 1
    end = len(event) - CHECKSUM_BYTES if checksum else len(event)
    return _plain(event, EventType.QUERY, at, end)


def images_bytes(event: bytes) -> int:
    """How many bytes the images of a compressed ROWS event take. Raises as `inflated_rows`."""
    return _plain_length(event, _images_start(event))[0]


def _images_start(event: bytes) -> int:
    kind = COMPRESSED_ROWS[event[4]]
    at = HEADER_BYTES + 8
    if kind not in FIRST_ROWS:
        at = extra_data_end(event, at)
    count, at = packed_integer(event, at)
    return at + (count + 7) // 8 * (2 if kind in UPDATES else 1)


def _plain_length(event: bytes, at: int) -> tuple[int, int]:
    """The length of what is compressed, and where its bytes begin."""
    front = event[at]
    if not front & _COMPRESSED or front & _METHOD:
        raise ValueError(f"it is compressed in an unknown way ({front:#04x})")
    start = at + 1 + (front & _LENGTH_BYTES)
    length = int.from_bytes(event[at + 1 : start], "big")
    if length > _LARGEST:
        raise ValueError(f"it says that it holds {length} bytes")
    return length, start


def _plain(event: bytes, kind: EventType, at: int, end: int) -> bytes:
    length, start = _plain_length(event, at)
    if start > end:
        raise IndexError("it ends in front of what is compressed")
    try:
        # The length limits what damaged bytes may grow to.
        inflation = zlib.decompressobj()
        data = inflation.decompress(event[start:end], length + 1)
    except zlib.error as error:
        raise ValueError(f"it cannot be uncompressed: {error}") from error
    if len(data) != length or not inflation.eof or inflation.unused_data:
        raise ValueError(f"{len(data)} bytes came out instead of {length}")
    seconds, _, server, _, next_offset, flags = EVENT_HEADER.unpack_from(event)
    header = EVENT_HEADER.pack(seconds, kind, server, at + length, next_offset, flags)
    return header + event[HEADER_BYTES:at] + data
