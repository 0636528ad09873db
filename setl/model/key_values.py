"""Values of keys as plain JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, cast

from setl.errors import DataError
from setl.model.change import Row, Value
from setl.model.logged_bytes import logged_value
from setl.model.schema import Column, Kind

_NUMBERS = frozenset({Kind.INTEGER, Kind.YEAR, Kind.BIT})
_BYTES = frozenset({Kind.BINARY, Kind.GEOMETRY})


def key_to_json(key: Row) -> list[Any]:
    """The values of a key as JSON; `key_from_json` is its inverse. Raises TypeError."""
    return [_value_to_json(value) for value in key]


def key_from_json(values: Sequence[Any]) -> Row:
    """Inverse of `key_to_json`; raises TypeError, ValueError or KeyError for anything else."""
    return tuple(_value_from_json(value) for value in values)


def _value_to_json(value: Value) -> Any:
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if value is None or isinstance(value, int | float | str):
        return value
    raise TypeError(f"no value of a key: {value!r}")


def _value_from_json(value: Any) -> Value:
    if isinstance(value, dict):
        return bytes.fromhex(str(cast("dict[str, Any]", value)["hex"]))
    if value is None or isinstance(value, int | float | str):
        return value
    raise TypeError(f"no value of a key: {value!r}")


def normal_key(columns: Sequence[Column], values: Row) -> Row:
    """A key whose values may be text, as people give them, in its normal form.

    A value that has another spelling as its column's server writes it stays as it is.

    Raises:
        DataError: a value is none of its column, or their number is another one.
    """
    if len(columns) != len(values):
        raise DataError(f"a key has {len(columns)} columns, and {len(values)} values are given")
    return tuple(
        _normal(column, value) if isinstance(value, str) else value
        for column, value in zip(columns, values, strict=True)
    )


def _normal(column: Column, text: str) -> Value:
    try:
        if column.kind in _NUMBERS:
            return int(text)
        if column.kind is Kind.DECIMAL:
            return f"{Decimal(text):.{column.scale}f}"
        if column.kind in _BYTES and text[:2].lower() == "0x":
            return bytes.fromhex(text[2:])
        logged = logged_value(column, text) if column.kind is Kind.BINARY else None
        if logged is not None:
            return logged
    except (ValueError, ArithmeticError) as error:
        raise DataError(f"{text!r} is no value of the column {column.name}") from error
    return text.encode() if column.kind in _BYTES else text
