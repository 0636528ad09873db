"""Dates and times of DTS images as the text that rows hold.

``millis`` holds microseconds, whatever its name says. Parts that are not there count as 0: a DATE
has no clock, a TIME no date.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from setl.codec.temporal import clock_text, date_text, timestamp_text
from setl.model.change import Value
from setl.model.schema import Kind

_OFFSET: Final = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_MOMENTS: Final = frozenset({Kind.DATE, Kind.TIME, Kind.DATETIME, Kind.TIMESTAMP, Kind.YEAR})


def moment_kind(hinted: Kind | None, raw: dict[str, Any]) -> Kind:
    """The kind of a DateTime value: by its type number, else by the parts that it has."""
    dated = raw["year"] is not None
    clocked = raw["hour"] is not None
    if hinted in _MOMENTS and not (hinted is Kind.DATETIME and not clocked):
        return hinted
    if clocked and not dated:
        return Kind.TIME
    return Kind.DATETIME if clocked else Kind.DATE


def timestamp_value(raw: dict[str, Any]) -> Value:
    """The Timestamp branch: seconds since 1970 UTC."""
    return timestamp_text(raw["timestamp"], raw["millis"])


def year_value(raw: dict[str, Any]) -> Value:
    """YEAR."""
    return raw["year"] or 0


def date_value(raw: dict[str, Any]) -> Value:
    """DATE."""
    return date_text(raw["year"] or 0, raw["month"] or 0, raw["day"] or 0)


def time_value(raw: dict[str, Any]) -> Value:
    """TIME; the sign stands at whichever parts are not 0."""
    hour, minute, second = raw["hour"] or 0, raw["minute"] or 0, raw["second"] or 0
    micros = raw["millis"] or 0
    sign = "-" if min(hour, minute, second, micros) < 0 else ""
    return f"{sign}{clock_text(abs(hour), abs(minute), abs(second))}.{abs(micros):06d}"


def datetime_value(raw: dict[str, Any]) -> Value:
    """DATETIME."""
    date = date_text(raw["year"] or 0, raw["month"] or 0, raw["day"] or 0)
    clock = clock_text(raw["hour"] or 0, raw["minute"] or 0, raw["second"] or 0)
    return f"{date} {clock}.{raw['millis'] or 0:06d}"


def zoned_value(raw: dict[str, Any]) -> Value:
    """A time with a zone, moved to UTC; a date with a zero part has no instant and stays.

    Raises:
        ValueError: the zone is not known.
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
