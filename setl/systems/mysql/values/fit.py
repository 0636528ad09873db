"""Finds values that a MySQL column would change silently, even in strict mode.

The server refuses numbers out of range, text that is too long and characters that a charset does
not have. Other values it changes, in strict mode too, and mostly without a note. It rounds
fractions of a second, decimals and floats. It fills BINARY up, and cuts spaces off CHAR and
VARCHAR. It takes a label whatever its case. For some NULLs it puts a value of its own. See
https://dev.mysql.com/doc/refman/8.4/en/sql-mode.html#sql-mode-strict and
https://dev.mysql.com/doc/refman/8.4/en/fractional-seconds.html
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import floor
from operator import methodcaller
from typing import Any, Final, NamedTuple

from setl.errors import DataError
from setl.model.labels import LABELLED, NumberOf, is_numbered, of_numbers, to_numbers
from setl.model.schema import Capacity, Column, Kind
from setl.systems.mysql.values.conversion import change_of
from setl.systems.mysql.values.lost_text import is_lost
from setl.systems.mysql.values.row_values import is_float, is_longer_than_single

_MOMENTS: Final = frozenset({Kind.TIME, Kind.DATETIME, Kind.TIMESTAMP})
_LABEL_KINDS: Final = {"enum": Kind.ENUM, "set": Kind.SET}
_WHOLE: Final = frozenset({Kind.INTEGER, Kind.BIT, Kind.YEAR})
_LABELLESS: Final = frozenset({*_WHOLE, Kind.BINARY, Kind.GEOMETRY})
_CUT_SPACES: Final = frozenset({"varchar", "tinytext", "text", "mediumtext", "longtext"})
_HOLDS: Final[dict[str, Callable[[int], bool]]] = {
    "float": is_float,
    "double": lambda number: float(number) == number,
}
"""Whether a floating-point column keeps a whole number as it is."""
_CLOCKS: Final = frozenset({"time", "datetime", "timestamp"})
_FRACTION: Final = re.compile(r"(?::\d\d?|\d{12})\.(\d+)")
"""What stands behind the point of a moment's seconds."""


class Look(Enum):
    """What tells, without decoding a column's values, that a guard finds none of them."""

    FRACTION = "no second has more digits"
    SCALE = "no decimal has more digits after its point"
    SIZE = "each value has that many bytes"
    SPACE = "no value of more bytes ends with a space"


@dataclass(frozen=True, slots=True)
class Guard:
    """Finds values that a column would change.

    Attributes:
        column_index: of the column in a row.
        changes: whether it would change a value, which is not NULL unless `nulls` is set.
        reason: what it would do, the end of a sentence.
        nulls: whether it is NULL that is changed.
        harmless: a look at all values of a column, without NULLs, that costs less than one at
            each of them: whether none can be changed.
        look: what tells that it finds nothing, and the number that it is about.
    """

    column_index: int
    changes: Callable[[Any], bool]
    reason: str
    nulls: bool = False
    harmless: Callable[[Sequence[Any]], bool] | None = None
    look: tuple[Look, int] | None = None

    def finds(self, values: Sequence[Any]) -> bool:
        """Whether any of the values would be changed."""
        if self.nulls:
            return None in values
        present = [v for v in values if v is not None] if None in values else values
        if not present or (self.harmless is not None and self.harmless(present)):
            return False
        return any(map(self.changes, present))


class Numbers(NamedTuple):
    """Makes numbers of the labels of a column.

    Attributes:
        column_index: of the column in a row.
        number_of: gives the number of a value that is not NULL.
    """

    column_index: int
    number_of: NumberOf

    def of(self, values: Sequence[Any], *, lacking: int | None = None) -> list[Any]:
        """The numbers of some values.

        Raises:
            LookupError: there is no such label, and `lacking` does not say what to take for it.
        """
        try:
            return [None if v is None else self.number_of(v) for v in values]
        except LookupError:
            if lacking is None:
                raise
        return [lacking if self._lacks(v) else self.number_of(v) for v in values]

    def first_without_label(self, values: Sequence[Any]) -> Any:
        """The first value of some that the column does not have."""
        return next(v for v in values if v is not None and self._lacks(v))

    def _lacks(self, value: Any) -> bool:
        try:
            self.number_of(value)
        except LookupError:
            return True
        return False


class ChangedValueError(DataError):
    """The target's column would change a value, as far as its description says."""


def guards_for(columns: Sequence[Column]) -> tuple[Guard, ...]:
    """The guards of rows whose columns have the capacities of the columns they go to.

    None for a column whose values all fit.
    """
    return hidden_label_guards(columns) + tuple(
        guard
        for column_index, column in enumerate(columns)
        if column.capacity is not None
        for guard in (
            *_conversion_guards(column_index, column.kind, column.capacity),
            *_guards(column_index, column, column.capacity),
        )
    )


def hidden_label_guards(columns: Sequence[Column]) -> tuple[Guard, ...]:
    """The guards of values for which the server may find another label than theirs.

    For rows and for keys: it would find another row's.
    """
    return tuple(
        Guard(
            column_index,
            _is_beyond_basic,
            "take another label for it, since its collation distinguishes no such characters",
        )
        for column_index, column in enumerate(columns)
        if column.capacity is not None
        and column.capacity.type in _LABEL_KINDS
        and column.capacity.alike
        and not column.capacity.labels
        and column.kind not in _LABELLESS
    )


def _is_beyond_basic(text: str) -> bool:
    return max(text, default="") > "\uffff"


def is_watched(column: Column, target: Column) -> bool:
    """Whether a column turns values into another kind, about which only the server knows all."""
    if column.kind is target.kind or target.kind is Kind.TEXT:
        return column.kind not in {target.kind, Kind.TEXT, Kind.JSON, *LABELLED}
    return not (column.kind in _WHOLE and target.kind is Kind.INTEGER)


def blanks_of(columns: Sequence[Column]) -> tuple[tuple[int, str], ...]:
    """Places of columns that have ENUM's number for what is no label, and how rows hold that."""
    return tuple(
        (column_index, of_numbers(Kind.ENUM, column.capacity.labels)(0))
        for column_index, column in enumerate(columns)
        if column.kind is Kind.ENUM
        and column.capacity
        and column.capacity.type == "enum"
        and column.capacity.labels
    )


def as_numbers(columns: Sequence[Column]) -> tuple[tuple[Column, ...], tuple[Numbers, ...]]:
    """The columns, those of labels that text may not find as numbers; and what makes these."""
    numbers = tuple(
        Numbers(
            column_index, to_numbers(_LABEL_KINDS[column.capacity.type], column.capacity.labels)
        )
        for column_index, column in enumerate(columns)
        if column.capacity is not None and is_numbered(column)
    )
    reported = list(columns)
    for column_index, _ in numbers:
        reported[column_index] = replace(reported[column_index], kind=Kind.INTEGER, unsigned=True)
    return tuple(reported), numbers


def is_single(column: Column) -> bool:
    """Whether a column keeps floating-point numbers in four bytes."""
    return column.capacity is not None and column.capacity.type == "float"


def _guards(column_index: int, column: Column, capacity: Capacity) -> Iterator[Guard]:
    kind, scale = column.kind, capacity.scale
    if capacity.fills_null:
        yield Guard(
            column_index, lambda v: v is None, "put a value of its own for NULL", nulls=True
        )
    if kind in _MOMENTS and capacity.type == "date":
        yield _ending_guard(column_index, "00:00:00.000000", "cut the time of day off")
    elif kind in _MOMENTS and scale is not None and scale < 6:
        guard = _ending_guard(column_index, "0" * (6 - scale), f"keep {scale} digits of the second")
        yield replace(guard, look=(Look.FRACTION, scale))
    elif kind is Kind.DECIMAL and scale is not None and (not column.scale or column.scale > scale):
        yield Guard(
            column_index,
            lambda v: _digits(v) > scale,
            f"round it to {scale} digits",
            look=(Look.SCALE, scale),
        )
    elif kind is Kind.FLOAT:
        yield from _float_guards(column_index, capacity)
    elif kind is Kind.INTEGER and capacity.type in _HOLDS:
        holds = _HOLDS[capacity.type]
        yield Guard(column_index, lambda v: not holds(v), "round it to the digits that it has")
    elif kind is Kind.TEXT and capacity.type in _CLOCKS:
        yield _written_guard(column_index, 6 if scale is None else scale)
    elif kind is Kind.BINARY and capacity.type == "binary":
        size = capacity.length
        yield Guard(
            column_index,
            lambda v: len(v) != size,
            f"fill it up to {size} bytes",
            look=(Look.SIZE, size),
        )
    elif capacity.labels and kind not in _LABELLESS and not is_numbered(column):
        yield _label_guard(column_index, kind, capacity)
    elif kind is Kind.TEXT and capacity.type == "char":
        yield Guard(
            column_index,
            lambda v: v[-1:] == " ",
            "cut the spaces at its end off",
            look=(Look.SPACE, 0),
        )
    elif kind is Kind.TEXT and capacity.type in _CUT_SPACES:
        yield _spaces_guard(column_index, capacity.length, in_bytes=capacity.type != "varchar")


def _conversion_guards(column_index: int, kind: Kind, capacity: Capacity) -> Iterator[Guard]:
    if changes := change_of(kind, capacity):
        yield Guard(column_index, changes, f"make another value of it, as {capacity.type}")


def _ending_guard(column_index: int, ending: str, reason: str) -> Guard:
    """For values that fit if they end in this."""
    ends = methodcaller("endswith", ending)
    return Guard(
        column_index, lambda v: not ends(v), reason, harmless=lambda vs: all(map(ends, vs))
    )


def _written_guard(column_index: int, scale: int) -> Guard:
    """For moments in text, of whose seconds servers drop digits without a note."""

    def changes(text: str) -> bool:
        found = _FRACTION.search(text)
        return found is not None and len(found[1].rstrip("0")) > scale

    return Guard(column_index, changes, f"keep {scale} digits of the second")


def _spaces_guard(column_index: int, size: int, *, in_bytes: bool) -> Guard:
    """For values that are cut to the column's size if it is only spaces that are lost."""
    measure, most = (_utf8_bytes, size // 4) if in_bytes else (len, size)
    return Guard(
        column_index,
        lambda v: v[-1:] == " " and measure(v) > size,
        "cut the spaces at its end off",
        harmless=lambda vs: max(map(len, vs)) <= most,
        look=(Look.SPACE, size),
    )


def _float_guards(column_index: int, capacity: Capacity) -> Iterator[Guard]:
    scale = capacity.scale
    if capacity.type == "float":
        yield Guard(column_index, is_longer_than_single, "round it to what four bytes hold")
    if capacity.type in {"float", "double"} and scale is not None:
        yield _digits_guard(column_index, scale, single=capacity.type == "float")
    elif capacity.type.endswith("int"):
        yield Guard(column_index, lambda v: not v.is_integer(), "round it to a whole number")


def _digits_guard(column_index: int, scale: int, *, single: bool) -> Guard:
    """For FLOAT(M,D) and DOUBLE(M,D), which are rounded as the server does it.

    It rounds the part of a number that is above the next lower whole one. So -0.1 is kept as
    -0.09999999999999998, and a rounding that gives -0.1 takes each such value for another one.
    """
    power = 10.0**scale

    def stored(value: float) -> float:
        whole = floor(value)
        return whole + round((value - whole) * power) / power

    if not single:
        return Guard(column_index, lambda v: stored(v) != v, f"round it to {scale} digits")
    return Guard(
        column_index, lambda v: not _same_single(stored(v), v), f"round it to {scale} digits"
    )


def _same_single(first: float, second: float) -> bool:
    """Whether four bytes hold the same number for both."""
    try:
        return struct.pack("<f", first) == struct.pack("<f", second)
    except OverflowError:  # the server refuses it
        return first == second


def _label_guard(column_index: int, kind: Kind, capacity: Capacity) -> Guard:
    labels = frozenset(capacity.labels)
    if capacity.type == "set":
        parts = labels | {""}
        return Guard(column_index, lambda v: not parts.issuperset(v.split(",")), "lack that label")
    known = labels | ({""} if kind is Kind.ENUM else frozenset[str]())
    # Of a label that has no UTF-8 form the server knows whether the column has it.
    return Guard(column_index, lambda v: v not in known and not is_lost(v), "lack that label")


def _digits(text: str) -> int:
    """Digits after the point, without zeros at the end."""
    return len(text.partition(".")[2].rstrip("0"))


def _utf8_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
