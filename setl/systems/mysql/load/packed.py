"""Rows as binary parameters of a statement, a column at a time.

What a server gets is what the literals of `setl.systems.mysql.values.literals` say: whole numbers
and floating-point numbers as such, bytes as bytes, all else as text in UTF-8.

Sources: https://mariadb.com/kb/en/com_stmt_bulk_execute/ (each value has a byte in front of it that
tells NULL) and https://mariadb.com/kb/en/resultset-row/#binary-resultset-row (the values).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from itertools import accumulate, repeat, starmap
from typing import Final, NamedTuple

from setl.errors import DataError
from setl.model.schema import Column, Kind
from setl.systems.mysql.values.fit import is_single
from setl.systems.mysql.values.literals import Values, fills_year, storable

_GIVEN: Final = b"\0"
_NULL: Final = b"\1"
LONGLONG, DOUBLE, BLOB, STRING = 8, 5, 252, 253
UNSIGNED: Final = 0x80
_WHOLE: Final = frozenset({Kind.INTEGER, Kind.YEAR, Kind.BIT})
BYTES: Final = frozenset({Kind.BINARY, Kind.GEOMETRY})
SIGNED_MOST: Final = 2**63 - 1


class UnfitError(DataError):
    """A value has no such form; its literal says more about it."""


class Packed(NamedTuple):
    """Rows as parameters.

    Attributes:
        types: of a row's values, two bytes for each.
        rows: the values of each row.
    """

    types: bytes
    rows: list[bytes]

    @property
    def ends(self) -> Sequence[int]:
        """Bytes up to the end of each row."""
        return list(accumulate(map(len, self.rows)))

    def between(self, start: int, stop: int) -> Sequence[bytes]:
        """The bytes of some rows."""
        return self.rows[start:stop]


class _Numbers(NamedTuple):
    """Columns that stand together and have a number in every row."""

    layout: str
    columns: list[Values]


def packed_rows(columns: Sequence[Column], held: Sequence[Values]) -> Packed:
    """Each row as parameters, the values in the order of `columns`.

    Args:
        columns: what the values are, with the capacities of the columns that they go to.
        held: the values of each column, of at least one row.

    Raises:
        UnfitError: a value is not of the form that its `Kind` has, or has no binary form.
    """
    types = bytearray()
    parts: list[Sequence[bytes]] = []
    numbers = _Numbers("", [])
    try:
        for column, values in zip(columns, held, strict=True):
            code, flags, layout = _type_of(column, values)
            types += bytes((code, flags))
            if not layout:
                given = _bytes(values) if code == BLOB else _texts(values)
            elif column.kind is Kind.FLOAT:
                given = _floats(column, values)
            else:
                given = values
            if fills_year(column) and 0 in values:
                raise UnfitError("the year 0000 is written as text")
            if layout and None not in given:
                numbers = _Numbers(numbers.layout + f"x{layout}", [*numbers.columns, given])
                continue
            _add(parts, numbers)
            numbers = _Numbers("", [])
            parts += [_numbers_and_nulls(layout, given)] if layout else _measured(given)
        _add(parts, numbers)
    except (TypeError, ValueError, AttributeError, OverflowError, struct.error) as error:
        raise UnfitError(str(error)) from error
    return Packed(bytes(types), list(map(b"".join, zip(*parts, strict=True))))


def _type_of(column: Column, values: Values) -> tuple[int, int, str]:
    """The type of a column's values, its flags, and the letter of numbers in `struct`."""
    if column.kind in _WHOLE:
        large = column.unsigned or column.kind is Kind.BIT
        if large and max([v for v in values if v is not None], default=0) > SIGNED_MOST:
            return LONGLONG, UNSIGNED, "Q"
        return LONGLONG, 0, "q"
    if column.kind is Kind.FLOAT:
        return DOUBLE, 0, "d"
    return (BLOB if column.kind in BYTES else STRING), 0, ""


def _add(parts: list[Sequence[bytes]], numbers: _Numbers) -> None:
    """One call packs all numbers of a row that stand together."""
    if numbers.columns:
        pack = struct.Struct(f"<{numbers.layout}").pack
        parts.append(list(starmap(pack, zip(*numbers.columns, strict=True))))


def _numbers_and_nulls(layout: str, values: Values) -> list[bytes]:
    pack = struct.Struct(f"<x{layout}").pack
    return [_NULL if v is None else pack(v) for v in values]


def _floats(column: Column, values: Values) -> Values:
    given = storable(column, values) if is_single(column) else values
    present = [v for v in given if v is not None] if None in given else given
    if not (all(map(isinstance, present, repeat(float))) and all(map(math.isfinite, present))):
        raise UnfitError("not a finite number")
    return given


def _texts(values: Values) -> list[bytes | None]:
    encode = str.encode
    if None in values:
        return [None if v is None else encode(v) for v in values]
    return list(map(encode, values))


def _bytes(values: Values) -> Values:
    if not all(isinstance(v, bytes) for v in values if v is not None):
        raise UnfitError("not bytes")
    return values


def _measured(values: Values) -> list[Sequence[bytes]]:
    """What stands in front of each value, and the values."""
    if None in values:
        return [[_NULL if v is None else _head(len(v)) + v for v in values]]
    sizes = list(map(len, values))
    head = _SHORT.__getitem__ if max(sizes) < len(_SHORT) else _head
    return [list(map(head, sizes)), values]


def _head(length: int) -> bytes:
    """What stands before a value: that it is none of NULL, and its length."""
    if length < len(_SHORT):
        return _SHORT[length]
    if length < 1 << 16:
        return b"\0\xfc" + length.to_bytes(2, "little")
    if length < 1 << 24:
        return b"\0\xfd" + length.to_bytes(3, "little")
    return b"\0\xfe" + length.to_bytes(8, "little")


_SHORT: Final = tuple(_GIVEN + bytes([length]) for length in range(251))
