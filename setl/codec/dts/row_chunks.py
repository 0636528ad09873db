"""Runs: rows records that follow each other in one transaction and table, joined to one payload.

A record of one row costs everybody behind the source as much as one of a hundred. So they are
handed on together: of each a mark that no record begins with, its length, its offset (both 32 bits,
the low byte first; of an offset the lowest), and its bytes. So what is left of a run behind some of
its records is one too, and runs behind each other are one. A payload of one record is the record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from struct import Struct
from typing import Final

MOST_RECORDS: Final = 1000
MOST_BYTES: Final = 256 * 1024

MARK: Final = b"\xff" * 10
"""What a run begins with; a record begins with a number, and those of Avro are not as long."""

CHUNK_FRONT: Final = Struct(f"<{len(MARK)}sII")
"""What stands before a record of a run: `MARK`, its length, its offset's lowest bits."""

LOW_32_BITS: Final = 0xFFFF_FFFF
"""The bits of an offset that stand there. Records of a run lie less than as many apart."""


def joined(records: Sequence[tuple[int, bytes]]) -> bytes:
    """The payload of some records, each with its offset; at least one."""
    return chunk_of([offset for offset, _ in records], [value for _, value in records])


def chunk_of(offsets: Sequence[int], values: Sequence[bytes]) -> bytes:
    """As `joined`, of offsets and bytes that stand apart."""
    if len(values) == 1:
        return values[0]
    low_offsets = [offset & LOW_32_BITS for offset in offsets]
    fronts = map(CHUNK_FRONT.pack, repeat(MARK), map(len, values), low_offsets)
    return b"".join(chain.from_iterable(zip(fronts, values, strict=True)))


def rejoined(payloads: Sequence[tuple[int, bytes]]) -> bytes:
    """The payload of some payloads, each with the offset of its last record; at least one."""
    if len(payloads) == 1:
        return payloads[0][1]
    parts = list[bytes]()
    for offset, payload in payloads:
        if not payload.startswith(MARK):
            parts.append(CHUNK_FRONT.pack(MARK, len(payload), offset & LOW_32_BITS))
        parts.append(payload)
    return b"".join(parts)


def records_of(payload: bytes) -> Sequence[tuple[int, bytes]]:
    """The records of a payload, see `setl.codec.row_codec.RowCodec.records`."""
    found = [(offset, payload[begin:end]) for offset, begin, end in _extents(payload)]
    if not found:
        return ((0, payload),)
    last = found[-1][0]
    return [(last - offset & LOW_32_BITS, record) for offset, record in found]


def last_low_offset(payload: bytes) -> int:
    """Of a payload's last record, what stands of its offset; 0 if that stands nowhere."""
    low_offsets = [offset for offset, _, _ in _extents(payload)]
    return low_offsets[-1] if low_offsets else 0


def _extents(payload: bytes) -> Iterator[tuple[int, int, int]]:
    """Of the records of a run, what stands of the offset, and where they begin and end."""
    at, front = 0, CHUNK_FRONT.size
    while payload.startswith(MARK, at) and at + front <= len(payload):
        _, size, offset = CHUNK_FRONT.unpack_from(payload, at)
        begin = at + front
        at = begin + size
        yield offset, begin, at


def record_begin(payload: bytes) -> int:
    """Where the first record of a payload begins."""
    return CHUNK_FRONT.size if payload.startswith(MARK) else 0
