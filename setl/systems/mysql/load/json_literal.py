"""Writes JSON as an expression that gives MySQL the same document.

A JSON column keeps numbers as integers, doubles or decimals, but what it reads from text becomes a
double wherever it is no 64-bit integer: ``1.10`` becomes 1.1, and digits beyond the 17th are lost.
Moreover the server's parser makes the nearest double of 15 digits and an exponent up to 22, but
may be off in the last bit beyond (rapidjson's default). Such numbers are therefore put into the
document by JSON_REPLACE, as the SQL numbers that they are:
https://dev.mysql.com/doc/refman/8.4/en/json-modification-functions.html#function_json-replace
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[\[\]{}:,]', re.DOTALL)
_CARE: Final = re.compile(r"\d[eE]|[\d.]{16}|\.\d*0(?!\d)")
_NUMBER: Final = re.compile(r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?")
_MOST_DIGITS: Final = 65  # of a DECIMAL
_MOST_SCALE: Final = 30


def json_literal(text: str) -> str:
    """A JSON text as an SQL expression, for a session without NO_BACKSLASH_ESCAPES.

    Raises:
        ValueError: it holds a number that no SQL number is.
    """
    plain = _quoted(text)
    # Most documents have no such number; what looks like one may still be part of a string.
    if not _CARE.search(text):
        return plain
    special = [(path, number) for path, token in _numbers(text) if (number := _number(token))]
    if not special:
        return plain
    parts = "".join(f",{_quoted(path)},{number}" for path, number in special)
    return f"JSON_REPLACE({plain}{parts})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _numbers(text: str) -> Iterator[tuple[str, str]]:
    """The numbers of a document with their paths."""
    # The path leg of each open container's member: a number of an element, or a quoted key.
    legs: list[int | str] = []
    at_key = False
    for found in _TOKEN.finditer(text):
        token = found.group()
        first = token[0]
        if first in "[{":
            legs.append(0 if first == "[" else "")
            at_key = first == "{"
        elif first in "]}":
            legs.pop()
        elif first == ",":
            last = legs[-1]
            at_key = isinstance(last, str)
            legs[-1] = "" if isinstance(last, str) else last + 1
        elif first == ":":
            at_key = False
        elif first == '"':
            if at_key:
                legs[-1] = token
        else:
            yield "$" + "".join(f".{x}" if isinstance(x, str) else f"[{x}]" for x in legs), token


def _number(token: str) -> str:
    """The SQL number that keeps what is written; "" if the server makes it of the text itself."""
    found = _NUMBER.fullmatch(token)
    if found is None:
        raise ValueError(f"{token[:80]} is no number of JSON")
    _, whole, fraction, exponent = found.groups()
    if fraction is None and exponent is None:
        if -(1 << 63) <= int(token) < 1 << 64:
            return ""
    elif exponent is not None or _shortest(token):
        digits = len((whole + (fraction or "")).strip("0"))
        power = int(exponent or 0) - len(fraction or "")
        return "" if digits <= 15 and abs(power) <= 22 else _double(token)
    scale = len(fraction or "")
    if len(whole) + scale > _MOST_DIGITS or scale > _MOST_SCALE:
        raise ValueError(f"{token[:80]} has more digits than a number of MySQL")
    return f"CAST('{token}' AS DECIMAL({max(1, len(whole.lstrip('0')) + scale)},{scale}))"


def _shortest(token: str) -> bool:
    """Whether a number is written as a double is, and so may be one."""
    text = repr(float(token))
    return "e" not in text and text == token


def _double(token: str) -> str:
    return token if "e" in token.lower() else f"{token}e0"
