"""Rows that stay bytes until somebody asks for one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, overload

from setl.codec.binlog.columns.finding import FoundRows
from setl.codec.binlog.columns.layout import ColumnLayout
from setl.codec.binlog.columns.offsets import ColumnValues
from setl.codec.binlog.columns.window import Positions
from setl.model.change import Row

ReadRow = Callable[[bytes, int], Row]
"""Decodes the image at a position of a payload, see `setl.codec.scanning.RowScanner.row`."""


class ColumnRows(Sequence[Row]):
    """Some rows of one table, in stream order.

    Whoever can do with columns takes them from `values`. To all others these are rows: each is
    decoded when it is asked for, anew each time, by the codec's decoder of single rows. That is
    for the few rows that somebody has to look at: what is refused, what is put aside. Pickled, they
    become a list.
    """

    __slots__ = ("__dict__", "_found", "_picks", "_read", "_starts")

    def __init__(
        self,
        found: FoundRows,
        starts: Positions,
        read: ReadRow,
        picks: tuple[int, ...] | None = None,
    ) -> None:
        """Some of the images that were found.

        Args:
            found: all images of a payload.
            starts: where the images of these rows begin, ascending.
            read: decodes one. It must not fail for any of these.
            picks: indexes of the table's columns that a row has, in its order; None for all.
        """
        self._found = found
        self._starts = starts
        self._read = read
        self._picks = picks

    def picked(self, picks: Sequence[int]) -> ColumnRows:
        """The same rows with these of their values, in this order."""
        own = self._picks
        of_table = tuple(picks) if own is None else tuple(own[i] for i in picks)
        return ColumnRows(self._found, self._starts, self._read, of_table)

    @cached_property
    def values(self) -> ColumnValues:
        """The values of all of the table's columns; see `column`."""
        return ColumnValues(self._found, self._starts)

    def column(self, index: int) -> int:
        """The index in `values` of a row's value."""
        return index if self._picks is None else self._picks[index]

    def layout(self, index: int) -> ColumnLayout:
        """How a row's value lies in an image."""
        return self._found.layout.columns[self.column(index)]

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return list(self._rows(self._starts[index]))
        return next(self._rows(self._starts[[index]]))

    def __iter__(self) -> Iterator[Row]:
        return self._rows(self._starts)

    def _rows(self, starts: Positions) -> Iterator[Row]:
        read, data, picks = self._read, self._found.data, self._picks
        for at in starts.tolist():
            row = read(data, at)
            yield row if picks is None else tuple([row[i] for i in picks])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (list, ColumnRows)) and [*self] == [*other]

    __hash__ = None  # pyright: ignore[reportAssignmentType] - as a list's

    def __repr__(self) -> str:
        return repr(list(self))

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[Row]]]:
        return list, (list(self),)
