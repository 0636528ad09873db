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

from setl.codec.columns.column_rows import ColumnRows
from setl.codec.columns.fields import Field, UnfitValuesError
from setl.codec.columns.texts import Texts
from setl.codec.columns.values import MadeText, listed
from setl.codec.columns.window import Mask, Positions
from setl.model.schema import Column
from setl.systems.mysql.load.columns.fit import Fit
from setl.systems.mysql.load.columns.pieces import JoinedRows, Piece, Slot
from setl.systems.mysql.load.columns.writing import ColumnWriter
from setl.systems.mysql.load.packed import (
    BLOB,
    DOUBLE,
    LONGLONG,
    SIGNED_MOST,
    STRING,
    UNSIGNED,
    UnfitError,
    packed_rows,
)
from setl.systems.mysql.values.fit import is_single
from setl.systems.mysql.values.literals import storable

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
    parameters = _Parameters(fit, rows)
    try:
        joined = parameters.joined()
    except (UnfitValuesError, UnfitError, LookupError, ValueError, OverflowError):
        return None
    return PackedColumns(bytes(parameters.types), joined)


class _Parameters(ColumnWriter):
    def __init__(self, fit: Fit, rows: ColumnRows) -> None:
        super().__init__(fit, rows)
        self.types = bytearray()

    def _type(self, type_: int, flags: int = 0) -> None:
        self.types += bytes((type_, flags))

    def _rendered(self, column: Column, held: Sequence[Any]) -> list[bytes]:
        packed = packed_rows((column,), (held,))
        self.types += packed.types
        return packed.rows

    def _whole(self, numbers: NDArray[Any], null: Mask | None) -> Piece:
        large = numbers.dtype == np.uint64 and int(numbers.max()) > SIGNED_MOST
        self._type(LONGLONG, UNSIGNED if large else 0)
        return _number_slot("<u8" if large else "<i8", numbers, null)

    def _by_value(
        self, column: Column, index: int, null: Mask | None
    ) -> tuple[Piece, Sequence[Any]]:
        numbers = self._values.floating(index)
        if null is not None:
            numbers = np.where(null, 0.0, numbers)
        if not np.isfinite(numbers).all():
            raise UnfitValuesError("not a finite number")
        held = listed(numbers, null)
        if is_single(column):
            given = [0.0 if v is None else v for v in storable(column, held)]
            if not all(map(math.isfinite, given)):
                raise UnfitValuesError("not a finite number")
            numbers = np.array(given, np.float64)
        self._type(DOUBLE)
        return _number_slot("<f8", numbers, null), held

    def _made(self, text: MadeText, null: Mask | None) -> Piece:
        put, size, trimmed = text
        self._type(STRING)

        def fill(field: Field) -> Positions | None:
            begins = put(field.behind(2))
            if begins is None:
                field.put(0, "<u2", size << 8)
            else:
                field.put_at(begins, "<u2", ((size - begins) << 8).astype(np.uint16))
            return _with_nulls(field, 2 + size, begins, null)

        return Slot(2 + size, fill, trimmed=null is not None or trimmed)

    def _text(self, texts: Texts, null: Mask | None, *, is_bytes: bool) -> Sequence[Piece]:
        self._type(BLOB if is_bytes else STRING)
        return [_length_slot(texts.lengths, null), texts]


def _number_slot(dtype: str, numbers: NDArray[Any], null: Mask | None) -> Slot:
    width = 1 + 8

    def fill(field: Field) -> Positions | None:
        field.put(0, "u1", 0)
        field.put(1, dtype, numbers)
        return _with_nulls(field, width, None, null)

    return Slot(width, fill, null is not None)


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
