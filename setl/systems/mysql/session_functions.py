"""Functions whose result depends on the session that calls them, or on when it does.

One list for all who have to know: each takes the part that matters to it.
"""

from __future__ import annotations

from typing import Final

NOW: Final = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"})
"""The time, as a default of a TIMESTAMP or DATETIME may say it."""

CLOCK: Final = NOW | frozenset({
    "CURRENT_DATE", "CURDATE", "CURRENT_TIME", "CURTIME", "UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP",
})  # fmt: skip
"""What the clock says; of a function with an argument see `BY_TIME_ZONE`."""

BY_TIME_ZONE: Final = frozenset({"UNIX_TIMESTAMP", "FROM_UNIXTIME", "CONVERT_TZ"})
"""Functions that convert between UTC and the session's time zone."""

OF_DAYS: Final = frozenset({
    "DATE", "DATETIME", "TIMESTAMP", "TO_DAYS", "TO_SECONDS", "LAST_DAY", "YEAR", "QUARTER",
    "MONTH", "MONTHNAME", "WEEK", "WEEKOFYEAR", "WEEKDAY", "YEARWEEK", "DAY", "DAYNAME",
    "DAYOFMONTH", "DAYOFWEEK", "DAYOFYEAR", "DATE_FORMAT", "UNIX_TIMESTAMP", "TIMESTAMPDIFF",
    "DATEDIFF", "DATE_ADD", "DATE_SUB", "ADDDATE", "SUBDATE",
})  # fmt: skip
"""Functions and types that make a date of a TIME, with today's in the session's time zone."""

BY_SETTINGS: Final = frozenset({
    "DAYNAME", "MONTHNAME", "DATE_FORMAT", "TIME_FORMAT", "STR_TO_DATE",  # lc_time_names
    "WEEK", "YEARWEEK",  # default_week_format
    "FORMAT",
    "REGEXP", "RLIKE", "REGEXP_REPLACE", "REGEXP_SUBSTR", "REGEXP_INSTR", "REGEXP_LIKE",
    "DATABASE", "SCHEMA", "USER", "CURRENT_USER", "SESSION_USER", "SYSTEM_USER",
})  # fmt: skip
"""Functions whose result depends on other settings of the session."""
