"""Figures with their units, as people read them."""

from __future__ import annotations

from typing import Any

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def duration(seconds: float) -> str:
    """A time span: ``0.4 s``, ``12 s``, ``5 min 10 s``, ``3 h 20 min``, ``2 d 4 h``."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    for unit, below, size, part in (
        ("min", "s", _MINUTE, 1),
        ("h", "min", _HOUR, _MINUTE),
        ("d", "h", _DAY, _HOUR),
    ):
        if whole < size * {"min": 60, "h": 24, "d": 1 << 30}[unit]:
            rest = whole % size // part
            return f"{whole // size} {unit}" + (f" {rest} {below}" if rest else "")
    return f"{whole} s"


def size(number: float) -> str:
    """A number of bytes: ``512 B``, ``1.4 KiB``, ``128 MiB``, ``1.2 GiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return _short(number, unit)
        number /= 1024
    return _short(number, "TiB")


def rate(per_second: float, of: str) -> str:
    """How many a second: ``0.3 rows/s``, ``12,345 rows/s``."""
    number = f"{per_second:.2g}" if 0 < per_second < 10 else f"{per_second:,.0f}"
    return f"{number} {of}/s"


def count(number: int, one: str, many: str) -> str:
    """How many: ``1 row``, ``12,345 rows``."""
    return f"{number:,} {one if number == 1 else many}"


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
