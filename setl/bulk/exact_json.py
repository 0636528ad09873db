"""JSON in a form in which two documents are the same text if they say the same.

Members have no order, and numbers count by their value, with all their digits: a parser that makes
doubles of them takes many for one. A whole number is another one than the same with a fraction of
zero, as servers keep these apart. Members of one name all count, since MariaDB keeps them.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, cast

_NUMBER: Final = re.compile(r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?")


class ExactFloat(float):
    """A number that no double is; as a float, it is the nearest one.

    Attributes:
        written: the number, alike for all that are written for it.
    """

    written: str


class _Repeated(list[Any]):
    """The members of an object in which names are repeated, each with its name."""


def parsed(text: str | bytes) -> Any:
    """A document as `json` reads it, with `ExactFloat` where that would lose digits.

    Raises:
        ValueError: it is no JSON.
        RecursionError: it is nested too deeply.
    """
    return json.loads(text, parse_float=exact_float)


def exact_text(text: str | bytes) -> str:
    """A document in the form that is compared; raises as `parsed` does."""
    return shown(json.loads(text, parse_float=exact_float, object_pairs_hook=_members))


def exact_float(written: str) -> float:
    """A float, or an `ExactFloat` if another number is written."""
    nearest = float(written)
    shortest = repr(nearest)
    if shortest == written:
        return nearest
    canonical = _canonical(written)
    if canonical == _canonical(shortest):
        return nearest
    exact = ExactFloat(nearest)
    exact.written = canonical
    return exact


def shown(value: Any) -> str:
    """What `parsed` has read, as text."""
    if _is_plain(value):
        return json.dumps(value, sort_keys=True, ensure_ascii=False)
    if isinstance(value, ExactFloat):
        return value.written
    if isinstance(value, _Repeated):
        members = [f"{_text(name)}: {shown(item)}" for name, item in value]
        return f"{{{', '.join(members)}}}"
    if isinstance(value, dict):
        named = sorted(cast("dict[str, Any]", value).items())
        return f"{{{', '.join(f'{_text(name)}: {shown(item)}' for name, item in named)}}}"
    return f"[{', '.join(map(shown, value))}]"


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, cast("dict[str, Any]", value).values()))
    if isinstance(value, list):
        return not isinstance(value, _Repeated) and all(map(_is_plain, cast("list[Any]", value)))
    return not isinstance(value, ExactFloat)


def _members(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _Repeated(sorted(pairs, key=lambda p: p[0]))


def _text(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _canonical(written: str) -> str:
    """One text for each number; others, such as inf, stay as they are."""
    found = _NUMBER.fullmatch(written)
    if found is None:
        return written
    sign, whole, fraction, exponent = found.groups()
    digits = (whole + (fraction or "")).lstrip("0")
    power = int(exponent or 0) - len(fraction or "") + len(digits)
    digits = digits.rstrip("0")
    return f"{sign}0.{digits}e{power}" if digits else f"{sign}0.0"
