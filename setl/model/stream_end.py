"""The end of a source's stream as it was at some moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from setl.model.checkpoint import Checkpoint
from setl.model.position import Position


def in_order(reached: Position, position: Position) -> bool:
    """Whether `reached` lies at or behind `position`, two positions of one stream."""
    return reached.order >= position.order


class StreamEnd(NamedTuple):
    """Where a source's stream ended at some moment.

    Attributes:
        position: the position; None if the stream may end before what the source's tables show, so
            that only time tells.
        time: seconds since 1970, by the clock of the source's server.
    """

    position: Position | None
    time: float

    def is_past(
        self, reached: Checkpoint, passed: Callable[[Position, Position], bool] = in_order
    ) -> bool:
        """Whether everything before the end is applied.

        Args:
            reached: how far a pipeline is.
            passed: whether a pipeline that has come to the first position has all before the
                second.
        """
        if self.position is not None:
            return passed(reached.resume, self.position)
        # Commit times have whole seconds: what is of this second may still come.
        return reached.timestamp >= int(self.time) + 1
