"""Checks of single values in channel files, as types for the models.

A value that still has a reference in it is let through: its text is not known yet. Messages
are the end of a sentence that begins with the value's path.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from setl.channel.text.references import has_reference
from setl.channel.text.strict_model import problem

NAME_PATTERN = r"[A-Za-z0-9_.-]{1,64}"


def _unless_reference(check: Callable[[str], str]) -> AfterValidator:
    """A validator out of a function that returns what is wrong with a text, or ""."""

    def validate(value: str) -> str:
        reason = "" if has_reference(value) else check(value)
        if reason:
            raise problem(reason)
        return value

    return AfterValidator(validate)


def _name(value: str) -> str:
    # "." and ".." are no names for ZooKeeper, in whose paths these names stand.
    if value in {".", ".."} or not re.fullmatch(NAME_PATTERN, value):
        return "must be 1 to 64 letters, digits, dots, dashes or underscores"
    return ""


def _host(value: str) -> str:
    if "://" in value or not re.fullmatch(r"[^\s/@]+", value):
        return "must be a host name or an address, without a scheme, user or path"
    bare = value.strip("[]")
    if value.count(":") == 1:
        return "must not have a port in it; write `port:` for that"
    return "" if bare else "must be a host name or an address"


def _broker(value: str) -> str:
    found = re.fullmatch(r"[^\s/@]+:(\d{1,5})", value)
    if found is None or not 1 <= int(found.group(1)) <= 65535:
        return "must be host:port"
    return ""


def _url(value: str) -> str:
    try:
        parts = urlsplit(value)
        right = parts.scheme in {"http", "https"} and bool(parts.hostname)
        right = right and parts.port != 0 and not re.search(r"\s", value)
    except ValueError:
        right = False
        parts = urlsplit("")
    if not right:
        return "must be a URL such as https://es1:9200"
    if parts.username or parts.password:
        return "must not have an account in it; write `user:` and `password:` for that"
    return ""


def _not_blank(value: str) -> str:
    return "" if value.strip() else "must not be empty"


def _python_function(value: str) -> str:
    module, colon, function = value.partition(":")
    names = (*module.split("."), *function.split("."))
    if names[0] in sys.stdlib_module_names:
        return f"must be a function for rows, and {names[0]} is a module of Python's own"
    if colon and all(name.isidentifier() for name in names):
        return ""
    return "must be a Python function as module:function"


def _binlog_file(value: str) -> str:
    if re.search(r"[^/]\.\d+$", value) and "/" not in value:
        return ""
    return "must be the name of a binlog file, such as mysql-bin.000003"


def _time_zone(value: str) -> str:
    found = re.fullmatch(r"[+-](\d\d):(\d\d)", value)
    if found is not None:
        return "" if int(found[1]) < 15 and int(found[2]) < 60 else "must be within 15 hours of UTC"
    if re.fullmatch(r"[A-Za-z]+([/_+-][A-Za-z0-9]+)*", value):
        return ""
    return "must be a time zone, such as +08:00 or Asia/Shanghai"


def _seconds_since_1970(value: int) -> int:
    if value > 100_000_000_000:
        raise problem("must be in seconds since 1970, not in milliseconds")
    return value


_DURATION = re.compile(
    r"(?:(?P<d>\d+(?:\.\d+)?)d)?(?:(?P<h>\d+(?:\.\d+)?)h)?"
    r"(?:(?P<m>\d+(?:\.\d+)?)m)?(?:(?P<s>\d+(?:\.\d+)?)s)?"
)
_SECONDS_OF_UNIT = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def _seconds_of(value: Any) -> Any:
    """Text such as ``1d 12h`` as seconds; all else as it is."""
    if not isinstance(value, str) or has_reference(value):
        return value
    found = _DURATION.fullmatch("".join(value.lower().split()))
    given = {unit: number for unit, number in found.groupdict().items() if number} if found else {}
    if given:
        return sum(float(number) * _SECONDS_OF_UNIT[unit] for unit, number in given.items())
    try:
        return float(value)
    except ValueError:
        raise problem("must be a time such as 6h, 90m or 1d 12h, or a number of seconds") from None


def _scalar(value: Any) -> Any:
    if not isinstance(value, str | int | float | bool):
        raise problem("must be text, a number, true or false")
    return value


Name = Annotated[
    str, _unless_reference(_name), Field(json_schema_extra={"pattern": f"^{NAME_PATTERN}$"})
]
Host = Annotated[str, _unless_reference(_host)]
Port = Annotated[int, Field(ge=1, le=65535)]
Broker = Annotated[str, _unless_reference(_broker)]
Url = Annotated[
    str, _unless_reference(_url), Field(json_schema_extra={"pattern": "^https?://[^/]"})
]
Text = Annotated[str, _unless_reference(_not_blank), Field(min_length=1)]
PythonFunction = Annotated[str, _unless_reference(_python_function)]
BinlogFile = Annotated[str, _unless_reference(_binlog_file)]
TimeZone = Annotated[str, _unless_reference(_time_zone)]
UnixTime = Annotated[int, Field(ge=0), AfterValidator(_seconds_since_1970)]
Seconds = Annotated[float, Field(gt=0, le=3600)]
_Long = Annotated[float, Field(ge=1, le=366 * 86_400)]
Duration = Annotated[
    _Long,
    BeforeValidator(
        _seconds_of,
        json_schema_input_type=_Long
        | Annotated[str, Field(pattern=r"^\s*(?:\d+(?:\.\d+)?\s*[dhmsDHMS]\s*)+$")],
    ),
]
Patience = Annotated[
    Annotated[float, Field(ge=0, le=366 * 86_400)],
    BeforeValidator(
        _seconds_of,
        json_schema_input_type=Annotated[float, Field(ge=0, le=366 * 86_400)]
        | Annotated[str, Field(pattern=r"^\s*(?:\d+(?:\.\d+)?\s*[dhmsDHMS]\s*)+$")],
    ),
]
"""As `Duration`, and 0 for at once."""
KafkaSetting = Annotated[str | int | float | bool, BeforeValidator(_scalar)]
