"""Figures as short text for people: human units, and a dash for what is not known. Pure."""

from __future__ import annotations

import math
import time

UNKNOWN = "–"  # noqa: RUF001 - a dash in its own right

_SPANS = (
    (1, 0.001, 0, "ms"),
    (60, 1, 1, "s"),
    (5400, 60, 0, "min"),
    (48 * 3600, 3600, 1, "h"),
)
"""Below how many seconds a span is told in which unit, and with how many decimals."""

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")


def duration(seconds: float | None) -> str:
    """A span of time: ``340 ms``, ``4.2 s``, ``3 min``, ``5.1 h``, ``12 d``."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    if seconds < 0.0005:
        return "0 s"
    for limit, unit, decimals, name in _SPANS:
        if seconds < limit:
            return f"{seconds / unit:.{decimals}f} {name}"
    return f"{seconds / 86400:.0f} d"


def size(number: float | None) -> str:
    """Bytes: ``512 B``, ``1.4 GiB``."""
    if number is None:
        return UNKNOWN
    value, unit = float(number), 0
    while value >= 1024 and unit < len(_SIZES) - 1:
        value, unit = value / 1024, unit + 1
    return (
        f"{value:.0f} {_SIZES[unit]}"
        if unit == 0 or value >= 100
        else f"{value:.1f} {_SIZES[unit]}"
    )


def count(number: float | None) -> str:
    """A whole number with groups of three digits."""
    return UNKNOWN if number is None else f"{number:,.0f}"


def rate(number: float | None) -> str:
    """Rows a second; small rates keep a decimal."""
    if number is None:
        return UNKNOWN
    return f"{number:,.1f}" if 0 < number < 10 else f"{number:,.0f}"


def percent(part: float, whole: float) -> str:
    """A share of a whole."""
    return UNKNOWN if not whole else f"{100 * part / whole:.0f} %"


def moment(seconds: float | None) -> str:
    """A time of day with its date in UTC, to the second."""
    if not seconds:
        return UNKNOWN
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))
