"""Dates and times by column, as the text that rows hold (see `setl.codec.temporal`).

Bits that make no moment a server has written, such as a fraction of more than a second, have no
text here: `UnfitValuesError`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from setl.codec.binlog.columns.offsets import ColumnOffsets
from setl.codec.binlog.tables.table_map import ColumnType
from setl.codec.columns import moments
from setl.codec.columns.digits import clocks
from setl.codec.columns.fields import Field, UnfitValuesError
from setl.codec.columns.window import Positions

_UNITS: Final = (1, 10_000, 100, 1)  # microseconds in one unit of 0 to 3 bytes
_MONTHS: Final = 12


def fraction_bytes(digits: int) -> int:
    """Bytes that hold so many digits of a second."""
    return (digits + 1) // 2


def put_date(values: ColumnOffsets, column: int, field: Field) -> None:
    """Store ``YYYY-MM-DD`` of a DATE column.

    Raises:
        UnfitValuesError: see the module's text.
    """
    bits = values.numbers(column)
    month, year = bits >> np.uint64(5) & np.uint64(15), bits >> np.uint64(9)
    if (month > _MONTHS).any():
        raise UnfitValuesError("a year has too many months")
    moments.put_date(year * np.uint64(moments.MONTHS) + month, bits & np.uint64(31), field)


def put_moment(values: ColumnOffsets, column: int, field: Field) -> None:
    """Store ``YYYY-MM-DD hh:mm:ss.ffffff`` of a DATETIME or TIMESTAMP column.

    Raises:
        UnfitValuesError: see the module's text.
    """
    wire = values.layout.columns[column].wire
    stamp = wire.type == ColumnType.TIMESTAMP2
    width = fraction_bytes(wire.length)
    raw = values.window.big_endian(values.starts(column), (4 if stamp else 5) + width)
    head = raw >> np.uint64(8 * width) if width else raw
    micros = _micros(raw, width)
    if stamp:
        moments.put_stamp(head.astype(np.uint32), micros, field)
        return
    if (head >> np.uint64(39) == 0).any():
        raise UnfitValuesError("a date is negative")
    clock = clocks().take((head & np.uint64((1 << 17) - 1)).astype(np.int64))
    date = (head >> np.uint64(17) & np.uint64((1 << 22) - 1)).astype(np.uint32)
    moments.put_moment(date >> np.uint32(5), date & np.uint32(31), clock, micros, field)


def put_time(values: ColumnOffsets, column: int, field: Field) -> Positions:
    """Store ``[-]hh:mm:ss.ffffff`` of a TIME column; returns where it begins in each field.

    It ends where the field does.

    Raises:
        UnfitValuesError: see the module's text.
    """
    width = fraction_bytes(values.layout.columns[column].wire.length)
    size = 3 + width
    raw = values.window.big_endian(values.starts(column), size).astype(np.int64)
    raw -= 1 << (8 * size - 1)
    bits = np.abs(raw).astype(np.uint64)
    clock = (bits >> np.uint64(8 * width)).astype(np.uint32) & np.uint32((1 << 22) - 1)
    return moments.put_time(clock, _micros(bits, width), raw < 0, field)


def micros_of(values: ColumnOffsets, column: int) -> NDArray[np.uint32] | None:
    """Microseconds of the moments or times of a column; None if it has no fraction.

    Raises:
        UnfitValuesError: see the module's text.
    """
    wire = values.layout.columns[column].wire
    width = fraction_bytes(wire.length)
    if not width:
        return None
    whole = {ColumnType.TIMESTAMP2: 4, ColumnType.DATETIME2: 5, ColumnType.TIME2: 3}
    size = whole[ColumnType(wire.type)] + width
    raw = values.window.big_endian(values.starts(column), size)
    if wire.type == ColumnType.TIME2:
        raw = np.abs(raw.astype(np.int64) - (1 << (8 * size - 1))).astype(np.uint64)
    return _micros(raw, width)


def _micros(raw: NDArray[np.uint64], width: int) -> NDArray[np.uint32] | None:
    if not width:
        return None
    micros = (raw & np.uint64((1 << 8 * width) - 1)).astype(np.uint32) * np.uint32(_UNITS[width])
    if (micros > moments.MOST_MICROS).any():
        raise UnfitValuesError("a fraction is more than a second")
    return micros
