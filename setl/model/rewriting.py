"""Values of Python as columns hold them: the way back from `setl.model.conversion`.

What a processor puts into a row is written in the form of the column's kind (see `Kind`), as if
it had come from the source. Nothing is rounded or cut: what a column's kind cannot hold raises
`UnfitError` with the reason. Which values a kind takes, besides None for NULL:

===============  ==================================================================
INTEGER, YEAR,   int, bool; other numbers that are whole
BIT
DECIMAL          Decimal, int, and float or text that is a number; with no more
                 digits behind the point than the column has
FLOAT            float, int; other numbers if a float means just the same
TEXT, ENUM       str
SET              str, or several labels in a list, tuple or set
JSON             dict, list, bool, int and float; str is the text of the JSON
DATE             date
TIME             timedelta, or time without a zone
DATETIME         datetime without a zone
TIMESTAMP        datetime with a zone
BINARY, GEOMETRY bytes
===============  ==================================================================

Dates and times are also taken as text in the form that rows hold, which is the only way to write
a zero date.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, cast

from setl.model.change import Value
from setl.model.conversion import UnfitError, ZeroDateError, decimal, duration, floating, integer
from setl.model.conversion import day as parsed_day
from setl.model.conversion import moment as parsed_moment
from setl.model.schema import Column, Kind

_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}")
_NUMBER_TYPES: Final = (int, float, Decimal, str)
_NANOSECONDS: Final = ("nanosecond", "nanoseconds")  # of Timestamp and Timedelta of pandas


def column_value(column: Column, value: object) -> Value:
    """A value in the form in which rows hold it in a column of this kind.

    Raises:
        UnfitError: the column cannot hold it; says why.
    """
    return None if value is None else _WRITTEN[column.kind](column, _built_in(value))


def column_for(name: str, value: object) -> Column:
    """The column to add to a row for a value of this Python type; text for None.

    Raises:
        UnfitError: no kind of column holds such values.
    """
    if isinstance(value, datetime):
        return Column(name, Kind.DATETIME if value.tzinfo is None else Kind.TIMESTAMP)
    for types, kind in _ADDED:
        if isinstance(value, types):
            return Column(name, kind)
    raise UnfitError(f"is {type(value).__name__}, which no column holds")


def _built_in(value: object) -> object:
    """A value of a subclass as its base has it, since it may write itself otherwise.

    `str` of a member of ``class Status(str, Enum)`` is ``Status.ACTIVE``, and not its text; `repr`
    of a float of NumPy is no number.
    """
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__int__(value)
    if any(getattr(value, name, 0) for name in _NANOSECONDS):
        raise UnfitError("has nanoseconds")
    return value


def _number(_: Column, value: object) -> Value:
    return integer(_plain(value))


def _decimal(column: Column, value: object) -> Value:
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise UnfitError("is not a finite number")
        exact = value
    else:
        exact = decimal(_plain(value))
    digits = max(0, -cast("int", exact.as_tuple().exponent))
    if column.precision:
        if digits > column.scale and exact != round(exact, column.scale):
            raise UnfitError(f"has more than {column.scale} digits behind the point")
        digits = column.scale
    return format(exact if exact else abs(exact), f".{digits}f")


def _floating(_: Column, value: object) -> Value:
    return floating(_plain(value))


def _plain(value: object) -> Value:
    """A number as `setl.model.conversion` takes it."""
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, _NUMBER_TYPES):
        raise _unfit(value, "a number")
    return format(value, "f") if isinstance(value, Decimal) else value


def _text(_: Column, value: object) -> Value:
    if not isinstance(value, str):
        raise _unfit(value, "text")
    return value


def _labels(column: Column, value: object) -> Value:
    if not isinstance(value, list | tuple | set | frozenset):
        return _text(column, value)
    labels = [str(_text(column, _built_in(each))) for each in cast("Iterable[object]", value)]
    if isinstance(value, set | frozenset):
        labels.sort()  # in a process of its own it has another order
    if any("," in label for label in labels):
        raise UnfitError("has a label with a comma, which separates labels")
    return ",".join(labels)


def _json(_: Column, value: object) -> Value:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UnfitError(f"is no JSON: {error}") from None


def _date(_: Column, value: object) -> Value:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str) and _DAY.fullmatch(value):
        return _unless_zero(parsed_day, value)
    raise _unfit(value, "a date")


def _time(_: Column, value: object) -> Value:
    if isinstance(value, time) and value.tzinfo is None:
        value = timedelta(
            hours=value.hour,
            minutes=value.minute,
            seconds=value.second,
            microseconds=value.microsecond,
        )
    elif isinstance(value, str):
        value = duration(value)
    if not isinstance(value, timedelta):
        raise _unfit(value, "a time")
    seconds, micros = divmod(abs(value) // timedelta(microseconds=1), 1_000_000)
    sign = "-" if value < timedelta() else ""
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}"


def _datetime(_: Column, value: object) -> Value:
    if isinstance(value, datetime) and value.tzinfo is None:
        # That of pandas for no time at all gives a word.
        value = value.isoformat(sep=" ", timespec="microseconds")
    return _moment_text(value, "a date and time without a zone")


def _timestamp(_: Column, value: object) -> Value:
    if isinstance(value, datetime) and value.tzinfo is not None:
        in_utc = value.astimezone(UTC).replace(tzinfo=None)
        return in_utc.isoformat(sep=" ", timespec="microseconds")
    return _moment_text(value, "a date and time with a zone")


def _moment_text(value: object, what: str) -> Value:
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        return _unless_zero(parsed_moment, value)
    raise _unfit(value, what)


def _unless_zero(parse: Callable[[Value], object], value: str) -> str:
    """The text, if it is a date or one with a part that is zero."""
    with suppress(ZeroDateError):
        parse(value)
    return value


def _binary(_: Column, value: object) -> Value:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _unfit(value, "bytes")
    return bytes(cast("bytes", value))


def _unfit(value: object, wanted: str) -> UnfitError:
    return UnfitError(f"is {type(value).__name__} and not {wanted}")


_WRITTEN: Final[dict[Kind, Callable[[Column, Any], Value]]] = {
    Kind.INTEGER: _number,
    Kind.YEAR: _number,
    Kind.BIT: _number,
    Kind.DECIMAL: _decimal,
    Kind.FLOAT: _floating,
    Kind.TEXT: _text,
    Kind.ENUM: _text,
    Kind.SET: _labels,
    Kind.JSON: _json,
    Kind.DATE: _date,
    Kind.TIME: _time,
    Kind.DATETIME: _datetime,
    Kind.TIMESTAMP: _timestamp,
    Kind.BINARY: _binary,
    Kind.GEOMETRY: _binary,
}

_ADDED: Final[tuple[tuple[Any, Kind], ...]] = (
    (int, Kind.INTEGER),  # bool too
    (float, Kind.FLOAT),
    (Decimal, Kind.DECIMAL),
    ((str, type(None)), Kind.TEXT),
    ((bytes, bytearray, memoryview), Kind.BINARY),
    (date, Kind.DATE),
    ((time, timedelta), Kind.TIME),
    ((dict, list), Kind.JSON),
)
