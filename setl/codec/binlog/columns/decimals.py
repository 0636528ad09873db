"""DECIMAL columns as the text that rows hold, see `value_number.decimal_reader` for the layout."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setl.codec.binlog.columns.offsets import ColumnOffsets
from setl.codec.binlog.tables.table_map import WireColumn, digit_bytes
from setl.codec.columns.digits import ZERO, count_digits, put_digits
from setl.codec.columns.fields import Field, UnfitValuesError
from setl.codec.columns.window import Mask, Positions

_LEAST: Final = tuple(10**digits for digits in range(10))
_WHOLE_NUMBER: Final = 8  # bytes that are one number for a processor


class _Group(NamedTuple):
    """Some digits that are one number.

    Attributes:
        offset: of its first byte in a value.
        size: its bytes.
        digits: how many they are.
    """

    offset: int
    size: int
    digits: int


def decimal_width(column: WireColumn) -> int:
    """Letters of the longest text: a sign, the digits, and a point."""
    return 1 + max(column.length - column.scale, 1) + (1 + column.scale if column.scale else 0)


def put_decimal(values: ColumnOffsets, column: int, field: Field) -> Positions:
    """Store a DECIMAL column as servers print it; returns where it begins in each field.

    It ends where the field does.

    Raises:
        UnfitValuesError: digits are none.
    """
    wire = values.layout.columns[column].wire
    whole, part = _groups(wire)
    numbers, negative = _numbers(values, column, [*whole, *part])
    at = 1  # behind the sign
    width = max(wire.length - wire.scale, 1)
    length = np.ones(values.count, np.int64)
    if not whole:
        field.put(at, "u1", ZERO)
        at += 1
    below = sum(group.digits for group in whole)
    for number, group in zip(numbers, whole, strict=False):
        _put(number, group, field.behind(at))
        at += group.digits
        below -= group.digits
        # Of the groups with a digit that is not 0 the first one counts.
        own = count_digits(number) + below
        length = np.maximum(length, np.where(number > 0, own, 1) if below else own)
    if part:
        field.put(at, "u1", ord("."))
        at += 1
    for number, group in zip(numbers[len(whole) :], part, strict=True):
        _put(number, group, field.behind(at))
        at += group.digits
    starts = 1 + width - length
    if negative is not None:
        starts -= negative
        field.put_at(starts, "u1", ord("-"), negative)
    return starts


def _put(number: NDArray[np.uint32], group: _Group, field: Field) -> None:
    if (number >= _LEAST[group.digits]).any():
        raise UnfitValuesError("a decimal has digits that are none")
    for offset, dtype, texts in put_digits(number, group.digits):
        field.put(offset, dtype, texts)


def _groups(wire: WireColumn) -> tuple[list[_Group], list[_Group]]:
    """The groups of digits before the point, and those behind it."""
    before, scale = wire.length - wire.scale, wire.scale
    sizes = ([before % 9] if before % 9 else []) + [9] * (before // 9)
    split = len(sizes)
    sizes += [9] * (scale // 9) + ([scale % 9] if scale % 9 else [])
    groups: list[_Group] = []
    offset = 0
    for digits in sizes:
        groups.append(_Group(offset, digit_bytes(digits), digits))
        offset += groups[-1].size
    return groups[:split], groups[split:]


def _numbers(
    values: ColumnOffsets, column: int, groups: list[_Group]
) -> tuple[list[NDArray[np.uint32]], Mask | None]:
    """The number of each group, and which values are below zero; None if none is."""
    starts, window = values.starts(column), values.window
    total = sum(group.size for group in groups)
    if total <= _WHOLE_NUMBER:
        raw = window.big_endian(starts, total)
        parts = [
            (raw >> np.uint64(8 * (total - group.offset - group.size))).astype(np.uint32)
            for group in groups
        ]
    else:
        parts = [
            window.big_endian(starts + group.offset, group.size).astype(np.uint32)
            for group in groups
        ]
    # The highest bit is set unless it is negative; then all bits are turned round.
    bit = np.uint32(1 << (8 * groups[0].size - 1))
    masks = [np.uint32((1 << 8 * group.size) - 1) for group in groups]
    parts = [part & mask for part, mask in zip(parts, masks, strict=True)]
    negative = parts[0] & bit == 0
    parts[0] = parts[0] ^ bit
    if not negative.any():
        return parts, None
    parts = [
        part ^ np.where(negative, mask, np.uint32(0))
        for part, mask in zip(parts, masks, strict=True)
    ]
    some = np.zeros(values.count, np.bool_)
    for part in parts:
        some |= part != 0
    negative &= some  # there is no -0
    return parts, negative if negative.any() else None
