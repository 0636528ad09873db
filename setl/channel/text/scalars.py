"""The values of YAML's scalars: those that JSON has, as which channel files are stored.

YAML 1.1 knows more: ``1:30`` is 90 to it, ``010`` is 8, ``0b11`` is 3, and 2026-02-01 is a date.
Few who write such a thing mean that. Numbers in these forms are refused, dates are text.
"""

from __future__ import annotations

import math
import re
from typing import Final

import yaml

MOST_DIGITS: Final = 40
"""Of a number. No setting is that large, and long numbers take the square of their length."""

_TAG: Final = "tag:yaml.org,2002:"
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_TEXT: Final = frozenset({"str", "timestamp", "value", "merge"})  # = and << are the last two
_TRUTHS: Final = {
    **dict.fromkeys(("yes", "true", "on"), True),
    **dict.fromkeys(("no", "false", "off"), False),
}


def scalar_value(node: yaml.ScalarNode) -> str | bool | float | None:
    """The value of a scalar.

    Raises:
        ValueError: it has none. Its text goes on after the position, and does not repeat what is
            written there, which may be a secret.
    """
    text, kind = str(node.value), node.tag.removeprefix(_TAG)
    if kind in _TEXT:
        return text
    if kind == "null":
        return None
    if kind == "bool" and text.lower() in _TRUTHS:
        return _TRUTHS[text.lower()]
    if kind in {"int", "float"}:
        return _number(text)
    raise ValueError("is neither text nor a number, nor yes or no; if it is text, put it in quotes")


def _number(text: str) -> float:
    if sum(map(str.isdigit, text)) > MOST_DIGITS:
        raise ValueError(f"is a number of more than {MOST_DIGITS} digits")
    if _INTEGER.fullmatch(text):
        return int(text)
    value = float(text) if _FLOAT.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise ValueError(
            "must be a decimal number such as 90 or 0.5; if it is text, put it in quotes"
        )
    return value
