"""The forms in which rows are compared: normalised values, row digests, and keys as text.

A source's and a target's column may have different types, so values are compared in the form
that the target's column has: 1.5 in DECIMAL(9,1) is 1.50 in DECIMAL(9,2), but not 1.501.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from hashlib import blake2b
from typing import Any, cast

from setl.bulk.exact_json import exact_text
from setl.codec.charset import in_characters
from setl.model.change import ABSENT, Row, Value
from setl.model.schema import Column, Kind
from setl.printable import BYTES_OF_TEXT, bytes_of_text, text_of_bytes

DIGEST_BYTES = 16
"""Enough that among 10**9 rows two different ones with one digest are not to be expected."""

Form = Callable[[Any], Value]

_SURROGATE = re.compile("[\ud800-\udfff]")

_NUMBERS = frozenset({Kind.INTEGER, Kind.YEAR, Kind.BIT, Kind.DECIMAL})
_MOMENTS = frozenset({Kind.DATETIME, Kind.TIMESTAMP})
_BYTES = frozenset({Kind.BINARY, Kind.GEOMETRY})


def forms(columns: Sequence[Column]) -> tuple[Form, ...]:
    """For each target column, what brings a value of either side into the form compared."""
    return tuple(
        _text_in(column.capacity.charset)
        if column.kind is Kind.TEXT and column.capacity is not None
        else _form(column.kind)
        for column in columns
    )


def digest(compared: Sequence[Value]) -> bytes:
    """A digest of values in the form compared: equal for equal values, else different."""
    # repr tells None from text, text from numbers, and where one value ends.
    return blake2b(repr(compared).encode(), digest_size=DIGEST_BYTES).digest()


def key_text(values: Row) -> str:
    """A key as text for people that is also exact: text in quotes, several values in brackets.

    Bytes are ``{"hex": "00ff"}``. Text that its server cannot say in UTF-8 is
    ``{"text": "A15A", "charset": "big5"}``, its bytes in its own character set.

    Equal keys have equal text, and all text has a form in UTF-8. `key_values` is its inverse.
    """
    shown: list[Any] = [_key_part(value) for value in values]
    one = shown[0] if len(shown) == 1 else shown
    text = json.dumps(one, ensure_ascii=False)
    return text if text.isprintable() or not _SURROGATE.search(text) else json.dumps(one)


def key_values(text: str) -> Row:
    """The values of a key that `key_text` wrote."""
    shown: Any = json.loads(text)
    return tuple(map(_key_value, cast("list[Any]", shown) if isinstance(shown, list) else [shown]))


def _key_part(value: Value) -> Any:
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, str) and value.startswith(BYTES_OF_TEXT):
        charset, digits = bytes_of_text(value)
        return {"text": digits, "charset": charset}
    return value


def _key_value(shown: Any) -> Value:
    if not isinstance(shown, dict):
        return shown
    said = cast("dict[str, str]", shown)
    if "hex" in said:
        return bytes.fromhex(said["hex"])
    return text_of_bytes(said.get("charset", ""), said["text"])


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
    """JSON in the form of `exact_json`, since servers print it differently."""
    if not isinstance(value, (str, bytes)):
        return text(value)
    try:
        return exact_text(value)
    except (ValueError, RecursionError):
        return text(value)


def _text_in(charset: str) -> Form:
    """Text that is carried as its bytes is what a column of this character set has of it."""
    return lambda value: in_characters(text(value), unless=charset)


def text(value: Value) -> Value:
    """Text as it is, everything else as it is written."""
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    return value if isinstance(value, str) or value is ABSENT else str(value)
