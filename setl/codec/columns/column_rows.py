"""Rows that stay bytes until somebody asks for one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, overload

import numpy as np
from numpy.typing import NDArray

from setl.codec.columns.images import RowForm, RowImages
from setl.codec.columns.texts import slices
from setl.codec.columns.values import ColumnValues, rows_of
from setl.codec.columns.window import Positions, Window
from setl.model.change import Row
from setl.model.labels import LABELLED
from setl.model.schema import Kind

MOST_BYTES: Final = 1 << 30
"""Bytes of a table's rows that are taken by column: positions have 31 bits in an array."""

_FEW: Final = 50  # rows that are decoded one by one in less time than by column


class ColumnRows(Sequence[Row]):
    """Some rows of one table, in stream order.

    Whoever can do with columns takes them from `values`. To all others these are rows: each is
    decoded when it is asked for, anew each time. Pickled, they are the bytes of these rows alone.
    """

    __slots__ = ("__dict__", "images", "picks", "starts")

    def __init__(
        self,
        images: RowImages,
        starts: Positions,
        picks: tuple[int, ...] | None = None,
        values: ColumnValues | None = None,
    ) -> None:
        """Some of the images that were found.

        Args:
            images: bytes that hold them, and perhaps others.
            starts: where the images of these rows begin, ascending. Each can be decoded.
            picks: indexes of the table's columns that a row has, in its order; None for all.
            values: of these images, if they are known already.
        """
        if values is not None:
            self.values = values
        self.images = images
        self.starts = starts
        self.picks = picks

    def picked(self, picks: Sequence[int]) -> ColumnRows:
        """The same rows with these of their values, in this order."""
        own = self.picks
        of_table = tuple(picks) if own is None else tuple(own[i] for i in picks)
        known = self.__dict__.get("values")
        return ColumnRows(self.images, self.starts, of_table, known)

    def taken(self, numbers: Sequence[int]) -> ColumnRows:
        """The rows with these numbers, in this order."""
        order = np.array(numbers, np.int64)
        if (np.diff(order) > 0).all():
            return ColumnRows(self.images, self.starts[order], self.picks)
        return _of_bytes(self.images.form, *self._own_bytes(order), self.picks)

    def joined(self, others: Sequence[ColumnRows]) -> ColumnRows | None:
        """These rows and others behind them; None if they are of another table or form."""
        form, every = self.images.form, [self, *others]
        alike = all((rows.images.form, rows.picks) == (form, self.picks) for rows in others)
        stops = np.cumsum([len(rows.images.data) for rows in every])
        if not alike or stops[-1] > MOST_BYTES:
            return None
        begins = [0, *stops[:-1].tolist()]
        starts = [rows.starts + begin for rows, begin in zip(every, begins, strict=True)]
        data = b"".join([rows.images.data for rows in every])
        return _of_bytes(form, data, np.concatenate(starts), self.picks)

    def part(self, start: int, stop: int) -> ColumnRows:
        """The rows from one to another."""
        if start == 0 and stop >= len(self):
            return self  # with the values that may be known
        return ColumnRows(self.images, self.starts[start:stop], self.picks)

    @cached_property
    def values(self) -> ColumnValues:
        """The values of all of the table's columns; see `column`."""
        return self.images.form.values(self.images, self.starts)

    def column(self, index: int) -> int:
        """The index in `values` of a row's value."""
        return index if self.picks is None else self.picks[index]

    def integers(self, index: int) -> NDArray[np.int64] | NDArray[np.uint64] | None:
        """One value of each row; None if these are no integers, or some are NULL."""
        column, values = self.column(index), self.values
        if values.kind(column) is not Kind.INTEGER or column in values.nulls:
            return None
        return values.whole(column)

    def keys(self, indexes: Sequence[int]) -> list[Row]:
        """Some values of each row, read without the others."""
        return rows_of(self.values, [self.column(index) for index in indexes])

    def values_at(self, index: int) -> list[Any]:
        """One value of each row, read without the others."""
        return self.values.listed(self.column(index))

    def decoded(self) -> list[Row]:
        """All of the rows, decoded."""
        if len(self) < _FEW:
            return list(self._one_by_one(self.starts))
        picks = self.picks
        every = range(len(self.images.form.schema.columns))
        return rows_of(self.values, every if picks is None else picks)

    @property
    def mean_bytes(self) -> int:
        """Bytes of a row in its event, on average."""
        return int((self.values.stops - self.starts).sum()) // max(1, len(self))

    def numbers_of(self, index: int, label: str) -> list[int]:
        """The numbers of the rows that have this label, if their values there are labels."""
        column, values = self.column(index), self.values
        if values.kind(column) not in LABELLED:
            return []
        labels, which = values.labels(column)
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
            return ColumnRows(self.images, self.starts[index], self.picks).decoded()
        return next(self._one_by_one(self.starts[[index]]))

    def __iter__(self) -> Iterator[Row]:
        return iter(self.decoded())

    def _one_by_one(self, starts: Positions) -> Iterator[Row]:
        picks = self.picks
        for row in self.images.form.rows(self.images, starts):
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
        begins = starts.astype("<u4").tobytes()
        return _unpickled, (self.images.form, data, begins, self.picks)


def _of_bytes(
    form: RowForm, data: bytes, starts: Positions, picks: tuple[int, ...] | None
) -> ColumnRows:
    return ColumnRows(RowImages(form, Window(data)), starts, picks)


def _unpickled(
    form: RowForm, data: bytes, starts: bytes, picks: tuple[int, ...] | None
) -> ColumnRows:
    return _of_bytes(form, data, np.frombuffer(starts, "<u4").astype(np.int64), picks)
