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

from setl.codec.binlog.columns.column_rows import ColumnRows
from setl.codec.binlog.columns.decimals import decimal_width, put_decimal
from setl.codec.binlog.columns.decoded import listed, values_of
from setl.codec.binlog.columns.fields import Field, UnfitValuesError
from setl.codec.binlog.columns.labels import distinct_labels
from setl.codec.binlog.columns.last_states import slices
from setl.codec.binlog.columns.moments import (
    DATE_WIDTH,
    MOMENT_WIDTH,
    TIME_WIDTH,
    put_date,
    put_moment,
    put_time,
)
from setl.codec.binlog.columns.numbers import WHOLE, whole_numbers
from setl.codec.binlog.columns.offsets import ColumnValues
from setl.codec.binlog.columns.texts import Texts, parts_of, require_utf8, texts_of
from setl.codec.binlog.columns.window import Mask, Positions
from setl.errors import DataError
from setl.model.labels import LABELLED
from setl.model.schema import Column, Kind
from setl.systems.mysql.load.columns.fit import Fit, refuse_changed, refuse_found
from setl.systems.mysql.load.columns.pieces import (
    Choice,
    JoinedRows,
    Piece,
    Slot,
    constant,
    joined_rows,
)
from setl.systems.mysql.load.packed import BYTES
from setl.systems.mysql.values.literals import fills_year, render_columns

_NULL: Final = int.from_bytes(b"NULL", "little")
_QUOTE: Final = ord("'")


def rendered_columns(fit: Fit, rows: ColumnRows, end: bytes) -> JoinedRows | None:
    """Rows as ``(1,'a',NULL)``, at least one; None if they have to be rendered row by row.

    Args:
        fit: what the statement asks of values.
        rows: the rows.
        end: what stands behind each row.
    """
    values = rows.values
    if any(rows.column(i) in values.nulls for i in fit.never_null):
        return None
    try:
        literals = _Literals(fit, rows)
        for i in range(len(fit.columns)):
            literals.add(i)
        require_utf8(values, literals.textual)
        pieces = [*literals.pieces, constant(b")" + end)]
        return joined_rows(values.window, values.count, pieces)
    except (UnfitValuesError, DataError, LookupError, ValueError, OverflowError):
        return None


class _Literals:
    """The columns that have become pieces of the rows."""

    def __init__(self, fit: Fit, rows: ColumnRows) -> None:
        self._fit = fit
        self._rows = rows
        self._values = rows.values
        self.pieces: list[Piece] = []
        self.textual: list[int] = []

    def add(self, i: int) -> None:
        """Add a column of the statement.

        Raises:
            UnfitValuesError, DataError, LookupError, ValueError: a value has no such form.
        """
        fit, values = self._fit, self._values
        column, index = fit.columns[i], self._rows.column(fit.picks[i])
        kind, guards = values.layout.columns[index].kind, fit.guards.get(i, ())
        null = values.nulls.get(index)
        self.pieces.append(constant(b"," if i else b"("))
        if kind in LABELLED:
            held, which = distinct_labels(values, index)
            numbers = fit.numbers.get(i)
            held = held if numbers is None else numbers.of(held)
            texts = self._rendered(column, held)
            refuse_changed(guards, held)
            self.pieces.append(Choice(texts, which))
        elif kind in WHOLE:
            found = whole_numbers(values, index)
            if fills_year(column) and (found == 0).any():
                raise UnfitValuesError("the year 0000 is written as text")
            if guards:
                refuse_changed(guards, listed(found, null))
            self.pieces.append(_digits(found, null))
        elif kind is Kind.FLOAT or (column.capacity and column.capacity.type == "json"):
            held = values_of(values, index)
            texts = self._rendered(column, held)
            refuse_changed(guards, held)
            self.pieces.append(_one_by_one(texts))
        else:
            given = texts_of(values, index) if values.layout.columns[index].size < 0 else None
            refuse_found(guards, values, index, given)
            if given is None:
                self.pieces.append(_made_text(values, index, kind, null))
            elif kind in BYTES:
                self.pieces += _enclosed(b"x'", _hexadecimal(values, given), null)
            else:
                self.textual.append(index)
                self.pieces += _enclosed(b"'", _escaped(values, given), null)

    def _rendered(self, column: Column, held: Sequence[Any]) -> list[bytes]:
        """Literals of some values, each as it is within a row."""
        exact = self._fit.exact_json
        rows = render_columns((column,), (held,), for_key=False, exact_json=exact)
        return [row[1:-1].encode() for row in rows]


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


def _made_text(values: ColumnValues, index: int, kind: Kind, null: Mask | None) -> Slot:
    """Text that is made of a value of a fixed size, in quotes; or NULL."""
    if kind in (Kind.TIME, Kind.DECIMAL):
        put, size = put_time, TIME_WIDTH
        if kind is Kind.DECIMAL:
            put, size = put_decimal, decimal_width(values.layout.columns[index].wire)

        def fill_trimmed(field: Field) -> Positions | None:
            begins = put(values, index, field.behind(1))
            field.put_at(begins, "u1", _QUOTE)
            field.put(1 + size, "u1", _QUOTE)
            return _or_null(field, size + 2, begins, null)

        return Slot(size + 2, fill_trimmed, trimmed=True)
    if kind is Kind.DATE:
        put_text, length = put_date, DATE_WIDTH
    elif kind in (Kind.DATETIME, Kind.TIMESTAMP):
        put_text, length = put_moment, MOMENT_WIDTH
    else:
        raise UnfitValuesError(f"{kind.value} is rendered row by row")

    def fill(field: Field) -> Positions | None:
        field.put(0, "u1", _QUOTE)
        put_text(values, index, field.behind(1))
        field.put(1 + length, "u1", _QUOTE)
        return _or_null(field, length + 2, None, null)

    return Slot(length + 2, fill, null is not None)


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


def _escaped(values: ColumnValues, texts: Texts) -> Texts:
    """Texts as they stand between quotes; UTF-8 or it is refused later."""
    array = _array(values, texts)
    _, data = parts_of(array)
    raw = data.tobytes()
    if b"'" not in raw and b"\\" not in raw:
        return texts
    for mark in (b"\\", b"'"):  # in UTF-8 no byte of another character
        array = pc.replace_substring(array, mark, b"\\" + mark)
    offsets, data = parts_of(array)
    bounds = offsets.astype(np.int64)
    return Texts(data, bounds[:-1], bounds[1:])


def _hexadecimal(values: ColumnValues, texts: Texts) -> Texts:
    offsets, data = parts_of(_array(values, texts))
    digits = np.frombuffer(data.tobytes().hex().encode(), np.uint8)
    bounds = offsets.astype(np.int64) * 2
    return Texts(digits, bounds[:-1], bounds[1:])


def _array(values: ColumnValues, texts: Texts) -> pa.Array:
    data = values.window.bytes if texts.data is None else texts.data
    return slices(data, texts.starts, texts.stops)
