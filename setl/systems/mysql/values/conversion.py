"""Finds values that become others in a column of another kind, of which no server says a word.

Expressions and processors give columns that the source does not have, so the kinds at both ends may
differ. A server then converts: 70 becomes the year 1970, the text '10:00:00' the date 2010-00-00,
the number 1 the first label of an ENUM, the text '2' the bits of its letter. It rounds what becomes
a floating-point number, and text that becomes a whole one. What is left to servers is what they
refuse, or tell in a note (`setl.systems.mysql.load.watch`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from setl.model.schema import Capacity, Kind
from setl.systems.mysql.values.row_values import is_longer_than_single

Changes = Callable[[Any], bool]

_NUMBERS: Final = frozenset({Kind.INTEGER, Kind.YEAR, Kind.BIT, Kind.FLOAT})
_WRITTEN: Final = frozenset({Kind.TEXT, Kind.JSON, Kind.ENUM, Kind.SET})
_MOMENTS: Final = frozenset({Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP})
_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_FLOATING: Final = frozenset({"float", "double"})
_DAYS: Final = frozenset({"date", "datetime", "timestamp"})
_CHARACTERS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_BYTES: Final = frozenset({"varbinary", "tinyblob", "blob", "mediumblob", "longblob"})

_YEAR: Final = re.compile(r"\d{4}(\.0*)?", re.ASCII)
# A year of two digits is guessed to be one of four, and a time of day taken for a date.
_DAY: Final = re.compile(r"\s*(\d{4}\D|\d{8}(\D|$)|\d{14}(\D|$))", re.ASCII)
_WHOLE_DAY: Final = re.compile(r"\d{8}(\.0*)?", re.ASCII)
_WHOLE_MOMENT: Final = re.compile(r"(\d{8}|\d{14})(\.0*)?", re.ASCII)
_CLOCK: Final = re.compile(r"\s*-?(\d+\s+)?(\d+:\d+(:\d+(\.\d*)?)?|\d+)\s*", re.ASCII)
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_LEAST_PLAIN, _MOST_PLAIN = 1e-14, 1e15
"""Between these a server may write a floating-point number without an exponent."""


def change_of(kind: Kind, held: Capacity) -> Changes | None:
    """What tells whether a value of a kind becomes another one in a column; None if none does."""
    found: Changes | None = None
    if held.type in _INTEGERS | _FLOATING | {"decimal"}:
        found = _to_number(kind, held)
    elif held.type == "year":
        found = _to_year(kind)
    elif held.type == "bit":
        found = _to_bits(kind)
    elif held.type in _DAYS:
        found = _to_day(kind, held.type)
    elif held.type == "time":
        found = _to_clock(kind, held.scale or 0)
    elif held.type in {"enum", "set"}:
        # A number chooses labels by their places.
        found = _always if kind in _NUMBERS or kind is Kind.BINARY else None
    elif held.type == "binary":
        found = _to_fixed_bytes(kind, held.length)
    elif held.type in _CHARACTERS | _BYTES and kind is Kind.FLOAT:
        found = _longer_than(held.length)
    elif held.type == "json" and kind is Kind.DECIMAL:
        found = _is_not_in_json
    elif held.type == "json" and kind is Kind.TEXT:
        found = _repeats_a_key
    elif held.type == "uuid" and kind in _WRITTEN:
        found = _is_no_uuid
    return found


def _always(_: object) -> bool:
    return True


def _is_no_uuid(text: str) -> bool:
    return _UUID.fullmatch(text) is None


def _to_number(kind: Kind, held: Capacity) -> Changes | None:
    if kind is Kind.BINARY:
        return _always  # to MySQL these are the bytes of a number, to MariaDB its digits
    if held.type in _FLOATING:
        if kind is Kind.BIT:
            return lambda v: not _floats(held.type, Decimal(v))
        if kind in _WRITTEN or kind is Kind.DECIMAL:
            scale = held.scale
            return lambda v: not _is_preserved(v, lambda n: _floats(held.type, n), scale)
    if held.type in _INTEGERS and kind in _WRITTEN:
        return lambda v: not _is_preserved(v, lambda n: n == n.to_integral_value(), None)
    return None


def _is_preserved(text: str, holds: Callable[[Decimal], bool], scale: int | None) -> bool:
    """Whether the number that a text says is kept; what says none is for the server to refuse."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return True
    if not number.is_finite():
        return False
    return holds(number) and (scale is None or round(number, scale) == number)


def _floats(type_: str, number: Decimal) -> bool:
    """Whether a floating-point column shows the same number again."""
    try:
        value = float(number)
    except OverflowError:
        return True  # the server refuses it
    same = Decimal(repr(value)) == number
    return same and not (type_ == "float" and is_longer_than_single(value))


def _to_year(kind: Kind) -> Changes | None:
    if kind in {Kind.INTEGER, Kind.BIT, Kind.FLOAT}:
        return lambda v: v != 0 and not (1901 <= v <= 2155 and v == int(v))
    if kind in _WRITTEN or kind is Kind.DECIMAL:
        return lambda v: _YEAR.fullmatch(v) is None
    return _always if kind is Kind.BINARY else None


def _to_bits(kind: Kind) -> Changes | None:
    if kind is Kind.INTEGER:
        return lambda v: v < 0
    if kind is Kind.FLOAT:
        return lambda v: not (0 <= v < 1 << 63 and v.is_integer())
    # A server takes the bytes of their digits.
    return _always if kind in _WRITTEN or kind is Kind.DECIMAL else None


def _to_day(kind: Kind, type_: str) -> Changes | None:
    if kind in {Kind.INTEGER, Kind.DECIMAL}:
        form = _WHOLE_DAY if type_ == "date" else _WHOLE_MOMENT
        return lambda v: form.fullmatch(str(v)) is None
    if kind in _WRITTEN:
        return lambda v: _DAY.match(v) is None
    return None if kind in _MOMENTS else _always


def _to_clock(kind: Kind, scale: int) -> Changes | None:
    if kind is Kind.DECIMAL:
        return lambda v: round(Decimal(v), scale) != Decimal(v)
    if kind in _WRITTEN:
        return lambda v: _CLOCK.fullmatch(v) is None
    return None if kind in {Kind.TIME, Kind.INTEGER} else _always


def _to_fixed_bytes(kind: Kind, size: int) -> Changes | None:
    if kind is Kind.BINARY:
        return None  # its guard says more
    if kind is Kind.FLOAT:
        return _always
    return lambda v: len(str(v).encode("utf-8", "surrogatepass")) != size


def _longer_than(most: int) -> Changes:
    """For floating-point numbers that a server would round to so many characters."""

    def changes(value: float) -> bool:
        shortest, _, _ = repr(value).partition("e")
        _, _, exponent = f"{value:.16e}".partition("e")
        digits = shortest.replace(".", "").strip("-0")
        size = (value < 0) + len(digits) + (len(digits) > 1) + 1 + len(str(int(exponent)))
        if value == 0 or _LEAST_PLAIN <= abs(value) < _MOST_PLAIN:
            plain = f"{Decimal(repr(value)):f}"
            size = min(size, len(plain.removesuffix(".0")))
        return size > most

    return changes


def _repeats_a_key(text: str) -> bool:
    """Whether MySQL's JSON drops a member, for another one with its key.

    MariaDB's JSON is text, and has them all. What is no JSON is for the server to refuse.
    """

    def members(pairs: list[tuple[str, object]]) -> None:
        if len({key for key, _ in pairs}) < len(pairs):
            repeated.append(True)

    repeated: list[bool] = []
    with suppress(ValueError, RecursionError):
        json.loads(text, object_pairs_hook=members, parse_int=str, parse_float=str)
    return bool(repeated)


def _is_not_in_json(text: str) -> bool:
    """Whether MySQL's JSON, which has whole numbers of 64 bits and DOUBLE, rounds a number."""
    number = Decimal(text)
    if number == number.to_integral_value() and -(1 << 63) <= number < 1 << 64:
        return False
    return not _floats("double", number)
