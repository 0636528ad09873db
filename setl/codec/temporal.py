"""Dates and times as the text that rows hold (see `setl.model.schema.Kind`).

Text, since Python's own types have neither zero dates nor times beyond a day. The parts of a
date or time repeat from row to row, so their text is kept.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

ZERO_DATETIME: Final = "0000-00-00 00:00:00.000000"
_DAY: Final = 86_400


@lru_cache(maxsize=16_384)
def date_text(year: int, month: int, day: int) -> str:
    """``YYYY-MM-DD``; any part may be zero."""
    return f"{year:04d}-{month:02d}-{day:02d}"


@lru_cache(maxsize=_DAY + 1)
def clock_text(hour: int, minute: int, second: int) -> str:
    """``hh:mm:ss``, with more digits for the hour where it needs them."""
    return f"{hour:02d}:{minute:02d}:{second:02d}"


@lru_cache(maxsize=4096)
def day_text(days: int) -> str:
    """The date that is this many days after 1970-01-01."""
    # Years from March on, so that the leap day comes last; 719468 days lie between
    # 0000-03-01 and 1970-01-01, 146097 in 400 years.
    era, of_era = divmod(days + 719_468, 146_097)
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    shifted = month + 3 if month < 10 else month - 9
    return date_text(year + era * 400 + (shifted <= 2), shifted, day)


def timestamp_text(seconds: int, micros: int) -> str:
    """A time in seconds since 1970 UTC; MySQL's TIMESTAMP has no 0, it stands for its zero date."""
    if not seconds and not micros:
        return ZERO_DATETIME
    days, rest = divmod(seconds, _DAY)
    minutes, second = divmod(rest, 60)
    hour, minute = divmod(minutes, 60)
    return f"{day_text(days)} {clock_text(hour, minute, second)}.{micros:06d}"
