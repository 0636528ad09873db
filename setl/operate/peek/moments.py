"""Times of records as people read them."""

from __future__ import annotations

from datetime import UTC, datetime


def iso_time(seconds: float) -> str:
    """A time in UTC, to the second if it has no fraction; "" for 0 and for what no clock shows."""
    if not seconds:
        return ""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
