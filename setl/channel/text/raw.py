"""Parts of a channel file as they are before validation: how rules look at them.

Values may be of any type here: what has the wrong type is reported elsewhere and skipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel

from setl.channel.names.patterns import PatternError, TablePattern, parse_from
from setl.channel.text.references import has_reference

Raw = Mapping[str, Any]
"""A part of a channel file before validation; any value in it may be of any type."""


def part(value: Any) -> Raw:
    """A part of the raw file as a mapping, be it one already or a model made by code."""
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True)
    return cast("Raw", value) if isinstance(value, Mapping) else {}


def items(value: Any) -> Sequence[Any]:
    """The items of a list; none for anything else."""
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else ()


def pattern_of(table: Raw) -> TablePattern | None:
    """The `from` of an entry; None if it cannot be known or is wrong."""
    text = table.get("from", table.get("from_"))
    if not is_known(text):
        return None
    try:
        return parse_from(cast("str", text))
    except PatternError:
        return None


def is_known(text: object) -> bool:
    """Whether it is text that says something now, and not only once a reference is resolved."""
    return isinstance(text, str) and bool(text.strip()) and not has_reference(text)
