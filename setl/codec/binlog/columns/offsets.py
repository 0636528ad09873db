"""Where the values of each column lie in some images, and which of them are NULL."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setl.codec.binlog.columns.layout import RowLayout
from setl.codec.columns.window import Mask, Positions, Window, either

_SIGNED: Final = {1: "i1", 2: "<i2", 4: "<i4", 8: "<i8"}  # sizes that processors have


class Spans(NamedTuple):
    """Where the values of a column lie that have their length in front of them.

    Attributes:
        starts: of each value its first byte.
        stops: the byte behind its last one; the same as its start for a NULL.
    """

    starts: Positions
    stops: Positions

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Bytes of each value, 0 for a NULL."""
        return self.stops - self.starts


class _Span(NamedTuple):
    """Where values lie: `ahead` bytes behind positions; `stops` if they are not of one size."""

    at: Positions
    ahead: int
    stops: Positions | None = None


class ColumnOffsets:
    """Where the values of all columns lie in some images of one table.

    Attributes:
        layout: of the table.
        data: the bytes they lie in.
        window: the same bytes as numbers.
        count: how many images there are.
        nulls: of each column that has NULLs in them, which they are; by its index.
        stops: where each image ends.
        cached: values that somebody has made already, by the index of their column.
    """

    def __init__(self, layout: RowLayout, window: Window, starts: Positions) -> None:
        """Go over the images that begin at these positions."""
        self.layout = layout
        self.data = window.payload
        self.window = window
        self.count = len(starts)
        self.cached: dict[int, list[Any]] = {}
        self.nulls: dict[int, Mask] = self._nulls(starts)
        self._spans, self.stops = self._go_over(starts)

    def starts(self, column: int) -> Positions:
        """Where each value of a column of a fixed size begins.

        NULLs are read at `Window.zero`: no byte of another value is taken for theirs.
        """
        at, ahead, _ = self._spans[column]
        return at + ahead if ahead else at

    def spans(self, column: int) -> Spans:
        """Where each value lies of a column whose values have their length in front of them."""
        at, _, stops = self._spans[column]
        if stops is None:
            raise TypeError(f"values of column {column} are of one size")
        return Spans(at, stops)

    def numbers(self, column: int) -> NDArray[np.uint64]:
        """The values of a column of 1 to 8 bytes as numbers, the lowest byte first."""
        return self.window.little_endian(self.starts(column), self.layout.columns[column].size)

    def _nulls(self, starts: Positions) -> dict[int, Mask]:
        nulls: dict[int, Mask] = {}
        columns = self.layout.columns
        for first in range(0, len(columns), 8):
            nullable = [
                i for i in range(first, min(first + 8, len(columns))) if columns[i].nullable
            ]
            if not nullable:
                continue
            byte = self.window.bytes[starts + (first >> 3)]
            if not byte.any():
                continue
            for i in nullable:
                bit = byte & np.uint8(1 << (i & 7))
                if bit.any():
                    nulls[i] = bit != 0
        return nulls

    def integers(self, column: int) -> NDArray[np.int64] | NDArray[np.uint64]:
        """The values of a column of integers; for NULLs any number."""
        layout = self.layout.columns[column]
        if layout.unsigned:
            return self.numbers(column)
        if layout.size in _SIGNED:
            return self.window.view(_SIGNED[layout.size])[self.starts(column)].astype(np.int64)
        # The sign is the highest bit of the value, so that has to become the highest of all.
        shift = np.int64(64 - 8 * layout.size)
        return self.numbers(column).view(np.int64) << shift >> shift

    def _go_over(self, starts: Positions) -> tuple[list[_Span], Positions]:
        spans: list[_Span] = []
        at, ahead = starts, self.layout.width
        for i, column in enumerate(self.layout.columns):
            null, size = self.nulls.get(i), column.size
            if null is None and size >= 0:
                spans.append(_Span(at, ahead))
                ahead += size
                continue
            at = at + ahead if ahead else at
            ahead = 0
            if null is not None and size >= 0:
                spans.append(_Span(either(null, self.window.zero, at), 0))
                at = at + either(null, 0, size)
                continue
            first = at - size
            stop = first + self.window.lengths(at, -size)
            if null is not None:
                first, stop = either(null, at, first), either(null, at, stop)
            spans.append(_Span(first, 0, stop))
            at = stop
        return spans, at + ahead if ahead else at
