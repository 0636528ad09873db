"""Heartbeats: rows of ``retl.xdual`` as they come out of the stream."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from setl.model.change import DecodedRows, Value


class HeartbeatSeen(NamedTuple):
    """A heartbeat that came back through the stream.

    Attributes:
        id: ``ID`` of the row of ``retl.xdual``: whose heartbeat it is.
        written_at: when the source wrote it, seconds since 1970 UTC by the source's clock.
    """

    id: int
    written_at: float


def heartbeats_in(decoded: DecodedRows) -> list[HeartbeatSeen]:
    """The heartbeats among rows of ``retl.xdual``; removed rows and zero dates are none."""
    columns = {name.lower(): i for i, name in enumerate(decoded.schema.names)}
    id_at, written_at = columns.get("id"), columns.get("x")
    seen: list[HeartbeatSeen] = []
    if id_at is None or written_at is None:
        return seen
    for _, after in decoded.images:
        if after is None:
            continue
        number, seconds = after[id_at], _seconds(after[written_at])
        if isinstance(number, int) and seconds is not None:
            seen.append(HeartbeatSeen(number, seconds))
    return seen


def _seconds(value: Value) -> float | None:
    """A UTC date and time as text, in seconds since 1970; None for NULL and zero dates."""
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
