"""What is done with rows that may be a list or columns: columns stay columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from setl.codec.columns.column_rows import ColumnRows
from setl.model.change import Row


def taken(rows: Sequence[Row], numbers: Sequence[int]) -> Sequence[Row]:
    """The rows with these numbers, in this order."""
    if isinstance(rows, ColumnRows):
        return rows.taken(numbers)
    return [rows[number] for number in numbers]


def joined(parts: Sequence[Sequence[Row]]) -> Sequence[Row]:
    """The rows of all parts, one part behind the other: columns if all of these are of one table.

    A list is one of its own, to which rows may be added.
    """
    columns = [part for part in parts if isinstance(part, ColumnRows)]
    if columns and all(isinstance(part, ColumnRows) or not part for part in parts):
        together = columns[0].joined(columns[1:])
        if together is not None:
            return together
    return [row for part in parts for row in part]


def keys_of(rows: Sequence[Row], key: Sequence[int]) -> Iterable[Any]:
    """The key of each row: the bare value of one column, which is faster, or a tuple of several."""
    if not isinstance(rows, ColumnRows):
        return map(itemgetter(*key), rows)
    return rows.values_at(key[0]) if len(key) == 1 else rows.keys(key)
