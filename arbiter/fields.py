"""Reads the fields of an untrusted payload, and notes what is wrong with them.

Whoever may write to ZooKeeper may leave anything there: no JSON, numbers that no machine word
holds, text that cannot be encoded. What comes out of here is always of the kind that was asked
for and within bounds, so that nothing further on has to expect rubbish.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, NoReturn, TypeVar, cast

_E = TypeVar("_E", bound=Enum)

MAX_WHOLE = (1 << 63) - 1
"""Highest whole number that is read: what a target keeps in 64 bits."""

MAX_TIME = 2**37
"""Latest time that is read, in the year 6325: Python's calendar ends with the year 9999."""

_MAX_TEXT = 10_000
_MAX_NAME = 128  # as `arbiter.paths` allows
_MAX_DEPTH = 100
_TOO_DEEP = f"is nested deeper than {_MAX_DEPTH} levels"


def decode(data: bytes) -> dict[str, Any] | None:
    """The JSON object that bytes hold; None if they hold none, or one that cannot be handled.

    Not handled are numbers that are no numbers (NaN, Infinity, 1e999), text that cannot be
    encoded (half a surrogate pair) and more than 100 levels: writing such a value again would
    fail, or comparing it.
    """
    return _decoded(data)[0]


def _decoded(data: bytes) -> tuple[dict[str, Any] | None, str]:
    """The object, and what is wrong with the bytes."""
    try:
        return _parsed(data), ""
    except UnicodeError:
        return None, "is not UTF-8 text"
    except RecursionError:
        return None, _TOO_DEEP
    except ValueError as error:
        return None, str(error)


def _parsed(data: bytes) -> dict[str, Any]:
    if not data:
        raise ValueError("is empty")
    text = data.decode()
    try:
        value: object = json.loads(text, parse_constant=_no_number, parse_float=_finite_number)
    except ValueError as error:
        raise ValueError(f"is not JSON: {str(error)[:200]}") from error
    if not isinstance(value, dict):
        raise ValueError("is not a JSON object")  # noqa: TRY004 - nobody passed it as an argument
    payload = cast("dict[str, Any]", value)
    # Brackets in texts count too, so this only says where it is worth a look.
    if data.count(b"[") + data.count(b"{") > _MAX_DEPTH and _depth_of(payload) > _MAX_DEPTH:
        raise ValueError(_TOO_DEEP)
    if b"\\u" in data:
        json.dumps(value, ensure_ascii=False).encode()
    return payload


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _finite_number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large a number")
    return value


def _depth_of(value: object) -> int:
    """How many objects and arrays lie in each other; counts no further than needed."""
    level, depth = [value], 0
    while level and depth <= _MAX_DEPTH:
        inner: list[object] = []
        for item in level:
            if isinstance(item, dict):
                inner += cast("dict[str, object]", item).values()
            elif isinstance(item, list):
                inner += cast("list[object]", item)
        depth += any(isinstance(item, dict | list) for item in level)
        level = inner
    return depth


class Fields:
    """The fields of one payload.

    Attributes:
        wrong: what is wrong with it, each the end of a sentence about the payload.
    """

    def __init__(self, data: bytes) -> None:
        payload, wrong = _decoded(data)
        self._payload: Mapping[str, Any] = payload or {}
        self.wrong = [wrong] if wrong else []

    def text(self, name: str) -> str:
        """A text, "" if there is none."""
        return self._text(name, _MAX_TEXT)

    def name(self, name: str) -> str:
        """The name of a node, "" if there is none."""
        return self._text(name, _MAX_NAME)

    def _text(self, name: str, limit: int) -> str:
        value = self._payload.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            return self._refuse(name, "text", value) or ""
        if len(value) > limit:
            self.wrong.append(f"has a {name} of {len(value):,} characters")
        return value[:limit]

    def flag(self, name: str) -> bool:
        """A yes or no; no if there is none."""
        value = self._payload.get(name)
        if value is not None and not isinstance(value, bool):
            self._refuse(name, "true or false", value)
        return value is True

    def whole(self, name: str, highest: int = MAX_WHOLE) -> int | None:
        """A whole number from 0 to `highest`, None if there is none."""
        value = self._payload.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= highest:
            return self._refuse(name, f"a whole number from 0 to {highest}", value)
        return value

    def seconds(self, name: str) -> float | None:
        """A time, seconds since 1970 UTC, or so many seconds; None if there are none."""
        value = self._payload.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self._refuse(name, "a number of seconds", value)
        if not 0 <= value <= MAX_TIME:
            return self._refuse(name, f"from 0 to {MAX_TIME} seconds", value)
        return value

    def names(self, name: str, otherwise: tuple[str, ...]) -> tuple[str, ...]:
        """A list of names, `otherwise` if there is none; what is no name in it is left out."""
        value = self._payload.get(name)
        if value is None:
            return otherwise
        if not isinstance(value, list):
            self._refuse(name, "a list of names", value)
            return otherwise
        items = cast("list[Any]", value)
        found = tuple(i for i in items if isinstance(i, str) and len(i) <= _MAX_NAME)
        if len(found) < len(items):
            self._refuse(name, "a list of names", items)
        return found

    def member(self, name: str, kind: type[_E]) -> _E | None:
        """One of a few words, None if it is none of them."""
        value = self._payload.get(name)
        try:
            return kind(value)
        except ValueError:
            self._refuse(name, "one of " + ", ".join(str(m.value) for m in kind), value)
            return None

    def texts(self, name: str) -> dict[str, str]:
        """An object of texts, {} if there is none; what is no text in it is left out."""
        value = self._payload.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._refuse(name, "an object of texts", value)
            return {}
        items = cast("dict[str, Any]", value)
        found = {key: item[:_MAX_TEXT] for key, item in items.items() if isinstance(item, str)}
        if len(found) < len(items):
            self._refuse(name, "an object of texts", items)
        return found

    def mapping(self, name: str) -> dict[str, Any] | None:
        """An object, None if it is none."""
        value = self._payload.get(name)
        if not isinstance(value, dict):
            self._refuse(name, "an object", value)
            return None
        return cast("dict[str, Any]", value)

    def _refuse(self, name: str, wanted: str, value: object) -> None:
        # Not the value itself: nobody knows what was pasted there.
        if not self.wrong:
            found = "missing" if value is None else _kind_of(value)
            self.wrong.append(f"has no {name} that can be read: it is to be {wanted}, not {found}")


def _kind_of(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int):
        return f"a number of {value.bit_length()} bits" if value > MAX_WHOLE else str(value)[:40]
    for kind, words in _KINDS:
        if isinstance(value, kind):
            return words
    return "something else"


_KINDS: tuple[tuple[type, str], ...] = (
    (float, "such a number"),
    (str, "such a text"),
    (list, "a list"),
    (dict, "an object"),
)
