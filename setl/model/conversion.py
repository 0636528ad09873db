"""Converts a column's value to another type, without losing any part of it.

A value that does not fit raises `UnfitError` with the reason; nothing is rounded, cut or guessed.
Which kinds a conversion takes:

=========  ========================================================================
text       all kinds but BINARY and GEOMETRY, whose bytes are in no charset
integer    INTEGER, YEAR, BIT; DECIMAL, FLOAT and TEXT if they are whole numbers
decimal    INTEGER, YEAR, BIT, DECIMAL; FLOAT with the fewest digits that mean the
           same float; TEXT if it is a number
float      FLOAT; INTEGER, YEAR, BIT, DECIMAL and TEXT if the float, written with the
           fewest digits, is the same number again (0.1 is; 16777217.123456789012 is not)
bytes      BINARY; GEOMETRY (4 bytes SRID, then WKB)
date       DATE
time       TIME from 00:00:00 to below 24 hours
duration   TIME, negative and beyond a day too
datetime   DATETIME (without zone); TIMESTAMP (UTC)
json       JSON; TEXT, which is what MariaDB's JSON columns are
=========  ========================================================================

Dates with a part that is zero, and times of day beyond a day, have no Python value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any, Final, cast

from setl.model.change import Value
from setl.model.schema import COLUMN_KINDS, Kind

Json = dict[str, "Json"] | list["Json"] | str | int | float | Decimal | bool | None
"""Parsed JSON. Decimal stands for a number with more digits than a float holds."""

_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,5})?")
_CLOCK: Final = re.compile(r"(-?)([0-9]+):([0-5][0-9]):([0-5][0-9])(?:\.([0-9]{1,6}))?")

# Python prints no longer integers, since the time grows with the square of their length; and
# 1E99999, seven letters, would be one.
_DIGITS: Final = 4300


class UnfitError(ValueError):
    """A value has no equal in the type asked for; the text says why, as the end of a sentence."""


class ZeroDateError(UnfitError):
    """A date of which a part is zero, as MySQL allows."""


def text(value: Value) -> str:
    """A value as MySQL prints it; a float with the fewest digits that mean the same float."""
    if isinstance(value, str):
        return value
    return repr(value) if isinstance(value, float) else str(value)


def integer(value: Value) -> int:
    """A whole number."""
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        if not value.is_integer():  # neither are infinity and NaN
            raise UnfitError("is not a whole number")
        return int(value)
    number = _decimal_of(_as_text(value))
    if number and number.adjusted() >= _DIGITS:
        raise UnfitError(f"has more than {_DIGITS} digits")
    if number != number.to_integral_value():
        raise UnfitError("is not a whole number")
    return int(number)


def decimal(value: Value) -> Decimal:
    """An exact decimal number."""
    if isinstance(value, int):
        return Decimal(value)
    if isinstance(value, float):
        if not isfinite(value):
            raise UnfitError("is not a finite number")
        return Decimal(repr(value))
    return _decimal_of(_as_text(value))


def floating(value: Value) -> float:
    """A float that, written with the fewest digits, is the same number."""
    if isinstance(value, float):
        return value
    exact = decimal(value)
    near = _nearest(exact)
    if near is None:
        raise UnfitError("is not the same number as the nearest float")
    return near


def binary(value: Value) -> bytes:
    """The bytes."""
    return cast("bytes", value)


def day(value: Value) -> date:
    """A date."""
    written = _as_text(value)
    try:
        return date.fromisoformat(written)
    except ValueError:
        raise _no_date(written) from None


def moment(value: Value) -> datetime:
    """A date with a time of day, without a zone."""
    written = _as_text(value)
    try:
        return datetime.fromisoformat(written)
    except ValueError:
        raise _no_date(written) from None


def instant(value: Value) -> datetime:
    """A date with a time of day in UTC."""
    return moment(value).replace(tzinfo=UTC)


def duration(value: Value) -> timedelta:
    """A time that may be negative and may go beyond a day."""
    found = _CLOCK.fullmatch(_as_text(value))
    if found is None:
        raise UnfitError("is not a time")
    sign, hours, minutes, seconds, fraction = found.groups(default="")
    length = timedelta(
        hours=int(hours),
        minutes=int(minutes),
        seconds=int(seconds),
        microseconds=int(fraction.ljust(6, "0") or 0),
    )
    return -length if sign else length


def time_of_day(value: Value) -> time:
    """A time from midnight to below 24 hours."""
    length = duration(value)
    if not timedelta() <= length < timedelta(days=1):
        raise UnfitError("is not a time of day; read it as a duration")
    seconds = length.seconds
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, length.microseconds)


def parsed_json(value: Value) -> Json:
    """Parsed JSON; a number that no float means exactly becomes a Decimal."""
    try:
        return json.loads(
            _as_text(value),
            parse_float=_json_number,
            parse_constant=_no_constant,
            object_pairs_hook=_object,
        )
    except RecursionError:
        raise UnfitError("is JSON that is nested too deeply") from None
    except UnfitError:
        raise
    except (ValueError, ArithmeticError) as error:
        raise UnfitError(f"is not JSON: {error}") from None


_NUMBERS: Final = frozenset({Kind.INTEGER, Kind.YEAR, Kind.BIT, Kind.DECIMAL, Kind.FLOAT})
_READABLE: Final = frozenset(COLUMN_KINDS) - {Kind.BINARY, Kind.GEOMETRY}
_NUMERIC: Final = _NUMBERS | {Kind.TEXT}

CONVERSIONS: Final[dict[str, dict[Kind, Callable[[Value], Any]]]] = {
    "text": dict.fromkeys(_READABLE, text),
    "integer": dict.fromkeys(_NUMERIC, integer),
    "decimal": dict.fromkeys(_NUMERIC, decimal),
    "float": dict.fromkeys(_NUMERIC, floating),
    "bytes": dict.fromkeys((Kind.BINARY, Kind.GEOMETRY), binary),
    "date": {Kind.DATE: day},
    "time": {Kind.TIME: time_of_day},
    "duration": {Kind.TIME: duration},
    "datetime": {Kind.DATETIME: moment, Kind.TIMESTAMP: instant},
    "json": dict.fromkeys((Kind.JSON, Kind.TEXT), parsed_json),
}
"""What is asked for → kind of the column → the function; a kind that is not there is refused."""


def _as_text(value: Value) -> str:
    return cast("str", value)


def _decimal_of(written: str) -> Decimal:
    if not _NUMBER.fullmatch(written):
        raise UnfitError("is not a number")
    # Exact: the constructor does not round, only arithmetic does.
    return Decimal(written)


def _nearest(exact: Decimal) -> float | None:
    """The float that stands for a number, None if none does."""
    near = float(exact)
    if isfinite(near) and exact in (Decimal(near), Decimal(repr(near))):
        return near
    return None


def _json_number(written: str) -> float | Decimal:
    exact = Decimal(written)
    near = _nearest(exact)
    return exact if near is None else near


def _no_constant(name: str) -> Any:
    raise UnfitError(f"is not JSON: it holds {name}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        # MariaDB keeps JSON as it was written. Whichever member were taken, another is lost.
        raise UnfitError("is JSON with two members of one name")
    return members


def _no_date(written: str) -> UnfitError:
    if written[:10] == "0000-00-00":
        return ZeroDateError("is MySQL's zero date, which is no date")
    if "00" in (written[5:7], written[8:10]) or written[:4] == "0000":
        return ZeroDateError("has a part that is zero, so it is no date")
    return UnfitError("is no date in the calendar")
