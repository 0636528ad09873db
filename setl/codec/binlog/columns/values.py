"""The values of a table's columns in its row events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from setl.codec.binlog.columns.decimals import decimal_width, put_decimal
from setl.codec.binlog.columns.labels import distinct_labels
from setl.codec.binlog.columns.moments import micros_of, put_date, put_moment, put_time
from setl.codec.binlog.columns.numbers import floating_numbers, whole_numbers
from setl.codec.binlog.columns.offsets import ColumnOffsets
from setl.codec.binlog.columns.texts import charset_of, texts_of
from setl.codec.binlog.rows.column_reading import ColumnReader, column_readers
from setl.codec.binlog.tables.row_schema import described_table
from setl.codec.charset import is_utf8
from setl.codec.columns import moments
from setl.codec.columns.fields import Field, UnfitValuesError
from setl.codec.columns.texts import Texts, array_of, require_utf8, texts_of_values
from setl.codec.columns.values import (
    WHOLE,
    MadeText,
    encoded,
    encoded_values,
    listed,
    texts_made,
    with_nulls,
)
from setl.codec.columns.window import Positions
from setl.model.change import Value
from setl.model.labels import LABELLED
from setl.model.schema import Kind

_MAX_TABLES: Final = 1024

# Not DECIMAL, which has a negative zero, nor FLOAT; nor moments, whose bytes may say one time in
# two ways if they make no sense.
_NUMBERED: Final = frozenset({Kind.INTEGER, Kind.YEAR, Kind.BIT, Kind.DATE})

_Put = Callable[[ColumnOffsets, int, Field], Positions | None]

_MADE: Final[dict[Kind, tuple[_Put, int]]] = {
    Kind.DATE: (put_date, moments.DATE_WIDTH),
    Kind.DATETIME: (put_moment, moments.MOMENT_WIDTH),
    Kind.TIMESTAMP: (put_moment, moments.MOMENT_WIDTH),
    Kind.TIME: (put_time, moments.TIME_WIDTH),
}
_TRIMMED: Final = frozenset({Kind.DECIMAL, Kind.TIME})


class BinlogColumns(ColumnOffsets):
    """A `setl.codec.columns.values.ColumnValues` for images of row events.

    Where the bytes of rows add up, what can fail is a label (see `lacks_labels`), or a value that
    is converted (see `ColumnLayout.converted`).
    """

    def kind(self, column: int) -> Kind:
        """See `ColumnValues.kind`."""
        return self.layout.columns[column].kind

    def listed(self, column: int) -> list[Any]:
        """See `ColumnValues.listed`; values as `setl.codec.binlog.rows.images` reads them."""
        if not self.count:
            return []
        cached = self.cached.get(column)
        return self._read(column) if cached is None else cached

    def whole(self, column: int) -> NDArray[Any]:
        """See `ColumnValues.whole`."""
        return whole_numbers(self, column)

    def floating(self, column: int) -> NDArray[np.float64]:
        """See `ColumnValues.floating`."""
        return floating_numbers(self, column)

    def labels(self, column: int) -> tuple[list[Value], NDArray[np.int64]]:
        """See `ColumnValues.labels`."""
        return distinct_labels(self, column)

    def texts(self, column: int) -> Texts | None:
        """See `ColumnValues.texts`."""
        layout = self.layout.columns[column]
        if layout.converted:
            return texts_of_values(self.listed(column))
        return texts_of(self, column) if layout.size < 0 else None

    def made(self, column: int) -> MadeText:
        """See `ColumnValues.made`."""
        layout = self.layout.columns[column]
        if layout.kind is Kind.DECIMAL:
            put, width = put_decimal, decimal_width(layout.wire)
        elif layout.kind in _MADE:
            put, width = _MADE[layout.kind]
        else:
            raise UnfitValuesError(f"{layout.kind.value} is read row by row")
        return MadeText(partial(put, self, column), width, layout.kind in _TRIMMED)

    def micros(self, column: int) -> NDArray[np.uint32] | None:
        """See `ColumnValues.micros`."""
        return micros_of(self, column)

    def scale(self, column: int) -> int:
        """See `ColumnValues.scale`."""
        return self.layout.columns[column].wire.scale

    def codes(self, column: int) -> tuple[NDArray[np.int64], int]:
        """See `ColumnValues.codes`."""
        if not self._has_comparable_bytes(column):
            return encoded_values(self.listed(column))
        if self.layout.columns[column].size < 0:
            spans = self.spans(column)
            return encoded(array_of(self.window, Texts(None, spans.starts, spans.stops)))
        return encoded(pa.array(self.numbers(column)))

    def require_utf8(self, columns: Sequence[int]) -> None:
        """See `ColumnValues.require_utf8`."""
        text = [(charset_of(self, i), self.spans(i)) for i in columns if charset_of(self, i)]
        found = [(charset, Texts(None, spans.starts, spans.stops)) for charset, spans in text]
        require_utf8(self.window, found)

    def convert(self) -> None:
        """See `ColumnValues.convert`."""
        for index, column in enumerate(self.layout.columns):
            if column.converted:
                self.cached[index] = self.listed(index)

    def _has_comparable_bytes(self, column: int) -> bool:
        """Whether two values of a column, not NULL, are one exactly if their bytes are."""
        layout = self.layout.columns[column]
        if layout.converted:
            return False
        if layout.kind is Kind.TEXT:
            return is_utf8(layout.detail.charset)
        # BINARY(n) loses zero bytes at its end, and nothing says that it loses all of them.
        plain = layout.kind is Kind.BINARY and layout.detail.column.width <= 0
        return plain or layout.kind in _NUMBERED

    def _read(self, column: int) -> list[Any]:
        layout, null = self.layout.columns[column], self.nulls.get(column)
        if layout.size < 0:
            return self._pieces(column)
        if layout.kind in LABELLED:
            found, which = distinct_labels(self, column)
            return [found[number] for number in which.tolist()]
        if layout.kind in WHOLE:
            return listed(whole_numbers(self, column), null)
        if layout.kind is Kind.FLOAT:
            return listed(floating_numbers(self, column), null)
        try:
            return with_nulls(list[Any](texts_made(self.made(column), self.count)), null)
        except UnfitValuesError:
            return self._one_by_one(column)

    def _pieces(self, column: int) -> list[Any]:
        convert = readers_of(self.layout.context)[column].convert
        if convert is None:
            raise TypeError(f"values of column {column} are of one size")
        data, spans, null = self.data, self.spans(column), self.nulls.get(column)
        starts, stops = spans.starts.tolist(), spans.stops.tolist()
        if null is None:
            return [convert(data[a:b]) for a, b in zip(starts, stops, strict=True)]
        return [
            None if absent else convert(data[a:b])
            for absent, a, b in zip(null.tolist(), starts, stops, strict=True)
        ]

    def _one_by_one(self, column: int) -> list[Value]:
        """Values of a fixed size, each by the column's reader."""
        read, data = readers_of(self.layout.context)[column].read, self.data
        null = self.nulls.get(column)
        absent = [False] * self.count if null is None else null.tolist()
        return [
            None if nothing else read(data, at)[0]
            for nothing, at in zip(absent, self.starts(column).tolist(), strict=True)
        ]


@lru_cache(_MAX_TABLES)
def readers_of(context: tuple[bytes, ...]) -> tuple[ColumnReader, ...]:
    """What reads each column of a table, from the context of its entries."""
    return tuple(column_readers(described_table(context)))
