"""Columns of numbers: what rows hold as int or float."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from setl.codec.binlog.columns.offsets import ColumnOffsets
from setl.codec.binlog.tables.table_map import ColumnType
from setl.codec.binlog.values.value_number import shortest_float
from setl.model.schema import Kind

_LARGEST: Final = 8  # bytes, of which int64 does not hold all numbers


def whole_numbers(values: ColumnOffsets, column: int) -> NDArray[Any]:
    """The values of a column of whole numbers, as int64, or as uint64 where they may be larger.

    What stands for a NULL is some number below 2**63.
    """
    layout, window = values.layout.columns[column], values.window
    if layout.kind is Kind.YEAR:
        year = window.bytes[values.starts(column)].astype(np.int64)
        return np.where(year > 0, year + 1900, 0)
    if layout.kind is Kind.BIT:
        found: NDArray[Any] = window.big_endian(values.starts(column), layout.size)
    else:
        found = values.integers(column)
    if layout.size < _LARGEST:
        return found.astype(np.int64, copy=False)
    null = values.nulls.get(column)
    return found if null is None else np.where(null, found.dtype.type(0), found)


def floating_numbers(values: ColumnOffsets, column: int) -> NDArray[np.float64]:
    """The values of a FLOAT or DOUBLE column; what stands for a NULL is some number."""
    starts, window = values.starts(column), values.window
    if values.layout.columns[column].wire.type != ColumnType.FLOAT:
        return window.view("<f8")[starts]
    with np.errstate(invalid="ignore"):  # of what is no number
        singles = window.view("<f4")[starts].astype(np.float64)
    return np.array(list(map(shortest_float, singles.tolist())), np.float64)
