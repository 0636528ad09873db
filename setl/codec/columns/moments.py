"""Dates and times as the text that rows hold (see `setl.codec.temporal`), from numbers."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from setl.codec.columns.digits import (
    MOST_MONTHS,
    clocks_of_day,
    ended,
    fours,
    months,
    pairs,
    thousandths,
)
from setl.codec.columns.fields import Field, UnfitValuesError
from setl.codec.columns.window import Mask, Positions

DATE_WIDTH: Final = 10  # YYYY-MM-DD
MOMENT_WIDTH: Final = 26  # YYYY-MM-DD hh:mm:ss.ffffff
TIME_WIDTH: Final = 17  # -hhh:mm:ss.ffffff
MONTHS: Final = 13
"""A year's months, of which the first is that of dates without one."""

MOST_HOURS: Final = 999
MOST_MICROS: Final = 999_999

_Unsigned = NDArray[np.unsignedinteger[Any]]
_DAY: Final = 86_400
_DAYS: Final = (1 << 32) // _DAY + 1


def put_date(month: _Unsigned, day: _Unsigned, field: Field) -> None:
    """Store ``YYYY-MM-DD``.

    Args:
        month: year * `MONTHS` + month.
        day: below 32.
        field: where.

    Raises:
        UnfitValuesError: a year has more than four digits.
    """
    _put_months(month, field)
    field.put(8, "<u2", pairs().take(day.astype(np.int64)))


def put_moment(
    month: _Unsigned,
    day: _Unsigned,
    clock: NDArray[Any],
    micros: NDArray[np.uint32] | None,
    field: Field,
) -> None:
    """Store ``YYYY-MM-DD hh:mm:ss.ffffff``; see `put_date`.

    Args:
        month: see `put_date`.
        day: likewise.
        clock: eight letters in one number.
        micros: None for none.
        field: where.
    """
    _put_months(month, field)
    field.put(8, "<u4", ended(2, " ", 32).take(day))
    field.put(11, "<u8", clock)
    _put_micros(micros, field.behind(19))


def put_time(
    clock: NDArray[np.uint32], micros: NDArray[np.uint32] | None, negative: Mask, field: Field
) -> Positions:
    """Store ``[-]hh:mm:ss.ffffff``; returns where it begins in each field, at whose end it ends.

    Args:
        clock: the hour above 6 bits of the minute and 6 of the second.
        micros: None for none.
        negative: which are below zero.
        field: where.

    Raises:
        UnfitValuesError: a time has too many hours.
    """
    hour = clock >> np.uint32(12)
    if (hour > MOST_HOURS).any():
        raise UnfitValuesError("a time has too many hours")
    field.put(1, "<u4", ended(3, ":", 1_000).take(hour))
    field.put(5, "<u4", ended(2, ":", 64).take(clock >> np.uint32(6) & np.uint32(63)))
    field.put(8, "<u4", ended(2, ".", 64).take(clock & np.uint32(63)))
    _put_micros(micros, field.behind(10))
    starts = 1 + (hour < 100).astype(np.int64)
    if negative.any():
        starts -= negative
        field.put_at(starts, "u1", ord("-"), negative)
    return starts


def _put_months(number: _Unsigned, field: Field) -> None:
    """Store ``YYYY-MM-``."""
    if (number >= MOST_MONTHS).any():
        raise UnfitValuesError("a year has too many digits")
    field.put(0, "<u8", months().take(number.astype(np.int64)))


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


def put_stamp(seconds: NDArray[np.uint32], micros: NDArray[np.uint32] | None, field: Field) -> None:
    """Store ``YYYY-MM-DD hh:mm:ss.ffffff`` of seconds since 1970, or that of no date for none."""
    days = seconds // np.uint32(_DAY)
    date = _dates().take(days)
    clock = clocks_of_day().take(seconds - days * np.uint32(_DAY))
    none = seconds == 0 if micros is None else (seconds == 0) & (micros == 0)
    if none.any():
        date = np.where(none, np.uint32(0), date)
    put_moment(date >> np.uint32(5), date & np.uint32(31), clock, micros, field)


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
    return ((year * MONTHS + shifted) << 5 | day).astype(np.uint32)
