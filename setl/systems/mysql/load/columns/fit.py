"""What a statement asks of the values of its columns, and whether they have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from setl.codec.columns.column_rows import ColumnRows
from setl.codec.columns.fields import UnfitValuesError
from setl.codec.columns.texts import Texts
from setl.codec.columns.values import ColumnValues
from setl.model.schema import Column
from setl.systems.mysql.values.fit import Guard, Look, Numbers

_SPACE: Final = ord(" ")


@dataclass(frozen=True, slots=True)
class Fit:
    """What a statement asks of the values of its columns.

    Attributes:
        columns: see `RowStatement.columns`.
        picks: indexes of these in a row.
        never_null: see `RowStatement.never_null`.
        guards: see `RowStatement.guards`, by column.
        numbers: see `RowStatement.numbers`, by column.
        exact_json: see `RowStatement.exact_json`.
    """

    columns: tuple[Column, ...]
    picks: Sequence[int]
    never_null: Sequence[int]
    guards: Mapping[int, Sequence[Guard]]
    numbers: Mapping[int, Numbers]
    exact_json: bool = False


def refuse_changed(guards: Sequence[Guard], held: Sequence[Any]) -> None:
    """Raise UnfitValuesError if a guard finds one of these values."""
    if any(guard.finds(held) for guard in guards):
        raise UnfitValuesError("the target may change a value")


def refuse_found(
    guards: Sequence[Guard], values: ColumnValues, index: int, texts: Texts | None
) -> None:
    """Raise UnfitValuesError if a guard may find one of a column's values."""
    if any(_finds(guard, values, index, texts) for guard in guards):
        raise UnfitValuesError("the target may change a value")


def _finds(guard: Guard, values: ColumnValues, index: int, texts: Texts | None) -> bool:
    """Whether a guard may find a value; that is to be asked row by row then."""
    if guard.nulls:
        return index in values.nulls
    look, size = guard.look or (None, 0)
    if look is Look.SCALE:
        return values.scale(index) > size
    if texts is not None:
        return _finds_text(look, size, values, index, texts)
    if look is not Look.FRACTION:
        return True
    micros = values.micros(index)
    return micros is not None and bool((micros % np.uint32(10 ** (6 - size)) != 0).any())


def _finds_text(
    look: Look | None, size: int, values: ColumnValues, index: int, texts: Texts
) -> bool:
    if look is Look.SIZE:
        other = texts.lengths != size
        null = values.nulls.get(index)
        return bool((other if null is None else other & ~null).any())
    if look is Look.SPACE:
        data = values.window.bytes if texts.data is None else texts.data
        longer = texts.lengths > size
        return bool((data[texts.stops[longer] - 1] == _SPACE).any())
    return True


def rows_at_once(rows: ColumnRows) -> int:
    """Rows that are made by column at once: each call costs as much as some dozens of them."""
    size = rows.mean_bytes + 1
    wanted = max(_LEAST_ROWS, _BYTES_AT_ONCE // size)
    return max(1, min(wanted, _MOST_BYTES // size))


_LEAST_ROWS: Final = 500
_BYTES_AT_ONCE: Final = 1 << 21
_MOST_BYTES: Final = 1 << 24  # they are in memory three times
