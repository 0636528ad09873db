"""Rows as binary parameters of a statement, by column: the same bytes as row by row.

What `setl.systems.mysql.load.packed` makes of decoded rows is made here of the bytes of their
events. Where a value would be refused there, or is of a kind that is not read by column, nothing is
made: the rows are decoded then, and what is wrong with one is found and named as ever.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from setl.codec.binlog.columns.column_rows import ColumnRows
from setl.codec.binlog.columns.decimals import decimal_width, put_decimal
from setl.codec.binlog.columns.decoded import listed
from setl.codec.binlog.columns.fields import Field, UnfitValuesError
from setl.codec.binlog.columns.labels import distinct_labels
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
from setl.codec.binlog.columns.texts import require_utf8, texts_of
from setl.codec.binlog.columns.window import Mask, Positions
from setl.model.labels import LABELLED
from setl.model.schema import Column, Kind
from setl.systems.mysql.load.columns.fit import Fit, refuse_changed, refuse_found
from setl.systems.mysql.load.columns.pieces import Choice, JoinedRows, Piece, Slot, joined_rows
from setl.systems.mysql.load.packed import (
    BLOB,
    BYTES,
    DOUBLE,
    LONGLONG,
    SIGNED_MOST,
    STRING,
    UNSIGNED,
    UnfitError,
    packed_rows,
)
from setl.systems.mysql.values.fit import Guard, is_single
from setl.systems.mysql.values.literals import fills_year, storable

_NULL: Final = 1  # the byte of a NULL; other values have 0 in front of them
_SHORTEST, _SHORT, _LONG = 251, 1 << 16, 1 << 24  # lengths from which on more bytes say them
_SPACE: Final = ord(" ")


@dataclass(frozen=True, slots=True)
class PackedColumns:
    """Rows as parameters.

    Attributes:
        types: of a row's values, two bytes for each.
        rows: the rows.
    """

    types: bytes
    rows: JoinedRows

    @property
    def ends(self) -> Sequence[int]:
        """Bytes up to the end of each row."""
        return self.rows.ends[1:]  # pyright: ignore[reportReturnType] - numbers in a row

    def between(self, start: int, stop: int) -> Sequence[memoryview]:
        """The bytes of some rows."""
        return [self.rows.between(start, stop)]


def packed_columns(fit: Fit, rows: ColumnRows) -> PackedColumns | None:
    """Rows as parameters, at least one; None if they have to be packed row by row."""
    values = rows.values
    if any(rows.column(i) in values.nulls for i in fit.never_null):
        return None
    try:
        parameters = _Parameters(fit, rows)
        for i in range(len(fit.columns)):
            parameters.add(i)
        require_utf8(values, parameters.textual)
        joined = joined_rows(values.window, values.count, parameters.pieces)
    except (UnfitValuesError, UnfitError, LookupError, ValueError, OverflowError):
        return None
    return PackedColumns(bytes(parameters.types), joined)


class _Parameters:
    """The columns that have become pieces of the rows."""

    def __init__(self, fit: Fit, rows: ColumnRows) -> None:
        self._fit = fit
        self._rows = rows
        self._values = rows.values
        self.types = bytearray()
        self.pieces: list[Piece] = []
        self.textual: list[int] = []

    def add(self, i: int) -> None:
        """Add a column of the statement.

        Raises:
            UnfitValuesError, UnfitError, LookupError, ValueError: a value has no such form.
        """
        fit, values = self._fit, self._values
        column, index = fit.columns[i], self._rows.column(fit.picks[i])
        kind, guards = values.layout.columns[index].kind, fit.guards.get(i, ())
        if kind in LABELLED:
            self._labels(i, column, index, guards)
        elif kind in WHOLE:
            self._whole(column, index, guards)
        elif kind is Kind.FLOAT:
            self._floating(column, index, guards)
        else:
            null = values.nulls.get(index)
            texts = texts_of(values, index) if values.layout.columns[index].size < 0 else None
            refuse_found(guards, values, index, texts)
            if texts is None:
                self._type(STRING)
                self.pieces.append(_text_slot(values, index, kind, null))
            else:
                self._type(BLOB if kind in BYTES else STRING)
                self.textual.append(index)
                self.pieces += [_length_slot(texts.lengths, null), texts]

    def _type(self, type_: int, flags: int = 0) -> None:
        self.types += bytes((type_, flags))

    def _labels(self, i: int, column: Column, index: int, guards: Sequence[Guard]) -> None:
        held: Sequence[Any]
        held, which = distinct_labels(self._values, index)
        numbers = self._fit.numbers.get(i)
        if numbers is not None:
            held = numbers.of(held)
        packed = packed_rows((column,), (held,))
        refuse_changed(guards, held)
        self.types += packed.types
        self.pieces.append(Choice(packed.rows, which))

    def _whole(self, column: Column, index: int, guards: Sequence[Guard]) -> None:
        numbers, null = whole_numbers(self._values, index), self._values.nulls.get(index)
        if fills_year(column) and (numbers == 0).any():
            raise UnfitValuesError("the year 0000 is written as text")
        if guards:
            refuse_changed(guards, listed(numbers, null))
        large = numbers.dtype == np.uint64 and int(numbers.max()) > SIGNED_MOST
        self._type(LONGLONG, UNSIGNED if large else 0)
        self.pieces.append(_number_slot("<u8" if large else "<i8", numbers, null))

    def _floating(self, column: Column, index: int, guards: Sequence[Guard]) -> None:
        numbers, null = floating_numbers(self._values, index), self._values.nulls.get(index)
        if null is not None:
            numbers = np.where(null, 0.0, numbers)
        if not np.isfinite(numbers).all():
            raise UnfitValuesError("not a finite number")
        if guards or is_single(column):
            held = listed(numbers, null)
            if is_single(column):
                given = [0.0 if v is None else v for v in storable(column, held)]
                if not all(map(math.isfinite, given)):
                    raise UnfitValuesError("not a finite number")
                numbers = np.array(given, np.float64)
            refuse_changed(guards, held)
        self._type(DOUBLE)
        self.pieces.append(_number_slot("<f8", numbers, null))


def _number_slot(dtype: str, numbers: NDArray[Any], null: Mask | None) -> Slot:
    width = 1 + 8

    def fill(field: Field) -> Positions | None:
        field.put(0, "u1", 0)
        field.put(1, dtype, numbers)
        return _with_nulls(field, width, None, null)

    return Slot(width, fill, null is not None)


def _text_slot(values: ColumnValues, index: int, kind: Kind, null: Mask | None) -> Slot:
    """Text that is made of a value of a fixed size, with its length in front of it."""
    if kind in (Kind.TIME, Kind.DECIMAL):
        put, size = put_time, TIME_WIDTH
        if kind is Kind.DECIMAL:
            put, size = put_decimal, decimal_width(values.layout.columns[index].wire)

        def fill_trimmed(field: Field) -> Positions | None:
            begins = put(values, index, field.behind(2))
            field.put_at(begins, "<u2", ((size - begins) << 8).astype(np.uint16))
            return _with_nulls(field, 2 + size, begins, null)

        return Slot(2 + size, fill_trimmed, trimmed=True)
    if kind is Kind.DATE:
        put_text, length = put_date, DATE_WIDTH
    elif kind in (Kind.DATETIME, Kind.TIMESTAMP):
        put_text, length = put_moment, MOMENT_WIDTH
    else:
        raise UnfitValuesError(f"{kind.value} is read row by row")

    def fill(field: Field) -> Positions | None:
        field.put(0, "<u2", length << 8)
        put_text(values, index, field.behind(2))
        return _with_nulls(field, 2 + length, None, null)

    return Slot(2 + length, fill, null is not None)


def _length_slot(lengths: NDArray[np.int64], null: Mask | None) -> Slot:
    """What stands in front of a text: that it is none of NULL, and its length.

    Raises:
        UnfitValuesError: a text is too long.
    """
    longest = int(lengths.max())
    if longest >= _LONG:
        raise UnfitValuesError("a text is too long")
    width = 2 if longest < _SHORTEST else 4 if longest < _SHORT else 5

    def fill(field: Field) -> Positions | None:
        field.put(width - 2, "<u2", ((lengths & 0xFF) << 8).astype(np.uint16))
        begins = None
        if longest >= _SHORTEST:
            begins = np.full(len(lengths), width - 2, np.int64)
            for least, size, mark in ((_SHORTEST, 4, 0xFC), (_SHORT, 5, 0xFD)):
                longer = lengths >= least
                if longer.any():
                    begins = np.where(longer, width - size, begins)
                    number = lengths << 16 | mark << 8
                    lower = (number & 0xFFFF_FFFF).astype(np.uint32)
                    field.put_at(begins, "<u4", lower, longer)
                    if size > 4:
                        field.put_at(begins + 4, "u1", (number >> 32).astype(np.uint8), longer)
        return _with_nulls(field, width, begins, null)

    return Slot(width, fill, null is not None or longest >= _SHORTEST)


def _with_nulls(
    field: Field, width: int, begins: Positions | None, null: Mask | None
) -> Positions | None:
    """Make NULLs of some; where each row begins in its field then."""
    if null is None:
        return begins
    last = np.full(field.count, width - 1, np.int64)
    field.put_at(last, "u1", _NULL, null)
    return np.where(null, last, 0 if begins is None else begins)
