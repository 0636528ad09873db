"""Times as people write them on a command line."""

from __future__ import annotations

import re
from datetime import datetime

import click

_AFTER = re.compile(r"\+(\d+(?:\.\d+)?)(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_time(text: str, now: float) -> float:
    """A time in seconds since 1970 UTC.

    Args:
        text: ISO 8601, in local time unless it names a zone (``2026-11-21T22:00``,
            ``2026-11-21T22:00:00+08:00``), or ``+30s``, ``+5m``, ``+2h``, ``+1d`` from now.
        now: the present, seconds since 1970 UTC.

    Raises:
        click.UsageError: it is neither.
    """
    after = _AFTER.fullmatch(text.strip())
    if after:
        return now + float(after[1]) * _SECONDS[after[2]]
    try:
        # Without a zone it is local time, as every clock on the wall is.
        return datetime.fromisoformat(text.strip()).astimezone().timestamp()
    except (ValueError, OverflowError):
        raise click.UsageError(
            f"not a time: {text!r}; write 2026-11-21T22:00, with or without a zone, or +5m"
        ) from None
