"""Rows that stay bytes until somebody asks for one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final, overload

import numpy as np
from numpy.typing import NDArray

from setl.codec.binlog.columns.finding import RowImages
from setl.codec.binlog.columns.labels import distinct_labels
from setl.codec.binlog.columns.last_states import slices
from setl.codec.binlog.columns.layout import ColumnLayout, RowLayout, row_layout
from setl.codec.binlog.columns.offsets import ColumnValues
from setl.codec.binlog.columns.window import Positions, Window
from setl.codec.binlog.rows.column_reading import column_codes
from setl.codec.binlog.rows.row_scanner import TableRows
from setl.codec.binlog.tables.row_schema import described_table
from setl.codec.binlog.values.value_number import Reader
from setl.model.change import Row
from setl.model.labels import LABELLED
from setl.model.schema import Kind

MOST_BYTES: Final = 1 << 30
"""Bytes of a table's rows that are taken by column: positions have 31 bits in an array."""

_MAX_TABLES: Final = 1024

ReadRow = Callable[[bytes, int], Row]
"""Decodes the image at a position of a payload, see `setl.codec.scanning.RowScanner.row`."""


class ColumnRows(Sequence[Row]):
    """Some rows of one table, in stream order.

    Whoever can do with columns takes them from `values`. To all others these are rows: each is
    decoded when it is asked for, anew each time, by the codec's decoder of single rows. That is
    for the few rows that somebody has to look at: what is refused, what is put aside. Pickled, they
    are the bytes of these rows alone.
    """

    __slots__ = ("__dict__", "_read", "images", "picks", "starts")

    def __init__(
        self,
        images: RowImages,
        starts: Positions,
        read: ReadRow,
        picks: tuple[int, ...] | None = None,
        values: ColumnValues | None = None,
    ) -> None:
        """Some of the images that were found.

        Args:
            images: bytes that hold them, and perhaps others.
            starts: where the images of these rows begin, ascending.
            read: decodes one. It must not fail for any of these.
            picks: indexes of the table's columns that a row has, in its order; None for all.
            values: of these images, if they are known already.
        """
        if values is not None:
            self.values = values
        self.images = images
        self.starts = starts
        self.picks = picks
        self._read = read

    def picked(self, picks: Sequence[int]) -> ColumnRows:
        """The same rows with these of their values, in this order."""
        own = self.picks
        of_table = tuple(picks) if own is None else tuple(own[i] for i in picks)
        known = self.__dict__.get("values")
        return ColumnRows(self.images, self.starts, self._read, of_table, known)

    def taken(self, numbers: Sequence[int]) -> ColumnRows:
        """The rows with these numbers, in this order."""
        order = np.array(numbers, np.int64)
        if (np.diff(order) > 0).all():
            return ColumnRows(self.images, self.starts[order], self._read, self.picks)
        return _rows_of(self.images.layout, self._read, *self._own_bytes(order), self.picks)

    def joined(self, others: Sequence[ColumnRows]) -> ColumnRows | None:
        """These rows and others behind them; None if they are of another table or form."""
        layout, every = self.images.layout, [self, *others]
        alike = all(
            (rows.images.layout.context, rows.picks) == (layout.context, self.picks)
            for rows in others
        )
        stops = np.cumsum([len(rows.images.data) for rows in every])
        if not alike or stops[-1] > MOST_BYTES:
            return None
        begins = [0, *stops[:-1].tolist()]
        starts = [rows.starts + begin for rows, begin in zip(every, begins, strict=True)]
        data = b"".join([rows.images.data for rows in every])
        return _rows_of(layout, self._read, data, np.concatenate(starts), self.picks)

    def part(self, start: int, stop: int) -> ColumnRows:
        """The rows from one to another."""
        if start == 0 and stop >= len(self):
            return self  # with the values that may be known
        return ColumnRows(self.images, self.starts[start:stop], self._read, self.picks)

    @cached_property
    def values(self) -> ColumnValues:
        """The values of all of the table's columns; see `column`."""
        return ColumnValues(self.images, self.starts)

    def column(self, index: int) -> int:
        """The index in `values` of a row's value."""
        return index if self.picks is None else self.picks[index]

    def layout(self, index: int) -> ColumnLayout:
        """How a row's value lies in an image."""
        return self.images.layout.columns[self.column(index)]

    def integers(self, index: int) -> NDArray[np.int64] | NDArray[np.uint64] | None:
        """One value of each row; None if these are no integers, or some are NULL."""
        column, values = self.column(index), self.values
        if self.layout(index).kind is not Kind.INTEGER or column in values.nulls:
            return None
        return values.integers(column)

    def keys(self, indexes: Sequence[int]) -> list[Row]:
        """Some values of each row, read without the others."""
        return list(zip(*[self.values_at(index) for index in indexes], strict=True))

    def values_at(self, index: int) -> list[Any]:
        """One value of each row, read without the others."""
        integers = self.integers(index)
        if integers is not None:
            return integers.tolist()
        column, values, size = self.column(index), self.values, self.layout(index).size
        at = values.starts(column) if size >= 0 else values.spans(column).starts + size
        read, data = _readers(self.images.layout.context)[column], self.images.data
        null = values.nulls.get(column)
        if null is None:
            return [read(data, start)[0] for start in at.tolist()]
        return [
            None if absent else read(data, start)[0]
            for absent, start in zip(null.tolist(), at.tolist(), strict=True)
        ]

    @property
    def mean_bytes(self) -> int:
        """Bytes of a row in its event, on average."""
        return int((self.values.stops - self.starts).sum()) // max(1, len(self))

    def numbers_of(self, index: int, label: str) -> list[int]:
        """The numbers of the rows that have this label, if their values there are labels."""
        column = self.column(index)
        if self.layout(index).kind not in LABELLED:
            return []
        labels, which = distinct_labels(self.values, column)
        found = [n for n, value in enumerate(labels) if value == label]
        numbers: list[int] = np.flatnonzero(np.isin(which, found)).tolist()
        return numbers

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return list(self._rows(self.starts[index]))
        return next(self._rows(self.starts[[index]]))

    def __iter__(self) -> Iterator[Row]:
        return self._rows(self.starts)

    def _rows(self, starts: Positions) -> Iterator[Row]:
        read, data, picks = self._read, self.images.data, self.picks
        for at in starts.tolist():
            row = read(data, at)
            yield row if picks is None else tuple([row[i] for i in picks])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (list, ColumnRows)) and [*self] == [*other]

    __hash__ = None  # pyright: ignore[reportAssignmentType] - as a list's

    def __repr__(self) -> str:
        return repr(list(self))

    def _own_bytes(self, order: Positions | None = None) -> tuple[bytes, Positions]:
        """The images of these rows alone, and where each begins."""
        values = self.values
        array = slices(values.window.bytes, self.starts, values.stops, order)
        _, offsets, data = array.buffers()
        begins = np.frombuffer(offsets, np.int32, len(array) + 1)[:-1].astype(np.int64)
        return (data.to_pybytes() if data else b""), begins

    def __reduce__(self) -> tuple[Callable[..., ColumnRows], tuple[Any, ...]]:
        data, starts = self._own_bytes()
        context = self.images.layout.context
        return _unpickled, (context, data, starts.astype("<u4").tobytes(), self.picks)


def _rows_of(
    layout: RowLayout,
    read: ReadRow,
    data: bytes,
    starts: Positions,
    picks: tuple[int, ...] | None,
) -> ColumnRows:
    return ColumnRows(RowImages(layout, data, Window(data)), starts, read, picks)


def _unpickled(
    context: tuple[bytes, ...], data: bytes, starts: bytes, picks: tuple[int, ...] | None
) -> ColumnRows:
    layout = row_layout(context)
    if layout is None:
        raise TypeError("rows that are columns are of a table that is not")
    begins = np.frombuffer(starts, "<u4").astype(np.int64)
    return _rows_of(layout, _row_reader(context), data, begins, picks)


@lru_cache(_MAX_TABLES)
def _readers(context: tuple[bytes, ...]) -> tuple[Reader, ...]:
    return tuple([code.read for code in column_codes(described_table(context))])


@lru_cache(_MAX_TABLES)
def _row_reader(context: tuple[bytes, ...]) -> ReadRow:
    return TableRows(column_codes(described_table(context))).row
