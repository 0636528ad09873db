"""Joins pieces of many rows, row by row, in one operation.

What is made for a column is written into memory of all rows. What a row is made of lies in the
payload, in such memory or among a few texts then. All of it is elements of one array of Arrow,
which takes them in the order of the rows: that costs a row no more than to copy its bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from setl.codec.columns.fields import Field, UnfitValuesError
from setl.codec.columns.texts import Texts
from setl.codec.columns.window import Positions, Window

_MOST_BYTES: Final = 1 << 30  # positions have 31 bits, and what is taken may be more

Fill = Callable[[Field], Positions | None]
"""Writes a column into its field; returns where a row's bytes begin in it if not at its front."""


class Slot(NamedTuple):
    """Bytes of a row that are made for it.

    Attributes:
        width: how many they are at most.
        fill: writes them. They end where the field does.
        trimmed: whether they may be fewer.
    """

    width: int
    fill: Fill
    trimmed: bool = False


def constant(text: bytes) -> Slot:
    """The same bytes in each row."""

    def fill(field: Field) -> None:
        for i, byte in enumerate(text):
            field.put(i, "u1", byte)

    return Slot(len(text), fill)


class Choice(NamedTuple):
    """One of some texts.

    Attributes:
        texts: the texts.
        which: of each row, the number of its text.
    """

    texts: Sequence[bytes]
    which: NDArray[np.int64]


Piece = Slot | Texts | Choice
"""What stands next in each row."""


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """Rows one behind the other.

    Attributes:
        data: their bytes.
        ends: where the first row begins, then where each of them ends.
    """

    data: memoryview
    ends: NDArray[np.int32]

    @property
    def longest(self) -> int:
        """Bytes of the longest row."""
        lengths: NDArray[np.int64] = np.diff(self.ends).astype(np.int64)
        return int(lengths.max(initial=0))

    def between(self, start: int, stop: int) -> memoryview:
        """The bytes of some rows."""
        return self.data[int(self.ends[start]) : int(self.ends[stop])]

    def divided(self, rows: int, size: int) -> Iterator[tuple[int, int]]:
        """The first row of each of some parts, and the one behind its last.

        Args:
            rows: of a part at most.
            size: bytes of one at most, if it has more than one row.
        """
        ends, start, count = cast("Sequence[int]", self.ends), 0, len(self.ends) - 1
        while start < count:
            fitting = bisect_right(ends, int(ends[start]) + size) - 1
            stop = min(max(start + 1, fitting), start + rows, count)
            yield start, stop
            start = stop


def joined_rows(window: Window, count: int, pieces: Sequence[Piece]) -> JoinedRows:
    """All rows, each made of its pieces.

    Args:
        window: the payload in which texts lie that have no data of their own.
        count: of rows, at least one.
        pieces: of a row, in their order.

    Raises:
        UnfitValuesError: they are too long.
    """
    parts = _parts(pieces)
    own = [part for part in parts if isinstance(part, Texts) and part.data is None]
    first = min((int(part.starts.min()) for part in own), default=0)
    last = max((int(part.stops.max()) for part in own), default=0)
    sizes = [_size(part, count) for part in parts]
    total = last - first + sum(sizes)
    if total > _MOST_BYTES:
        raise UnfitValuesError("rows are too long to be taken together")
    memory = np.empty(total, np.uint8)
    memory[: last - first] = window.bytes[first:last]
    bounds: list[NDArray[Any]] = []
    order = np.empty((count, len(parts)), np.int32)
    at, elements = last - first, 0
    numbers = np.arange(count, dtype=np.int32)
    for i, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        shift = -first if isinstance(part, Texts) and part.data is None else at
        index, found = _written(part, memory, shift, numbers)
        order[:, i] = index + np.int32(elements)
        bounds.append(found)
        elements += len(found)
        at += size
    bounds.append(np.array([total]))
    offsets = np.concatenate(bounds, dtype=np.int32, casting="same_kind")
    array = pa.Array.from_buffers(
        pa.binary(), elements, [None, pa.py_buffer(offsets), pa.py_buffer(memory)]
    )
    _, ends, data = array.take(pa.array(order.ravel())).buffers()
    all_ends = np.frombuffer(ends, np.int32)[: count * len(parts) + 1]
    return JoinedRows(memoryview(data), all_ends[:: len(parts)])


_Part = tuple[Slot, ...] | Texts | Choice
"""As `Piece`, slots that stand together as one."""


def _parts(pieces: Sequence[Piece]) -> list[_Part]:
    """The pieces; of slots that stand together only the first one is trimmed."""
    parts: list[_Part] = []
    run: list[Slot] = []
    for piece in pieces:
        if run and (not isinstance(piece, Slot) or piece.trimmed):
            parts.append(tuple(run))
            run = []
        if isinstance(piece, Slot):
            run.append(piece)
        else:
            parts.append(piece)
    return [*parts, tuple(run)] if run else parts


def _size(part: _Part, count: int) -> int:
    """Bytes that a part takes in memory beside the payload."""
    if isinstance(part, Texts):
        return 0 if part.data is None else len(part.data)
    if isinstance(part, Choice):
        return sum(map(len, part.texts))
    return count * sum(slot.width for slot in part)


def _written(
    part: _Part, memory: NDArray[np.uint8], at: int, numbers: NDArray[np.int32]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Write a part to its place; which of its elements each row has, and where they are bounded."""
    count = len(numbers)
    if isinstance(part, Texts):
        if part.data is not None:
            memory[at : at + len(part.data)] = part.data
        return numbers * np.int32(2), _between(part.starts + at, part.stops + at)
    if isinstance(part, Choice):
        data = b"".join(part.texts)
        memory[at : at + len(data)] = np.frombuffer(data, np.uint8)
        ends = np.cumsum([0, *map(len, part.texts)])
        return part.which.astype(np.int32), ends + at
    width = sum(slot.width for slot in part)
    offset, begins = at, None
    for slot in part:
        found = slot.fill(Field(memory, offset, width, count))
        begins = found if slot is part[0] else begins
        offset += slot.width
    rows = np.arange(at, at + count * width + 1, width)
    if begins is None:
        return numbers, rows
    return numbers * np.int32(2), _between(rows[:-1] + begins, rows[1:])


def _between(starts: Positions, stops: Positions) -> NDArray[Any]:
    """Bounds of elements, between which lie others that nobody takes."""
    bounds = np.empty(2 * len(starts), np.int64)
    bounds[::2], bounds[1::2] = starts, stops
    return bounds
