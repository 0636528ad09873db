"""ENUM and SET columns: their numbers, and the labels of these."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from setl.codec.binlog.columns.offsets import ColumnOffsets
from setl.model.change import Value
from setl.model.labels import LABELLED, of_numbers
from setl.model.schema import Kind

_MOST_LISTED: Final = 1 << 16  # numbers


def label_numbers(values: ColumnOffsets, column: int) -> NDArray[np.uint64]:
    """The numbers of an ENUM's labels, or bits for those of a SET; 0 for a NULL."""
    numbers, null = values.numbers(column), values.nulls.get(column)
    return numbers if null is None else np.where(null, np.uint64(0), numbers)


def lacks_labels(values: ColumnOffsets) -> bool:
    """Whether a value of an ENUM or SET is a number that its column has no label for.

    It is the one thing for which a row cannot be decoded whose bytes add up.
    """
    for i, column in enumerate(values.layout.columns):
        if column.kind not in LABELLED:
            continue
        numbers, labels = label_numbers(values, i), len(column.detail.labels)
        if column.kind is Kind.ENUM:
            lacks = numbers > labels
        elif labels < 64:
            lacks = numbers >> np.uint64(labels) != 0
        else:
            continue
        if lacks.any():
            return True
    return False


def distinct_labels(values: ColumnOffsets, column: int) -> tuple[list[Value], NDArray[np.int64]]:
    """The different values of an ENUM or SET as rows hold them, and of each row which it has.

    Raises:
        LookupError: a number has no label, see `lacks_labels`.
    """
    detail, null = values.layout.columns[column].detail, values.nulls.get(column)
    numbers, index = _distinct(label_numbers(values, column))
    value_of = of_numbers(detail.column.kind, detail.labels)
    found: list[Value] = [value_of(number) for number in numbers.tolist()]
    if null is not None:
        found.append(None)
        index = np.where(null, len(numbers), index)
    return found, index


def _distinct(numbers: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The different ones of some numbers in order, and for each number which of these it is."""
    most = int(numbers.max(initial=0))
    if most > _MOST_LISTED:
        return np.unique(numbers, return_inverse=True)
    # Sorting takes many times as long.
    there = np.zeros(most + 1, np.bool_)
    found = numbers.astype(np.int64)
    there[found] = True
    return np.flatnonzero(there).astype(np.uint64), (np.cumsum(there) - 1)[found]
