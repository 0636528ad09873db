"""Runs: rows records that follow each other in one transaction and table, joined to one payload.

A record of one row costs everybody behind the source as much as one of a hundred. So they are
handed on together: of each a mark that no record begins with, its length, its offset (both 32 bits,
the low byte first; of an offset the lowest), and its bytes. So what is left of a run behind some of
its records is one too, and runs behind each other are one. A payload of one record is the record.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    begins, ends, offsets = run_of(payload)
    if not begins:
        return ((0, payload),)
    last = offsets[-1]
    return [
        (last - offset & LOW_32_BITS, payload[begin:end])
        for begin, end, offset in zip(begins, ends, offsets, strict=True)
    ]


def run_of(payload: bytes) -> tuple[list[int], list[int], list[int]]:
    """Where the records of a run begin, where they end, and what stands of their offsets.

    Nothing of a payload that is one record.
    """
    begins, ends, offsets = list[int](), list[int](), list[int]()
    at, front, unpack = 0, CHUNK_FRONT.size, CHUNK_FRONT.unpack_from
    last = len(payload) - front
    while at <= last:
        mark, size, offset = unpack(payload, at)
        if mark != MARK:
            break
        at += front
        begins.append(at)
        at += size
        ends.append(at)
        offsets.append(offset)
    return begins, ends, offsets


def record_begin(payload: bytes) -> int:
    """Where the first record of a payload begins."""
    return CHUNK_FRONT.size if payload.startswith(MARK) else 0


def first_record(payload: bytes) -> bytes:
    """The first record of a payload."""
    begin = CHUNK_FRONT.size
    if not payload.startswith(MARK) or len(payload) < begin:
        return payload
    _, size, _ = CHUNK_FRONT.unpack_from(payload)
    return payload[begin : begin + size]
