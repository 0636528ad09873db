"""Tables of digits, from which numbers are written without working each digit out.

They are made when they are first asked for. That takes some milliseconds, so what forks workers
asks first.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ZERO: Final = ord("0")

_Texts = NDArray[Any]
"""Texts of 2, 4 or 8 bytes, as unsigned numbers."""

_MONTHS: Final = 13  # servers count 13 to a year
MOST_MONTHS: Final = 10_000 * _MONTHS
"""Years and months from 0 on that have a text: years have four digits."""


def _texts(rows: list[bytes], dtype: str) -> _Texts:
    return np.frombuffer(b"".join(rows), dtype)


@cache
def pairs() -> _Texts:
    """``00`` to ``99``."""
    return _texts([b"%02d" % n for n in range(100)], "<u2")


@cache
def fours() -> _Texts:
    """``0000`` to ``9999``."""
    return _texts([b"%04d" % n for n in range(10_000)], "<u4")


@cache
def thousandths() -> _Texts:
    """``.000`` to ``.999``."""
    return _texts([b".%03d" % n for n in range(1_000)], "<u4")


@cache
def ended(digits: int, mark: str, count: int) -> _Texts:
    """Numbers below `count` in so many digits and a mark, filled up to four bytes."""
    return _texts([(b"%0*d" % (digits, n) + mark.encode()).ljust(4) for n in range(count)], "<u4")


@cache
def months() -> _Texts:
    """``YYYY-MM-`` by year * 13 + month."""
    number = np.arange(MOST_MONTHS)
    year, month = number // _MONTHS, number % _MONTHS
    text = np.full((MOST_MONTHS, 8), ord("-"), np.uint8)
    for i, unit in enumerate((1_000, 100, 10, 1)):
        text[:, i] = year // unit % 10 + ZERO
    text[:, 5], text[:, 6] = month // 10 + ZERO, month % 10 + ZERO
    return text.view("<u8").ravel()


def _clocks(hour: NDArray[Any], minute: NDArray[Any], second: NDArray[Any]) -> _Texts:
    text = np.full((len(hour), 8), ord(":"), np.uint8)
    for i, part in ((0, hour), (3, minute), (6, second)):
        text[:, i], text[:, i + 1] = part // 10 + ZERO, part % 10 + ZERO
    return text.view("<u8").ravel()


@cache
def clocks() -> _Texts:
    """``hh:mm:ss`` by 5 bits of the hour, 6 of the minute and 6 of the second."""
    bits = np.arange(1 << 17)
    return _clocks(bits >> 12, bits >> 6 & 63, bits & 63)


@cache
def clocks_of_day() -> _Texts:
    """``hh:mm:ss`` by the second of the day."""
    second = np.arange(86_400)
    return _clocks(second // 3_600, second // 60 % 60, second % 60)


def make_tables() -> None:
    """Make the large tables."""
    for table in (fours, months, clocks, clocks_of_day):
        table()


def put_digits(values: NDArray[np.uint32], digits: int) -> list[tuple[int, str, _Texts]]:
    """Numbers in so many digits, as parts to store: the offset of each, its type, its texts.

    Args:
        values: below 10 to the power of `digits`.
        digits: 1 to 9.
    """
    parts: list[tuple[int, str, _Texts]] = []
    while digits > 4:
        rest = values // np.uint32(10_000)
        digits -= 4
        parts.append((digits, "<u4", fours().take(values - rest * np.uint32(10_000))))
        values = rest
    if digits == 4:
        parts.append((0, "<u4", fours().take(values)))
    elif digits == 3:
        rest = values // np.uint32(100)
        parts.append((1, "<u2", pairs().take(values - rest * np.uint32(100))))
        parts.append((0, "u1", rest + np.uint32(ZERO)))
    elif digits == 2:
        parts.append((0, "<u2", pairs().take(values)))
    else:
        parts.append((0, "u1", values + np.uint32(ZERO)))
    return parts


_POWERS: Final = np.array([10**n for n in range(10)], np.uint32)
# By the bits of a number, a power of ten that is not above it or the next one.
_ABOUT: Final = np.array([bits * 1233 >> 12 for bits in range(34)], np.uint8)
_EXPONENT: Final = np.uint64(52)
_BIAS: Final = 1022


def count_digits(values: NDArray[np.uint32]) -> NDArray[np.int64]:
    """How many digits numbers below 10**9 have; 0 has one."""
    least = np.maximum(values, 1)
    bits = (least.astype(np.float64).view(np.uint64) >> _EXPONENT).astype(np.int64) - _BIAS
    about = _ABOUT.take(bits)
    return about + (least >= _POWERS.take(about)).astype(np.int64)
