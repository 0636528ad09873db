"""Runs: rows records that follow each other in one transaction and table, joined to one payload.

A record of one row costs everybody behind the source as much as one of a hundred. So they are
handed on together: of each a mark that no record begins with, its length, how many offsets it lies
before the last one (both 32 bits, the low byte first), and its bytes. So what is left of a run
behind some of its records is one too. A payload of one record is the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

MOST_RECORDS: Final = 1000
MOST_BYTES: Final = 256 * 1024

MARK: Final = b"\xff" * 10
"""What a run begins with; a record begins with a number, and those of Avro are not as long."""

RUN_FRONT: Final = Struct(f"<{len(MARK)}sII")
"""What stands before a record of a run: `MARK`, its length, its distance to the last one."""


def joined(records: Sequence[tuple[int, bytes]]) -> bytes:
    """The payload of some records, each with its offset; at least one."""
    return run_of([offset for offset, _ in records], [value for _, value in records])


def run_of(offsets: Sequence[int], values: Sequence[bytes]) -> bytes:
    """As `joined`, of offsets and bytes that stand apart."""
    if len(values) == 1:
        return values[0]
    last, pack, parts = offsets[-1], RUN_FRONT.pack, list[bytes]()
    for offset, value in zip(offsets, values, strict=True):
        parts += (pack(MARK, len(value), last - offset), value)
    return b"".join(parts)


def rejoined(payloads: Sequence[tuple[int, bytes]]) -> bytes:
    """The payload of some payloads, each with the offset of its last record; at least one."""
    if len(payloads) == 1:
        return payloads[0][1]
    last, pack, parts = payloads[-1][0], RUN_FRONT.pack, list[bytes]()
    for offset, payload in payloads:
        # Mostly it is one record, and nothing is to be taken apart.
        records = records_of(payload) if payload.startswith(MARK) else ((0, payload),)
        for older, record in records:
            parts += (pack(MARK, len(record), last - offset + older), record)
    return b"".join(parts)


def records_of(payload: bytes) -> Sequence[tuple[int, bytes]]:
    """The records of a payload, see `setl.codec.row_codec.RowCodec.records`."""
    found: list[tuple[int, bytes]] = []
    at, front = 0, RUN_FRONT.size
    while payload.startswith(MARK, at) and at + front <= len(payload):
        _, size, older = RUN_FRONT.unpack_from(payload, at)
        begin = at + front
        at = begin + size
        found.append((older, payload[begin:at]))
    return found or ((0, payload),)


def record_begin(payload: bytes) -> int:
    """Where the first record of a payload begins."""
    return RUN_FRONT.size if payload.startswith(MARK) else 0
