"""Values of rows as columns of Arrow, and back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from ipaddress import ip_address
from typing import Any, Final, Literal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from setl.bulk.comparing import Form
from setl.codec.charset import in_characters
from setl.errors import DataError
from setl.model.change import ABSENT, Value
from setl.model.labels import is_marked, shown
from setl.model.logged_bytes import logged_length, logged_value
from setl.model.schema import Column, Kind
from setl.printable import printable
from setl.systems.delta.types import delta_name

ZeroDates = Literal["refuse", "as_null"]

CALENDAR: Final = frozenset({Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP})
_NO_ZONE: Final = pa.timestamp("us")
_DATE_FORM: Final = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d\.\d{6})?")
_NO_DATE_HINT: Final = (
    "Correct the row at the source; or write `zero_dates: as_null` in the target, so that such"
    " dates are NULL; or leave the column out (`exclude`)"
)
_NO_FIT_HINT: Final = "Correct the row at the source, or leave the column out (`exclude`)"


class NoSuchValueError(Exception):
    """A value that a column of the table does not hold; `index` tells which."""

    def __init__(self, index: int, why: str) -> None:
        super().__init__(why)
        self.index = index


def column_of(
    column: Column,
    values: Sequence[Value],
    kind: pa.DataType,
    zero_dates: ZeroDates,
    *,
    of_key: bool = False,
) -> pa.Array:
    """Values of a column as the table has them.

    Text without a form in UTF-8 is written in characters, but in a key: two keys must not become
    one.

    Raises:
        NoSuchValueError: the table's column cannot hold one of them as it is.
    """
    try:
        return _array(column, values, kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError, ArithmeticError):
        zero_dates = "refuse" if of_key else zero_dates
        fitting = [
            _one(column, i, v, kind, zero_dates, of_key=of_key) for i, v in enumerate(values)
        ]
        return pa.concat_arrays(fitting) if fitting else pa.array([], kind)


def form_or_null(form: Form, kind: pa.DataType, value: Value) -> Value:
    """A value of a source as it is compared where dates that no calendar has are stored as NULL."""
    if isinstance(value, str) and _DATE_FORM.fullmatch(value) and not _is_moment(value, kind):
        return None
    return form(value)


def _is_moment(text: str, kind: pa.DataType) -> bool:
    try:
        datetime.fromisoformat(text)  # fast, and has no year 0
    except ValueError:
        try:
            pa.array([text], pa.string()).cast(kind if pa.types.is_date(kind) else _NO_ZONE)
        except pa.ArrowInvalid:
            return False
    return True


def error_of(column: Column, value: Value, kind: pa.DataType) -> DataError:
    """The error of a value that does not fit, without its row."""
    if value is ABSENT:
        return DataError(
            f"a record does not mention column {column.name}",
            hint="Set binlog_row_image=FULL at the source, or subscribe to all columns",
        )
    if is_marked(value):
        what = f"is {shown(str(value))}, and another value of its column has that text, too"
    else:
        what = f"holds a value that {delta_name(kind)} cannot: {printable(repr(value))[:200]}"
    hint = _NO_DATE_HINT if column.kind in CALENDAR else _NO_FIT_HINT
    return DataError(f"column {column.name} {what}", hint=hint)


def _one(
    column: Column,
    index: int,
    value: Value,
    kind: pa.DataType,
    zero_dates: ZeroDates,
    *,
    of_key: bool,
) -> pa.Array:
    try:
        return _array(column, [value], kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError, ArithmeticError) as error:
        no_date = (
            zero_dates == "as_null"
            and column.kind in CALENDAR
            and isinstance(value, str)
            and _DATE_FORM.fullmatch(value)
        )
        if no_date:
            return pa.nulls(1, kind)
        if isinstance(value, str) and not is_marked(value) and not of_key:
            readable = in_characters(value)
            if readable != value:
                return _one(column, index, readable, kind, zero_dates, of_key=of_key)
        raise NoSuchValueError(index, str(error)) from error


def _array(column: Column, values: Sequence[Value], kind: pa.DataType) -> pa.Array:
    if column.kind in CALENDAR and not pa.types.is_string(kind):
        if pa.types.is_timestamp(kind):
            return pa.array(values, pa.string()).cast(pa.timestamp("us")).cast(kind)
        return pa.array(values, pa.string()).cast(kind)
    if pa.types.is_decimal(kind):
        # By way of text: it says how many digits there are, and none is rounded away.
        texts = [None if v is None else str(v) for v in values]
        if any(v is ABSENT for v in values):
            raise TypeError("absent")
        return pa.array(texts, pa.string()).cast(kind)
    if pa.types.is_float32(kind):
        made = pa.array(values, pa.float64()).cast(kind)
        if column.width != 4 and [*_shortest(made)] != [*values]:
            raise ValueError("not exact")
        return made
    if pa.types.is_binary(kind) and logged_length(column):
        # Read from its table as text; the stream has the bytes.
        values = [logged_value(column, v) if isinstance(v, str) else v for v in values]
    return pa.array(values, kind)


def values_of(column: Column, found: pa.ChunkedArray) -> list[Value]:
    """A column of the table as the values of rows, of a source's column."""
    kind = found.type
    if column.kind in CALENDAR and not pa.types.is_string(kind):
        return _moments(found)
    values: list[Any] = found.to_pylist()
    if pa.types.is_decimal(kind):
        if column.kind is Kind.DECIMAL:
            return [None if v is None else _exact(v) for v in values]
        return [None if v is None else int(v) for v in values]
    if logged_length(column):
        return [None if v is None else _as_shown(column, v) for v in values]
    return [*_shortest(found)] if pa.types.is_float32(kind) else values


def _as_shown(column: Column, value: bytes) -> str:
    """The inverse of `logged_value`."""
    uuid = column.capacity is not None and column.capacity.type == "uuid"
    return str(UUID(bytes=value) if uuid else ip_address(value))


def _shortest(found: pa.Array | pa.ChunkedArray) -> Iterator[float | None]:
    """Floats of four bytes as rows have them: the shortest number that is this one and no other."""
    for value in found.to_pylist():
        yield None if value is None else float(str(np.float32(value)))


def _exact(value: Decimal) -> str:
    return format(value, "f")


def _moments(found: pa.ChunkedArray) -> list[Value]:
    """Dates and times as text, as rows have them. Python's own types lack the year 0."""
    if pa.types.is_timestamp(found.type):
        found = found.cast(pa.timestamp("us"))
    text = found.cast(pa.string())
    if pa.types.is_timestamp(found.type):
        pattern, whole = r"\.\d{6}$", pc.binary_join_element_wise(text, ".000000", "")
        text = pc.if_else(pc.match_substring_regex(text, pattern), text, whole)
    return text.to_pylist()
