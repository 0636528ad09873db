"""Writes dates and times in their normal form as values of DTS images: the inverse of `moment`.

The parts of a date or time repeat from row to row, so their bytes are kept.
"""

from __future__ import annotations

from datetime import date
from functools import lru_cache
from typing import Final, cast

from setl.codec.dts.avro_bytes import NULL, long_bytes
from setl.codec.temporal import ZERO_DATETIME
from setl.model.change import Value

_TIMESTAMP: Final = long_bytes(5)  # branches of the union
_DATETIME: Final = long_bytes(6)
_ZERO_TIMESTAMP: Final = _TIMESTAMP + long_bytes(0) + long_bytes(0)
_EPOCH: Final = date(1970, 1, 1)


def _part(number: int) -> bytes:
    """A member of DateTime: the branch int of its union, and the number."""
    return long_bytes(1) + long_bytes(number)


_NO_DATE: Final = NULL * 3
_NO_CLOCK: Final = NULL * 4
_NO_MICROS: Final = _part(0)


@lru_cache(maxsize=16_384)
def _date_parts(text: str) -> bytes:
    """``YYYY-MM-DD``; any part may be zero."""
    year, month, day = text.split("-")
    return _part(int(year)) + _part(int(month)) + _part(int(day))


@lru_cache(maxsize=86_400)
def _clock_parts(text: str) -> bytes:
    """``[-]hh:mm:ss``. Each part gets the sign, as clients expect it, for any may be 0."""
    sign = -1 if text[0] == "-" else 1
    hour, minute, second = text.lstrip("-").split(":")
    return _part(sign * int(hour)) + _part(sign * int(minute)) + _part(sign * int(second))


@lru_cache(maxsize=16_384)
def _midnight(text: str) -> int:
    """Seconds from 1970 to the beginning of a day."""
    return (date.fromisoformat(text) - _EPOCH).days * 86_400


@lru_cache(maxsize=86_400)
def _of_day(text: str) -> int:
    """Seconds from the beginning of a day to ``hh:mm:ss``."""
    hour, minute, second = text.split(":")
    return int(hour) * 3600 + int(minute) * 60 + int(second)


def write_date(value: Value) -> bytes:
    """DATE: the branch DateTime without a clock."""
    return _DATETIME + _date_parts(cast("str", value)) + _NO_CLOCK


def write_year(value: Value) -> bytes:
    """YEAR: the branch DateTime with a year only."""
    return _DATETIME + _part(cast("int", value)) + NULL * 2 + _NO_CLOCK


def write_datetime(value: Value) -> bytes:
    """DATETIME: the branch DateTime; ``millis`` gets the microseconds."""
    text = cast("str", value)
    micros = int(text[20:])
    return (
        _DATETIME
        + _date_parts(text[:10])
        + _clock_parts(text[11:19])
        + (_part(micros) if micros else _NO_MICROS)
    )


def write_time(value: Value) -> bytes:
    """TIME: the branch DateTime without a date."""
    text = cast("str", value)
    micros = int(text[-6:])
    clock = _clock_parts(text[:-7])
    return _DATETIME + _NO_DATE + clock + _part(-micros if text[0] == "-" else micros)


def write_timestamp(value: Value) -> bytes:
    """TIMESTAMP: the branch Timestamp; MySQL's zero date is second 0, which no other is."""
    text = cast("str", value)
    if text == ZERO_DATETIME:
        return _ZERO_TIMESTAMP
    seconds = _midnight(text[:10]) + _of_day(text[11:19])
    return _TIMESTAMP + long_bytes(seconds) + long_bytes(int(text[20:]))
