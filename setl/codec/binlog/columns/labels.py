"""ENUM and SET columns: numbers that no label has."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setl.codec.binlog.columns.offsets import ColumnValues
from setl.model.labels import LABELLED
from setl.model.schema import Kind


def label_numbers(values: ColumnValues, column: int) -> NDArray[np.uint64]:
    """The numbers of an ENUM's labels, or bits for those of a SET; 0 for a NULL."""
    numbers, null = values.numbers(column), values.nulls.get(column)
    return numbers if null is None else np.where(null, np.uint64(0), numbers)


def lacks_labels(values: ColumnValues) -> bool:
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
