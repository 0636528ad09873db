"""Writes JSON as an expression that gives MySQL the same document.

A JSON column keeps numbers as integers, doubles or decimals, but what it reads from text becomes a
double wherever it is no 64-bit integer: ``1.10`` becomes 1.1, and digits beyond the 17th are lost.
Some servers make the nearest double of a text. Others do so for 15 digits and an exponent up to 22
only, and may be off in the last bit beyond (rapidjson's default). A server is asked which it is
(`PARSES_EXACTLY`). Numbers that its parser would change are put into the document by JSON_REPLACE,
as the SQL numbers that they are:
https://dev.mysql.com/doc/refman/8.4/en/json-modification-functions.html#function_json-replace
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from math import isinf
from typing import Final

from setl.codec.binlog.values.mysql_json import double_text
from setl.model.json_text import ServerJson

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[\[\]{}:,]', re.DOTALL)
_CARE: Final = re.compile(r"\d[eE]|[\d.]{16}|\.\d*0(?!\d)")
_NUMBER: Final = re.compile(r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?")
_MOST_DIGITS: Final = 65  # of a DECIMAL
_MOST_SCALE: Final = 30
_SAFE_DIGITS: Final = 18  # of whole numbers of 64 bits


# Each of these rapidjson's default gets wrong, by multiplying or dividing by a power of ten.
_HARD: Final = (
    "1.9020826279792914e-128",
    "9.580423833198135e+182",
    "5.662417458702245e-150",
    "-116916.63774434407",
    "-968981.8531083489",
    "9.626815114556153e-129",
    "-1.2097755949418623",
    "946130.2180823463",
    "6.56932046509572e+102",
    "6.658990625336714e-150",
    "6.075545477978021e+96",
    "3.542147152798648e+81",
    "-90335.17256500595",
    "1.408745258811661e-227",
    "3.4573953255779386e+106",
    "7.219356511992093e+167",
    "8.557834626410012e-73",
    "0.9357801760935881",
    "1.405001988303809e-175",
    "9.547845709715825e+194",
    "255767.99825591198",
    "1.0695291773614775",
    "6.346615832906545e-76",
    "1.8917269636331018",
)
_AS_SQL: Final = ",".join(number if "e" in number else f"{number}e0" for number in _HARD)
PARSES_EXACTLY: Final = f"SELECT CAST('[{','.join(_HARD)}]' AS JSON) = JSON_ARRAY({_AS_SQL})"
"""Asks a MySQL whether its parser makes the nearest double of each number."""


def json_literal(text: str, *, exact: bool = False) -> str:
    """A JSON text as an SQL expression, for a session without NO_BACKSLASH_ESCAPES.

    Args:
        text: the document.
        exact: whether the server makes the nearest double of each number, see `PARSES_EXACTLY`.

    Raises:
        ValueError: it holds a number that no SQL number is.
    """
    plain = _quoted(text)
    # Most documents have no such number; what looks like one may still be part of a string.
    if (exact and isinstance(text, ServerJson)) or not _CARE.search(text):
        return plain
    if exact and _has_doubles_alone(text):
        return plain
    special = [
        (path, number) for path, token in _numbers(text) if (number := _number(token, exact=exact))
    ]
    if not special:
        return plain
    parts = "".join(f",{_quoted(path)},{number}" for path, number in special)
    return f"JSON_REPLACE({plain}{parts})"


def _has_doubles_alone(text: str) -> bool:
    """Whether each number with a fraction or an exponent has the fewest digits of its double.

    Far quicker than to go through the text. False as well for what is for others to refuse.
    """
    written: list[str] = []
    others: list[str] = []
    try:
        json.loads(text, parse_float=written.append, parse_int=others.append)
        shortest = map(float.__repr__, map(float, written))
        return max(map(len, others), default=0) <= _SAFE_DIGITS and all(
            one == other or (_is_double(one) if "e" in one.lower() else _shortest(one))
            for one, other in zip(written, shortest, strict=True)
        )
    except (ValueError, RecursionError):
        return False


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


def _number(token: str, *, exact: bool) -> str:
    """The SQL number that keeps what is written; "" if the server makes it of the text itself."""
    found = _NUMBER.fullmatch(token)
    if found is None:
        raise ValueError(f"{token[:80]} is no number of JSON")
    _, whole, fraction, exponent = found.groups()
    if fraction is None and exponent is None:
        if -(1 << 63) <= int(token) < 1 << 64:
            return ""
    elif exponent is not None and not _is_double(token):
        return _decimal(token, *_digits(Decimal(token)))
    elif exact and (exponent is not None or _shortest(token)):
        return ""
    elif exponent is not None or _shortest(token):
        digits = len((whole + (fraction or "")).strip("0"))
        power = int(exponent or 0) - len(fraction or "")
        return "" if digits <= 15 and abs(power) <= 22 else _double(token)
    return _decimal(token, len(whole.lstrip("0")), len(fraction or ""))


def _decimal(token: str, whole: int, scale: int) -> str:
    """A number as one of SQL, with so many digits in front of and behind its point."""
    if whole + scale > _MOST_DIGITS or scale > _MOST_SCALE:
        raise ValueError(f"{token[:80]} has more digits than a number of MySQL")
    return f"CAST('{token}' AS DECIMAL({max(1, whole + scale)},{scale}))"


def _digits(number: Decimal) -> tuple[int, int]:
    _, digits, exponent = number.as_tuple()
    power = int(exponent)
    return max(0, len(digits) + power), max(0, -power)


def _is_double(token: str) -> bool:
    """Whether some double has the value that is written, or a server has written it for one."""
    nearest = float(token)
    if isinf(nearest):
        return True  # which the server refuses
    try:
        return Decimal(token) in (Decimal(repr(nearest)), Decimal(nearest))
    except ArithmeticError:
        raise ValueError(f"{token[:80]} is too near to 0 for a number of MySQL") from None


def _shortest(token: str) -> bool:
    """Whether a number is written as the server writes a double, and so may be one."""
    return double_text(float(token)) == token


def _double(token: str) -> str:
    return token if "e" in token.lower() else f"{token}e0"
