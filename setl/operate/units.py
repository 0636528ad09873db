"""Figures with their units, as people read them, on a terminal and on a page. Pure."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from typing import Any, Final

from setl.counting import UNKNOWN, count

__all__ = [
    "DIFFERENCES", "ECHOES", "UNKNOWN", "between", "count", "duration", "figure", "iso_time",
    "moment", "percent", "rate", "size",
]  # fmt: skip

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_FEWEST_SECONDS = 0.0005

ECHOES: Final = (
    "transaction of this channel came back and was",
    "transactions of this channel came back and were",
)
"""What is counted with `count`; before "not dropped"."""

DIFFERENCES: Final = ("key of source and target differs", "keys of source and target differ")


def duration(seconds: float | None) -> str:
    """A time span: ``340 ms``, ``4.2 s``, ``12 s``, ``5 min 10 s``, ``3 h 20 min``, ``2 d 4 h``."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    if _FEWEST_SECONDS <= seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    for unit, below, size_of_one, part, limit in (
        ("min", "s", _MINUTE, 1, _HOUR),
        ("h", "min", _HOUR, _MINUTE, _DAY),
        ("d", "h", _DAY, _HOUR, math.inf),
    ):
        if whole < limit:
            rest = whole % size_of_one // part
            return f"{whole // size_of_one} {unit}" + (f" {rest} {below}" if rest else "")
    raise AssertionError("every time span is shorter than for ever")


def between(least: float | None, most: float | None) -> str:
    """A time span of which the bounds are known: ``6 s to 51 s``; `most` alone without `least`."""
    return duration(most) if least is None else f"{duration(least)} to {duration(most)}"


def size(number: float | None) -> str:
    """A number of bytes: ``512 B``, ``1.4 KiB``, ``128 MiB``, ``1.2 GiB``."""
    if number is None:
        return UNKNOWN
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return _short(number, unit)
        number /= 1024
    return _short(number, "TiB")


def rate(per_second: float | None, of: str = "") -> str:
    """How many a second: ``0.3 rows/s``, ``12,345 rows/s``; the number alone for no `of`."""
    if per_second is None:
        return UNKNOWN
    number = f"{per_second:.2g}" if 0 < per_second < 10 else f"{per_second:,.0f}"
    return f"{number} {of}/s" if of else number


def percent(part: float, whole: float) -> str:
    """A share of a whole."""
    return f"{100 * part / whole:.0f} %" if whole else UNKNOWN


def moment(seconds: float | None) -> str:
    """A Unix time as date and time of day in UTC, to the second."""
    if not seconds:
        return UNKNOWN
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))


def figure(name: str, value: Any) -> Any:
    """A figure by its name: sizes and time spans get units, all else stays as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if name.endswith("bytes"):
        return size(value)
    if name.endswith("bytes_per_second"):
        return f"{size(value)}/s"
    if name.endswith("_per_second"):
        return rate(value, name.removesuffix("_per_second"))
    if name.endswith(("seconds", "seconds_left")) or name == "lag" or name.startswith("lag_p"):
        return duration(value)
    return value


def _short(number: float, unit: str) -> str:
    text = f"{number:.1f}" if number < 10 and unit != "B" else f"{number:.0f}"
    return f"{text.removesuffix('.0')} {unit}"


def iso_time(seconds: float) -> str:
    """A time in UTC, to the second if it has no fraction; "" for 0 and for what no clock shows."""
    if not seconds:
        return ""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
