"""The end of a source's stream as it was at some moment."""

from __future__ import annotations

from typing import NamedTuple

from setl.model.position import Position


class StreamEnd(NamedTuple):
    """Where a source's stream ended at some moment.

    Attributes:
        position: the place.
        time: the moment, seconds since 1970, by the clock of the source's server.
        by_time: whether the stream may end before what the source's tables show, so that only
            commit times tell when everything has come that was there.
    """

    position: Position
    time: float
    by_time: bool = False
