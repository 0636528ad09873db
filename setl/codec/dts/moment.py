"""Dates and times of DTS images as the text that rows hold.

``millis`` holds microseconds, whatever its name says. Parts that are not there count as 0: a DATE
has no clock, a TIME no date. What cannot be a time that a server wrote is refused: servers round a
fraction of seven digits, and many more, in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from setl.codec.dts.scan import Misread, long_at
from setl.codec.temporal import clock_text, date_text, timestamp_text
from setl.model.change import Value
from setl.model.schema import Kind

_OFFSET: Final = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_SECOND: Final = 1_000_000  # microseconds
_THERE: Final = 2  # the branch int of a member
_THERE_BYTE: Final = b"\2"
_NO_CLOCK: Final = b"\0\0\0\0"  # hour, minute, second and millis that are not there
_CALENDAR: Final = ("year", "month", "day")
_CLOCK: Final = ("hour", "minute", "second", "millis")
MOMENTS: Final = frozenset({Kind.DATE, Kind.TIME, Kind.DATETIME, Kind.TIMESTAMP, Kind.YEAR})
"""Kinds that a date or time can be of."""


def moment_kind(hinted: Kind | None, raw: dict[str, Any]) -> Kind:
    """The kind of a DateTime value: by its type number, else by the parts that it has."""
    if hinted in MOMENTS:
        return hinted
    if raw["hour"] is None:
        return Kind.DATE
    return Kind.TIME if raw["year"] is None else Kind.DATETIME


def timestamp_value(raw: dict[str, Any]) -> Value:
    """The Timestamp branch: seconds since 1970 UTC."""
    return timestamp_text(raw["timestamp"], _micros(raw))


def year_value(raw: dict[str, Any]) -> Value:
    """YEAR; a writer may fill the rest of a date up."""
    return raw["year"] or 0


def date_value(raw: dict[str, Any]) -> Value:
    """DATE.

    Raises:
        ValueError: it has a clock, which a DATE could not keep.
    """
    if any(raw[part] for part in _CLOCK):
        raise ValueError("the type number says DATE, and the value has a time of day")
    return date_text(raw["year"] or 0, raw["month"] or 0, raw["day"] or 0)


def time_value(raw: dict[str, Any]) -> Value:
    """TIME; the sign stands at whichever parts are not 0.

    Raises:
        ValueError: it has a date, which a TIME could not keep.
    """
    if any(raw[part] for part in _CALENDAR):
        raise ValueError("the type number says TIME, and the value has a date")
    hour, minute, second = raw["hour"] or 0, raw["minute"] or 0, raw["second"] or 0
    micros = raw["millis"] or 0
    _check_micros(abs(micros))
    sign = "-" if min(hour, minute, second, micros) < 0 else ""
    return f"{sign}{clock_text(abs(hour), abs(minute), abs(second))}.{abs(micros):06d}"


def datetime_value(raw: dict[str, Any]) -> Value:
    """DATETIME.

    Raises:
        ValueError: it has a clock alone, or such a fraction of a second as there is none.
    """
    if raw["year"] is None and any(raw[part] for part in _CLOCK):
        raise ValueError("the type number says DATETIME, and the value has no date")
    date = date_text(raw["year"] or 0, raw["month"] or 0, raw["day"] or 0)
    clock = clock_text(raw["hour"] or 0, raw["minute"] or 0, raw["second"] or 0)
    return f"{date} {clock}.{_micros(raw):06d}"


def _micros(raw: dict[str, Any]) -> int:
    micros = raw["millis"] or 0
    _check_micros(micros)
    return micros


def _check_micros(micros: int) -> None:
    if not 0 <= micros < _SECOND:
        raise ValueError(f"a second has no {micros} microseconds")


class _Texts(dict[bytes, str]):
    """Texts of what stands in the bytes, made when they are first asked for.

    KeyError for bytes that are not of the form. All are forgotten when they are too many.
    """

    def __init__(self, text: Callable[[bytes], str | None], most: int) -> None:
        super().__init__()
        self._text = text
        self._most = most

    def __missing__(self, data: bytes) -> str:
        text = self._text(data)
        if text is None:
            raise KeyError
        if len(self) >= self._most:
            self.clear()
        self[data] = text
        return text


def _members(data: bytes, *sizes: int) -> tuple[int, ...] | None:
    """Members of a DateTime of so many bytes each; None if they are others, or negative."""
    numbers: list[int] = []
    at = 0
    try:
        for size in sizes:
            if data[at] != _THERE:
                return None
            number, behind = long_at(data, at + 1)
            if number < 0 or behind != at + 1 + size:
                return None
            numbers.append(number)
            at = behind
    except (IndexError, Misread):
        return None
    return tuple(numbers)


def _date_of(data: bytes) -> str | None:
    parts = _members(data, 2, 1, 1)
    return None if parts is None else date_text(*parts)


def _minute_of(data: bytes) -> str | None:
    parts = _members(data, 1, 1)
    return None if parts is None else clock_text(*parts, 0)[:-2]


def _digits_of(data: bytes) -> str | None:
    parts = _members(data[:2], 1) if data[2:] == _THERE_BYTE else None
    return None if parts is None else f"{parts[0]:02d}"


def _second_of(data: bytes) -> str | None:
    parts = _members(_THERE_BYTE + data, 5)
    return None if parts is None else timestamp_text(parts[0], 0)[:19]


_DATES: Final = _Texts(_date_of, 16_384)
# In two parts, so that there are few of each: times of a day are 86,400, and hardly any two of
# them are the same in a table that is read once.
_MINUTES: Final = _Texts(_minute_of, 1 << 13)
_DIGITS: Final = _Texts(_digits_of, 1 << 7)
_SECONDS: Final = _Texts(_second_of, 1 << 16)


def datetime_at(data: bytes, at: int) -> tuple[str, int] | None:
    """DATETIME with its members in the bytes at an offset, and the offset behind them.

    None if it is not as usual: all members there, the year of two bytes.
    """
    try:
        text = (
            f"{_DATES[data[at : at + 7]]} {_MINUTES[data[at + 7 : at + 11]]}"
            f"{_DIGITS[data[at + 11 : at + 14]]}"  # with the branch of what follows
        )
    except KeyError:
        return None
    return _with_micros(text, data, at + 14)


def timestamp_at(data: bytes, at: int) -> tuple[str, int] | None:
    """The Timestamp branch; see `datetime_at`. From 1974 on seconds are of five bytes."""
    try:
        text = _SECONDS[data[at : at + 5]]
    except KeyError:
        return None
    return _with_micros(text, data, at + 5)


def date_at(data: bytes, at: int) -> tuple[str, int] | None:
    """DATE without a clock; see `datetime_at`."""
    if data[at + 7 : at + 11] != _NO_CLOCK:
        return None
    try:
        return _DATES[data[at : at + 7]], at + 11
    except KeyError:
        return None


def _with_micros(text: str, data: bytes, at: int) -> tuple[str, int] | None:
    """A text with a fraction: microseconds, in up to three bytes."""
    number = data[at]
    if number > 0x7F:
        at += 1
        byte = data[at]
        number = number & 0x7F | byte << 7
        if byte > 0x7F:
            at += 1
            byte = data[at]
            number = number & 0x3FFF | byte << 14
            if byte > 0x7F:
                return None
    if number & 1 or number >= 2 * _SECOND:
        return None
    return f"{text}.{number >> 1:06d}", at + 1


def zoned_value(raw: dict[str, Any]) -> Value:
    """A time with a zone, moved to UTC; a date with a zero part has no instant and stays.

    Raises:
        ValueError: the zone is not known, or its clocks showed that time twice, or never.
    """
    parts = raw["zoned"]
    if not (parts["year"] and parts["month"] and parts["day"]):
        return datetime_value(parts)
    local = datetime(
        parts["year"],
        parts["month"],
        parts["day"],
        parts["hour"] or 0,
        parts["minute"] or 0,
        parts["second"] or 0,
        parts["millis"] or 0,
        _zone(raw["timezone"]),
    )
    if local.utcoffset() != local.replace(fold=1).utcoffset():
        raise ValueError(f"clocks of {raw['timezone']} showed {local:%F %T} twice, or never")
    return local.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo:
    if name.upper() in ("", "Z", "UTC", "GMT"):
        return UTC
    offset = _OFFSET.fullmatch(name.upper())
    if offset:
        sign, hours, minutes = offset.groups()
        distance = timedelta(hours=int(hours), minutes=int(minutes or 0))
        return timezone(-distance if sign == "-" else distance)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"the time zone {name!r} is not known") from error
