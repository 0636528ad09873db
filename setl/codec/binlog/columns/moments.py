"""Dates and times by column, as the text that rows hold (see `setl.codec.temporal`).

Bits that make no moment a server has written, such as a fraction of more than a second, have no
text here: `UnfitValuesError`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from setl.codec.binlog.columns.digits import (
    MOST_MONTHS,
    clocks,
    clocks_of_day,
    ended,
    fours,
    months,
    pairs,
    thousandths,
)
from setl.codec.binlog.columns.fields import Field, UnfitValuesError
from setl.codec.binlog.columns.offsets import ColumnValues
from setl.codec.binlog.columns.window import Positions
from setl.codec.binlog.tables.table_map import ColumnType

DATE_WIDTH: Final = 10  # YYYY-MM-DD
MOMENT_WIDTH: Final = 26  # YYYY-MM-DD hh:mm:ss.ffffff
TIME_WIDTH: Final = 17  # -hhh:mm:ss.ffffff

_UNITS: Final = (1, 10_000, 100, 1)  # microseconds in one unit of 0 to 3 bytes
_MOST_MICROS: Final = 999_999
_DAY: Final = 86_400
_DAYS: Final = (1 << 32) // _DAY + 1
_MONTHS: Final = 12


def fraction_bytes(digits: int) -> int:
    """Bytes that hold so many digits of a second."""
    return (digits + 1) // 2


def put_date(values: ColumnValues, column: int, field: Field) -> None:
    """Store ``YYYY-MM-DD`` of a DATE column.

    Raises:
        UnfitValuesError: see the module's text.
    """
    bits = values.numbers(column)
    month, year = bits >> np.uint64(5) & np.uint64(15), bits >> np.uint64(9)
    if (month > _MONTHS).any():
        raise UnfitValuesError("a year has too many months")
    _put_months(year * np.uint64(13) + month, field)
    field.put(8, "<u2", pairs().take((bits & np.uint64(31)).astype(np.int64)))


def put_moment(values: ColumnValues, column: int, field: Field) -> None:
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
        seconds = head.astype(np.uint32)
        days = seconds // np.uint32(_DAY)
        date = _dates().take(days)
        clock = clocks_of_day().take(seconds - days * np.uint32(_DAY))
        none = seconds == 0 if micros is None else (seconds == 0) & (micros == 0)
        if none.any():
            date = np.where(none, np.uint32(0), date)
    else:
        if (head >> np.uint64(39) == 0).any():
            raise UnfitValuesError("a date is negative")
        clock = clocks().take((head & np.uint64((1 << 17) - 1)).astype(np.int64))
        date = (head >> np.uint64(17) & np.uint64((1 << 22) - 1)).astype(np.uint32)
    _put_months(date >> np.uint32(5), field)
    field.put(8, "<u4", ended(2, " ", 32).take(date & np.uint32(31)))
    field.put(11, "<u8", clock)
    _put_micros(micros, field.behind(19))


def _put_months(number: NDArray[np.unsignedinteger[Any]], field: Field) -> None:
    """Store ``YYYY-MM-``, of year * 13 + month."""
    if (number >= MOST_MONTHS).any():
        raise UnfitValuesError("a year has too many digits")
    field.put(0, "<u8", months().take(number.astype(np.int64)))


def put_time(values: ColumnValues, column: int, field: Field) -> Positions:
    """Store ``[-]hh:mm:ss.ffffff`` of a TIME column; returns where it begins in each field.

    It ends where the field does.

    Raises:
        UnfitValuesError: see the module's text.
    """
    width = fraction_bytes(values.layout.columns[column].wire.length)
    size = 3 + width
    raw = values.window.big_endian(values.starts(column), size).astype(np.int64)
    raw -= 1 << (8 * size - 1)
    negative = raw < 0
    bits = np.abs(raw).astype(np.uint64)
    clock = (bits >> np.uint64(8 * width)).astype(np.uint32)
    hour = clock >> np.uint32(12) & np.uint32(0x3FF)
    if (hour > 999).any():
        raise UnfitValuesError("a time has too many hours")
    field.put(1, "<u4", ended(3, ":", 1_000).take(hour))
    field.put(5, "<u4", ended(2, ":", 64).take(clock >> np.uint32(6) & np.uint32(63)))
    field.put(8, "<u4", ended(2, ".", 64).take(clock & np.uint32(63)))
    _put_micros(_micros(bits, width), field.behind(10))
    starts = 1 + (hour < 100).astype(np.int64)
    if negative.any():
        starts -= negative
        field.put_at(starts, "u1", ord("-"), negative)
    return starts


def micros_of(values: ColumnValues, column: int) -> NDArray[np.uint32] | None:
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
    if (micros > _MOST_MICROS).any():
        raise UnfitValuesError("a fraction is more than a second")
    return micros


def _put_micros(micros: NDArray[np.uint32] | None, field: Field) -> None:
    """Store ``.ffffff``."""
    if micros is None:
        field.put(0, "<u4", thousandths()[0])
        field.put(3, "<u4", fours()[0])
        return
    upper = micros // np.uint32(10_000)
    field.put(0, "<u4", thousandths().take(micros // np.uint32(1_000)))
    # The third digit is written again.
    field.put(3, "<u4", fours().take(micros - upper * np.uint32(10_000)))


@cache
def _dates() -> NDArray[np.uint32]:
    """By the days since 1970-01-01: year * 13 + month in front of 5 bits of the day."""
    # As `setl.codec.temporal.day_text` has it.
    era, of_era = np.divmod(np.arange(_DAYS, dtype=np.int64) + 719_468, 146_097)
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    shifted = np.where(month < 10, month + 3, month - 9)
    year += era * 400 + (shifted <= 2)
    return ((year * 13 + shifted) << 5 | day).astype(np.uint32)
