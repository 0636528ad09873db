"""The values of a column as rows hold them, all at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from setl.codec.binlog.columns.decimals import decimal_width, put_decimal
from setl.codec.binlog.columns.fields import Field, UnfitValuesError
from setl.codec.binlog.columns.labels import distinct_labels
from setl.codec.binlog.columns.layout import ColumnLayout
from setl.codec.binlog.columns.moments import (
    DATE_WIDTH,
    MOMENT_WIDTH,
    TIME_WIDTH,
    put_date,
    put_moment,
    put_time,
)
from setl.codec.binlog.columns.numbers import WHOLE, floating_numbers, whole_numbers
from setl.codec.binlog.columns.offsets import ColumnValues
from setl.codec.binlog.columns.window import Mask, Positions
from setl.codec.binlog.rows.column_reading import ColumnReader, column_readers
from setl.codec.binlog.tables.row_schema import described_table
from setl.model.change import Row, Value
from setl.model.labels import LABELLED
from setl.model.schema import Kind

_MAX_TABLES: Final = 1024

Put = Callable[[ColumnValues, int, Field], Positions | None]
"""Stores the texts of a column; returns where each begins in its field, None for at its front."""

_MADE: Final[dict[Kind, tuple[Put, int]]] = {
    Kind.DATE: (put_date, DATE_WIDTH),
    Kind.DATETIME: (put_moment, MOMENT_WIDTH),
    Kind.TIMESTAMP: (put_moment, MOMENT_WIDTH),
    Kind.TIME: (put_time, TIME_WIDTH),
}

TRIMMED: Final = frozenset({put_decimal, put_time})
"""Of these, those that store texts of several lengths, which end where the field does."""


def values_of(values: ColumnValues, column: int) -> list[Any]:
    """The values of a column, as `setl.codec.binlog.rows.images` reads them.

    Raises:
        ValueError, LookupError, struct.error, zlib.error: a value makes no sense. Where the bytes
            of rows add up, that is a label (see `lacks_labels`), or a value that is converted
            (see `ColumnLayout.converted`).
    """
    if not values.count:
        return []
    cached = values.cached.get(column)
    return _read(values, column) if cached is None else cached


def _read(values: ColumnValues, column: int) -> list[Any]:
    layout, null = values.layout.columns[column], values.nulls.get(column)
    if layout.size < 0:
        return _pieces(values, column, null)
    if layout.kind in LABELLED:
        found, which = distinct_labels(values, column)
        return [found[number] for number in which.tolist()]
    if layout.kind in WHOLE:
        return listed(whole_numbers(values, column), null)
    if layout.kind is Kind.FLOAT:
        return listed(floating_numbers(values, column), null)
    try:
        return _with_nulls(_made(values, column), null)
    except UnfitValuesError:
        return _one_by_one(values, column, null)


def rows_of(values: ColumnValues, columns: Sequence[int]) -> list[Row]:
    """Some values of each row. Raises what `values_of` raises."""
    return list(zip(*[values_of(values, column) for column in columns], strict=True))


def listed(numbers: NDArray[Any], null: Mask | None) -> list[Any]:
    """Numbers as rows hold them."""
    return _with_nulls(numbers.tolist(), null)


def _with_nulls(found: list[Any], null: Mask | None) -> list[Any]:
    if null is not None:
        for i in np.flatnonzero(null).tolist():
            found[i] = None
    return found


def _pieces(values: ColumnValues, column: int, null: Mask | None) -> list[Any]:
    convert = readers_of(values.layout.context)[column].convert
    if convert is None:
        raise TypeError(f"values of column {column} are of one size")
    data, spans = values.data, values.spans(column)
    starts, stops = spans.starts.tolist(), spans.stops.tolist()
    if null is None:
        return [convert(data[a:b]) for a, b in zip(starts, stops, strict=True)]
    return [
        None if absent else convert(data[a:b])
        for absent, a, b in zip(null.tolist(), starts, stops, strict=True)
    ]


def _made(values: ColumnValues, column: int) -> list[Any]:
    """Texts that are made of values of a fixed size; for a NULL any text."""
    count = values.count
    put, width = text_of(values.layout.columns[column])
    memory = np.empty(count * width, np.uint8)
    begins = put(values, column, Field(memory, 0, width, count))
    starts = np.arange(0, count * width, width, dtype=np.int64)
    text, stops = memory.tobytes().decode("latin-1"), (starts + width).tolist()
    if begins is not None:
        starts = starts + begins
    return [text[a:b] for a, b in zip(starts.tolist(), stops, strict=True)]


def text_of(layout: ColumnLayout) -> tuple[Put, int]:
    """What stores the text of a date, a time or a DECIMAL, and the bytes of the longest one.

    Raises:
        UnfitValuesError: a value of that column is no such text.
    """
    if layout.kind is Kind.DECIMAL:
        return put_decimal, decimal_width(layout.wire)
    if layout.kind not in _MADE:
        raise UnfitValuesError(f"{layout.kind.value} is read row by row")
    return _MADE[layout.kind]


def _one_by_one(values: ColumnValues, column: int, null: Mask | None) -> list[Value]:
    """Values of a fixed size, each by the column's reader."""
    read, data = readers_of(values.layout.context)[column].read, values.data
    absent = [False] * values.count if null is None else null.tolist()
    return [
        None if nothing else read(data, at)[0]
        for nothing, at in zip(absent, values.starts(column).tolist(), strict=True)
    ]


@lru_cache(_MAX_TABLES)
def readers_of(context: tuple[bytes, ...]) -> tuple[ColumnReader, ...]:
    """What reads each column of a table, from the context of its entries."""
    return tuple(column_readers(described_table(context)))
