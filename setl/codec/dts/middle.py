"""Reads by hand the part of a row's record between its positions and its images.

That is its origin (transaction and source), its operation, and its table with tags and columns.
Origin and table are the same for most records that follow each other, and the operation is one byte
between them; so whoever has read them once mostly needs to compare bytes only.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from setl.codec.dts.scan import ARRAY, Misread, extent_at, long_at, text_at, text_end
from setl.codec.dts.wire import symbols

NEVER: Final = b"\xff" * 11
"""Bytes that no record has anywhere: no number of Avro is as long."""

_OPERATIONS: Final = symbols("operation")
SOURCES: Final = len(symbols("source"))
"""How many kinds of sources there are, numbered from 0 on."""


class Middle(NamedTuple):
    """See the module.

    Attributes:
        operation: as the schema names it.
        name: ``objectName``, "" if there is none.
        tags: name → value.
        columns: name and MySQL type number of each.
        end: the offset of the images.
    """

    operation: str
    name: str
    tags: dict[str, str]
    columns: tuple[tuple[str, int], ...]
    end: int


def read_middle(data: bytes, at: int) -> Middle:
    """Read it from the offset behind ``safeSourcePosition`` on.

    Raises:
        Misread: see `setl.codec.dts.scan`; also if the record names no columns.
        IndexError: likewise.
        ValueError: likewise.
    """
    operation, name, at = _operation_at(data, at)
    times, at = long_at(data, at)
    if times == 1:
        count, at = _count_at(data, at)
        for _ in range(count):
            _, at = long_at(data, at)
        at = _ended(data, at) if count else at
    elif times:
        raise Misread
    tags, at = tags_at(data, at)
    if data[at] != ARRAY:
        raise Misread
    count, at = _count_at(data, at + 1)
    columns: list[tuple[str, int]] = []
    for _ in range(count):
        column, at = text_at(data, at)
        number, at = long_at(data, at)
        columns.append((column, number))
    at = _ended(data, at) if count else at
    return Middle(operation, name, tags, tuple(columns), at)


def source_end(data: bytes, at: int) -> int:
    """The offset of the operation, from that behind ``safeSourcePosition`` on."""
    _, at = extent_at(data, at)  # sourceTxid
    source, at = long_at(data, at)
    if not 0 <= source < SOURCES:
        raise Misread
    return extent_at(data, at)[1]  # its version


def _operation_at(data: bytes, at: int) -> tuple[str, str, int]:
    """Operation, ``objectName`` and the offset behind it.

    From the offset behind ``safeSourcePosition`` on. Raises as `read_middle`.
    """
    operation, at = long_at(data, source_end(data, at))
    named, at = long_at(data, at)
    if not 0 <= operation < len(_OPERATIONS):
        raise Misread
    name = ""
    if named == 1:
        name, at = text_at(data, at)
    elif named:
        raise Misread
    return _OPERATIONS[operation], name, at


def tags_at(data: bytes, at: int) -> tuple[dict[str, str], int]:
    """The tags at an offset, and the offset behind them. Raises as `read_middle`."""
    count, at = _count_at(data, at)
    tags: dict[str, str] = {}
    for _ in range(count):
        key, at = text_at(data, at)
        tags[key], at = text_at(data, at)
    return tags, _ended(data, at) if count else at


def tags_end(data: bytes, at: int) -> int:
    """The offset behind the tags, from that behind ``objectName`` on; 0 if they are unusual.

    Raises as `read_middle`.
    """
    count = data[at + 1]
    if data[at] or count & 0x81:
        return 0
    end = at + 2
    # Once for a key and once for a value: numbers are twice as large in the bytes.
    for _ in range(count):
        end = text_end(data, end)
    if count:
        end += 1
        return 0 if data[end - 1] else end
    return end


def _count_at(data: bytes, at: int) -> tuple[int, int]:
    """How many items are in the first block of an array or a map."""
    count, at = long_at(data, at)
    if not 0 <= count <= len(data):
        raise Misread
    return count, at


def _ended(data: bytes, at: int) -> int:
    """The offset behind the end of an array or a map, if it ends with its first block."""
    if data[at]:
        raise Misread
    return at + 1
