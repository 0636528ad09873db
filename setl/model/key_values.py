"""Values of keys as plain JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from setl.model.change import Row, Value


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
