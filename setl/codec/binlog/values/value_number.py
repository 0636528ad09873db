"""Reads numbers out of a row.

A reader takes the row's bytes and an offset and gives the value and the offset after it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from setl.codec.binlog.tables.table_map import ColumnType, WireColumn, digit_bytes
from setl.model.change import Value

Reader = Callable[[bytes, int], tuple[Value, int]]

_SIGNED: Final = {
    ColumnType.TINY: struct.Struct("<b"),
    ColumnType.SHORT: struct.Struct("<h"),
    ColumnType.LONG: struct.Struct("<i"),
    ColumnType.LONGLONG: struct.Struct("<q"),
}
_UNSIGNED: Final = {
    ColumnType.TINY: struct.Struct("<B"),
    ColumnType.SHORT: struct.Struct("<H"),
    ColumnType.LONG: struct.Struct("<I"),
    ColumnType.LONGLONG: struct.Struct("<Q"),
}
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")


def integer_reader(column_type: int, *, unsigned: bool) -> Reader:
    """TINYINT to BIGINT."""
    if column_type == ColumnType.INT24:
        return _int24_unsigned if unsigned else _int24
    packed = (_UNSIGNED if unsigned else _SIGNED)[ColumnType(column_type)]
    return _struct_reader(packed)


def float_reader(column_type: int) -> Reader:
    """FLOAT and DOUBLE."""
    return _float if column_type == ColumnType.FLOAT else _struct_reader(_DOUBLE)


def _struct_reader(packed: struct.Struct) -> Reader:
    unpack = packed.unpack_from
    size = packed.size

    def read(data: bytes, at: int) -> tuple[Value, int]:
        return unpack(data, at)[0], at + size

    return read


def _int24_unsigned(data: bytes, at: int) -> tuple[Value, int]:
    return int.from_bytes(_exactly(data, at, 3), "little"), at + 3


def _int24(data: bytes, at: int) -> tuple[Value, int]:
    return int.from_bytes(_exactly(data, at, 3), "little", signed=True), at + 3


def _float(data: bytes, at: int) -> tuple[Value, int]:
    value: float = _FLOAT.unpack_from(data, at)[0]
    return shortest_float(value), at + 4


def shortest_float(value: float) -> float:
    """The number with the fewest digits that a FLOAT column stores as `value`.

    Four bytes hold what people write with up to 9 digits. Widened to a Python float, 0.1 would
    turn into 0.10000000149011612, which is no longer what was stored once it reaches a target
    with wider numbers.
    """
    for digits in (6, 7, 8):
        shorter = float(f"{value:.{digits}g}")
        if _as_float(shorter) == value:
            return shorter
    return float(f"{value:.9g}")


def _as_float(value: float) -> float | None:
    try:
        narrowed: float = _FLOAT.unpack(_FLOAT.pack(value))[0]
    except OverflowError:
        return None  # rounded beyond the largest FLOAT
    return narrowed


def year(data: bytes, at: int) -> tuple[Value, int]:
    """YEAR: one byte, years since 1900, or 0 for the year 0000."""
    value = data[at]
    return 1900 + value if value else 0, at + 1


def bit_reader(column: WireColumn) -> Reader:
    """BIT(n), highest byte first."""
    size = (column.length + 7) // 8

    def read(data: bytes, at: int) -> tuple[Value, int]:
        return int.from_bytes(_exactly(data, at, size), "big"), at + size

    return read


def decimal_reader(column: WireColumn) -> Reader:
    """DECIMAL as MySQL prints it.

    Nine digits stand in four bytes, what is left of the digits before the point in front of
    them, what is left of those after it behind; highest byte first. The highest bit is set for
    numbers that are not negative; for negative ones all bits are turned round. Source:
    ``decimal2bin`` in the server.
    """
    scale = column.scale
    groups = digit_groups(column.length - scale, scale)
    size = digit_bytes(column.length - scale) + digit_bytes(scale)
    bits = size * 8
    sign_bit = 1 << (bits - 1)
    all_bits = (1 << bits) - 1
    unit = 10**scale

    def read(data: bytes, at: int) -> tuple[Value, int]:
        raw = int.from_bytes(_exactly(data, at, size), "big")
        negative = not raw & sign_bit
        raw = (all_bits ^ raw ^ sign_bit) if negative else raw ^ sign_bit
        digits = 0
        for shift, mask, weight in groups:
            digits += (raw >> shift & mask) * weight
        sign = "-" if negative and digits else ""
        if not scale:
            return f"{sign}{digits}", at + size
        whole, part = divmod(digits, unit)
        return f"{sign}{whole}.{part:0{scale}d}", at + size

    return read


def digit_groups(whole: int, scale: int) -> list[tuple[int, int, int]]:
    """Where each group of digits lies, as (shift, mask, power of ten)."""
    sizes = [whole % 9] if whole % 9 else []
    sizes += [9] * (whole // 9 + scale // 9)
    if scale % 9:
        sizes.append(scale % 9)
    groups: list[tuple[int, int, int]] = []
    shift, weight = 0, 1
    for digits in reversed(sizes):
        width = digit_bytes(digits) * 8
        groups.append((shift, (1 << width) - 1, weight))
        shift += width
        weight *= 10**digits
    return groups


def _exactly(data: bytes, at: int, size: int) -> bytes:
    piece = data[at : at + size]
    if len(piece) != size:
        raise IndexError("the row ends inside a value")
    return piece
