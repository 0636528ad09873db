"""The forms in which rows are compared: normalised values, row digests, and keys as text.

A source's and a target's column may have different types, so values are compared in the form
that the target's column has: 1.5 in DECIMAL(9,1) is 1.50 in DECIMAL(9,2), but not 1.501.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from hashlib import blake2b
from typing import Any, cast

from setl.model.change import ABSENT, Row, Value
from setl.model.schema import Column, Kind

DIGEST_BYTES = 16
"""Enough that among 10**9 rows two different ones with one digest are not to be expected."""

Form = Callable[[Any], Value]

_NUMBERS = frozenset({Kind.INTEGER, Kind.YEAR, Kind.BIT, Kind.DECIMAL})
_MOMENTS = frozenset({Kind.DATETIME, Kind.TIMESTAMP})
_BYTES = frozenset({Kind.BINARY, Kind.GEOMETRY})


def forms(columns: Sequence[Column]) -> tuple[Form, ...]:
    """For each target column, what brings a value of either side into the form compared."""
    return tuple(_form(column.kind) for column in columns)


def digest(compared: Sequence[Value]) -> bytes:
    """A digest of values in the form compared: equal for equal values, else different."""
    # repr tells None from text, text from numbers, and where one value ends.
    return blake2b(repr(compared).encode(), digest_size=DIGEST_BYTES).digest()


def key_text(values: Row) -> str:
    """A key as text for people that is also exact: text in quotes, several values in brackets.

    Equal keys have equal text. `key_values` is its inverse.
    """
    shown: list[Any] = [{"hex": v.hex()} if isinstance(v, bytes) else v for v in values]
    return json.dumps(shown[0] if len(shown) == 1 else shown, ensure_ascii=False)


def key_values(text: str) -> Row:
    """The values of a key that `key_text` wrote."""
    shown: Any = json.loads(text)
    return tuple(map(_key_value, cast("list[Any]", shown) if isinstance(shown, list) else [shown]))


def _key_value(shown: Any) -> Value:
    if isinstance(shown, dict):
        return bytes.fromhex(cast("dict[str, str]", shown)["hex"])
    return shown


def _form(kind: Kind) -> Form:
    if kind in _NUMBERS:
        return number
    if kind is Kind.FLOAT:
        return floating
    if kind in _MOMENTS:
        return moment
    if kind in _BYTES:
        return raw
    return parsed_json if kind is Kind.JSON else text


def number(value: Value) -> Value:
    """An exact number as an integer, or as text without zeros at the end; other text stays."""
    if isinstance(value, int):
        return value
    shown = repr(value) if isinstance(value, float) else str(value)
    try:
        exact = Decimal(shown)
    except InvalidOperation:
        return shown
    if not exact.is_finite():
        return shown
    if exact == exact.to_integral_value():
        return int(exact)
    return format(exact, "f").rstrip("0")


def floating(value: Value) -> Value:
    """A floating-point number; text that is none stays."""
    try:
        return float(value)  # pyright: ignore[reportArgumentType] - what float refuses is caught
    except (TypeError, ValueError):
        return text(value)


def moment(value: Value) -> Value:
    """A date with time; a day alone is its midnight."""
    shown = str(value)
    return f"{shown} 00:00:00.000000" if len(shown) == 10 else shown


def raw(value: Value) -> Value:
    """Bytes; text as UTF-8."""
    return value.encode() if isinstance(value, str) else value


def parsed_json(value: Value) -> Value:
    """JSON with its keys sorted and without white space, since servers print it differently."""
    if not isinstance(value, (str, bytes)):
        return text(value)
    try:
        return json.dumps(json.loads(value), sort_keys=True, ensure_ascii=False)
    except ValueError:
        return text(value)


def text(value: Value) -> Value:
    """Text as it is, everything else as it is written."""
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    return value if isinstance(value, str) or value is ABSENT else str(value)
