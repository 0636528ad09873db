"""Heartbeats: rows of ``retl.xdual`` as they come out of the stream."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from setl.codec.row_codec import RowCodec
from setl.model.change import DecodedRows, Value
from setl.model.entry import Entry

_MAX_SOURCES = 64  # sources, about; what they sent last is kept


class HeartbeatSeen(NamedTuple):
    """A heartbeat that came back through the stream.

    Attributes:
        id: ``ID`` of the row of ``retl.xdual``: whose heartbeat it is.
        written_at: when the source wrote it, seconds since 1970 UTC by the source's clock.
    """

    id: int
    written_at: float


class Heartbeats:
    """Reads them out of entries. Each is decoded once, however many pipelines read it.

    Thread-safe: at worst one is decoded twice.
    """

    def __init__(self) -> None:
        """Nothing was read yet."""
        self._last: dict[tuple[RowCodec, tuple[bytes, ...]], _Read] = {}

    def read(self, codec: RowCodec, entry: Entry) -> Sequence[HeartbeatSeen]:
        """The heartbeats of an entry of ``retl.xdual``; raises what `RowCodec.decode` raises."""
        like = codec, entry.context
        known = self._last.get(like)
        if known is not None and known.payload == entry.payload:
            return known.seen
        seen = heartbeats_in(codec.decode(entry.payload, entry.context))
        if len(self._last) >= _MAX_SOURCES:
            self._last.clear()
        self._last[like] = _Read(entry.payload, seen)
        return seen


class _Read(NamedTuple):
    payload: bytes
    seen: Sequence[HeartbeatSeen]


HEARTBEATS: Final = Heartbeats()
"""What this process has read last."""


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
