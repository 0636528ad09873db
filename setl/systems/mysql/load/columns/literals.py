"""Rows as literals, by column: the same text as `setl.systems.mysql.values.literals` makes of them.

As with `parameters`, nothing is made where a value is not of the plain kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from setl.codec.columns.column_rows import ColumnRows
from setl.codec.columns.fields import Field, UnfitValuesError
from setl.codec.columns.texts import Texts, array_of, parts_of
from setl.codec.columns.values import MadeText
from setl.codec.columns.window import Mask, Positions, Window
from setl.errors import DataError
from setl.model.schema import Column
from setl.systems.mysql.load.columns.fit import Fit
from setl.systems.mysql.load.columns.pieces import (
    JoinedRows,
    Piece,
    Slot,
    constant,
)
from setl.systems.mysql.load.columns.writing import ColumnWriter
from setl.systems.mysql.values.literals import render_columns

_NULL: Final = int.from_bytes(b"NULL", "little")
_QUOTE: Final = ord("'")


def rendered_columns(fit: Fit, rows: ColumnRows, end: bytes) -> JoinedRows | None:
    """Rows as ``(1,'a',NULL)``, at least one; None if they have to be rendered row by row.

    Args:
        fit: what the statement asks of values.
        rows: the rows.
        end: what stands behind each row.
    """
    try:
        return _Literals(fit, rows, end).joined()
    except (UnfitValuesError, DataError, LookupError, ValueError, OverflowError):
        return None


class _Literals(ColumnWriter):
    def __init__(self, fit: Fit, rows: ColumnRows, end: bytes) -> None:
        super().__init__(fit, rows)
        self._end = end

    def _in_front(self, i: int) -> Sequence[Piece]:
        return [constant(b"," if i else b"(")]

    def _behind(self) -> Sequence[Piece]:
        return [constant(b")" + self._end)]

    def _renders(self, column: Column) -> bool:
        return column.capacity is not None and column.capacity.type == "json"

    def _rendered(self, column: Column, held: Sequence[Any]) -> list[bytes]:
        exact = self._fit.exact_json
        rows = render_columns((column,), (held,), for_key=False, exact_json=exact)
        return [row[1:-1].encode() for row in rows]

    def _whole(self, numbers: NDArray[Any], null: Mask | None) -> Piece:
        return _digits(numbers, null)

    def _by_value(
        self,
        column: Column,
        index: int,
        null: Mask | None,  # noqa: ARG002 - the values say it
    ) -> tuple[Piece, Sequence[Any]]:
        held = self._values.listed(index)
        return _one_by_one(self._rendered(column, held)), held

    def _made(self, text: MadeText, null: Mask | None) -> Piece:
        put, size, trimmed = text

        def fill(field: Field) -> Positions | None:
            begins = put(field.behind(1))
            field.put(1 + size, "u1", _QUOTE)
            if begins is None:
                field.put(0, "u1", _QUOTE)
            else:
                field.put_at(begins, "u1", _QUOTE)
            return _or_null(field, size + 2, begins, null)

        return Slot(size + 2, fill, trimmed=null is not None or trimmed)

    def _text(self, texts: Texts, null: Mask | None, *, is_bytes: bool) -> Sequence[Piece]:
        if is_bytes:
            return _enclosed(b"x'", _hexadecimal(self._values.window, texts), null)
        return _enclosed(b"'", _escaped(self._values.window, texts), null)


def _digits(numbers: NDArray[Any], null: Mask | None) -> Texts:
    offsets, data = parts_of(pa.array(numbers).cast(pa.string()))
    bounds = offsets.astype(np.int64)
    starts, stops = bounds[:-1], bounds[1:]
    if null is not None:
        starts = np.where(null, len(data), starts)
        stops = np.where(null, len(data) + 4, stops)
        data = np.append(data, np.frombuffer(b"NULL", np.uint8))
    return Texts(data, starts, stops)


def _one_by_one(texts: Sequence[bytes]) -> Texts:
    bounds = np.cumsum([0, *map(len, texts)])
    return Texts(np.frombuffer(b"".join(texts), np.uint8), bounds[:-1], bounds[1:])


def _or_null(
    field: Field, width: int, begins: Positions | None, null: Mask | None
) -> Positions | None:
    if null is None:
        return begins
    last = np.full(field.count, width - 4, np.int64)
    field.put_at(last, "<u4", _NULL, null)
    return np.where(null, last, 0 if begins is None else begins)


def _enclosed(front: bytes, texts: Texts, null: Mask | None) -> list[Piece]:
    """Texts in quotes, which have something in front of them; or NULL."""
    if null is None:
        return [constant(front), texts, constant(b"'")]

    def opened(field: Field) -> Positions:
        for i, byte in enumerate(front):
            field.put(4 - len(front) + i, "u1", byte)
        field.put_at(np.zeros(field.count, np.int64), "<u4", _NULL, null)
        return np.where(null, 0, 4 - len(front))

    def closed(field: Field) -> Positions:
        field.put(0, "u1", _QUOTE)
        return null.astype(np.int64)

    return [Slot(4, opened, trimmed=True), texts, Slot(1, closed, trimmed=True)]


def _escaped(window: Window, texts: Texts) -> Texts:
    """Texts as they stand between quotes; UTF-8 or it is refused later."""
    array = array_of(window, texts)
    _, data = parts_of(array)
    raw = data.tobytes()
    if b"'" not in raw and b"\\" not in raw:
        return texts
    for mark in (b"\\", b"'"):  # in UTF-8 no byte of another character
        array = pc.replace_substring(array, mark, b"\\" + mark)
    offsets, data = parts_of(array)
    bounds = offsets.astype(np.int64)
    return Texts(data, bounds[:-1], bounds[1:])


def _hexadecimal(window: Window, texts: Texts) -> Texts:
    offsets, data = parts_of(array_of(window, texts))
    digits = np.frombuffer(data.tobytes().hex().encode(), np.uint8)
    bounds = offsets.astype(np.int64) * 2
    return Texts(digits, bounds[:-1], bounds[1:])
