"""Dates and times as numbers, the way Debezium has them."""

from __future__ import annotations

from datetime import date
from functools import lru_cache
from typing import Final

_EPOCH: Final = date(1970, 1, 1).toordinal()
_DAY: Final = 86_400_000_000
_SECOND: Final = 1_000_000


@lru_cache(16_384)
def days_of(text: str) -> int | None:
    """Days since 1970-01-01 of ``YYYY-MM-DD``; None if a part of it is zero.

    Raises:
        ValueError: there is no such day.
    """
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    if not (year and month and day):
        return None
    try:
        return date(year, month, day).toordinal() - _EPOCH
    except ValueError as error:
        raise ValueError(f"the day {text} does not exist") from error


def micros_of(text: str) -> int | None:
    """Microseconds since 1970 of ``YYYY-MM-DD hh:mm:ss.ffffff``; None if the date is zero.

    Raises:
        ValueError: there is no such day.
    """
    days = days_of(text[:10])
    return None if days is None else days * _DAY + clock_micros(text[11:])


def clock_micros(text: str) -> int:
    """Microseconds of ``[-]hh:mm:ss.ffffff``."""
    negative = text[:1] == "-"
    hours, minutes, seconds = text[1:].split(":") if negative else text.split(":")
    whole, _, fraction = seconds.partition(".")
    total = (int(hours) * 3_600 + int(minutes) * 60 + int(whole)) * _SECOND
    total += int(fraction.ljust(6, "0")) if fraction else 0
    return -total if negative else total
