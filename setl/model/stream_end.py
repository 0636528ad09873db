"""The end of a source's stream as it was at some moment."""

from __future__ import annotations

from typing import NamedTuple

from setl.model.position import Position


class StreamEnd(NamedTuple):
    """Where a source's stream ended at some moment.

    Attributes:
        position: the place; None if the stream may end before what the source's tables show, so
            that only time tells.
        time: seconds since 1970, by the clock of the source's server.
    """

    position: Position | None
    time: float
