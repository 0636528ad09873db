"""Values of Debezium's records in their normal form (see `setl.model.schema.Kind`).

Names of types: https://debezium.io/documentation/reference/stable/connectors/mysql.html and
Kafka Connect's `org.apache.kafka.connect.data`. Each function takes a value that is not null and
raises ValueError for one that its type does not have.
"""

from __future__ import annotations

import re
import struct
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from math import isfinite
from typing import Final, cast

from setl.codec.temporal import ZERO_DATETIME, clock_text, date_text, day_text, timestamp_text
from setl.model.change import Value
from setl.model.labels import begins_with_half
from setl.model.schema import Kind

Read = Callable[[object], Value]

_DAY: Final = 86_400
_EXACT: Final = 15  # digits that a number of eight bytes holds, whatever they are
_YEAR_OF_NONE: Final = 1900  # which no YEAR holds
_FIRST_DAY, _LAST_DAY = -719_528, 2_932_896  # 0000-01-01 and 9999-12-31
_LONGEST_TIME: Final = 838 * 3600 + 59 * 60 + 59  # seconds
_ISO_DATE: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:Z|[+-]00:00)?", re.ASCII)
_ISO_MOMENT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:\d\d)?", re.ASCII
)
_ISO_TIME: Final = re.compile(
    r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(?:Z|[+-]00:00)?", re.ASCII
)


def whole(value: object) -> int:
    """A whole number."""
    if type(value) is not int:
        raise _misfit(value)
    return value


def unsigned_64(value: object) -> int:
    """A BIGINT UNSIGNED that is written as a signed number."""
    number = whole(value)
    return number + (1 << 64) if number < 0 else number


def truth(value: object) -> int:
    """A bit that is written as true or false."""
    if type(value) is not bool:
        raise _misfit(value)
    return int(value)


def floating(value: object) -> float:
    """A number of four or eight bytes."""
    if type(value) is int or (type(value) is float and isfinite(value)):
        return float(value)
    raise _misfit(value)


def text(value: object) -> str:
    """Text, and labels."""
    if type(value) is not str or begins_with_half(value):
        raise _misfit(value)
    return value


def label_reader(kind: Kind, allowed: str) -> Read:
    """For a label of an ENUM, or several of a SET.

    Of a change in the binlog, the connector writes a label as its schema lists it, with a
    backslash before each comma and backslash; of a row in a snapshot, as it is. It knows labels
    as the source describes them: with a question mark instead of each character beyond the Basic
    Multilingual Plane.

    Args:
        kind: ENUM or SET.
        allowed: the labels, as the schema lists them.
    """
    meant: dict[str, set[str]] = {}
    for listed in _LABEL.findall(allowed):
        plain = _ESCAPED.sub(r"\1", listed)
        meant.setdefault(plain, set()).add(plain)
        meant.setdefault(listed, set()).add(plain)

    def one(part: str) -> str:
        found = meant.get(part, ())
        if len(found) != 1:
            what = "two labels may be written like" if found else "no label is written like"
            raise ValueError(f"{what} {part!r:.60}")
        return next(iter(found))

    def read(value: object) -> Value:
        label = text(value)
        if "?" in label:
            raise ValueError(f"of the label {label!r:.60} the connector may have lost a character")
        if kind is Kind.SET:
            return ",".join(map(one, label.split(","))) if "\\" in label else label
        return one(label) if "\\" in label or "," in label else label

    return read


_LABEL: Final = re.compile(r"(?:\\.|[^,\\])+", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\([\\,])")


def year(value: object) -> int:
    """A year; the connector takes that of no year, which is written as 0, for 1900."""
    number = whole(value)
    return 0 if number == _YEAR_OF_NONE else number


def binary(value: object) -> bytes:
    """Bytes in base64."""
    return b64decode(text(value), validate=True)


def decimal_reader(scale: int, precision: int) -> Read:
    """For a whole number in bytes, the highest first, of which so many digits are a fraction.

    With ``decimal.format=NUMERIC`` of the converter, a number of JSON, which is exact here up to
    15 digits.

    Args:
        scale: digits of the fraction.
        precision: all digits, 0 if they are not known.
    """

    def read(value: object) -> Value:
        if type(value) is int:
            return decimal_text(value * 10**scale, scale)
        if type(value) is float:
            if not 0 < precision <= _EXACT:
                raise ValueError("a number of JSON, which is exact only up to 15 digits")
            unscaled = Decimal(repr(value)).scaleb(scale)
            if unscaled != int(unscaled):
                raise _misfit(value)
            return decimal_text(int(unscaled), scale)
        data = binary(value)
        if not data:
            raise _misfit(value)
        return decimal_text(int.from_bytes(data, "big", signed=True), scale)

    return read


def decimal_text(unscaled: int, scale: int) -> str:
    """A decimal as MySQL prints it."""
    sign, digits = ("-" if unscaled < 0 else ""), str(abs(unscaled))
    if scale <= 0:
        return sign + digits + "0" * -scale if unscaled else "0"
    digits = digits.zfill(scale + 1)
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}"


_DECIMAL: Final = re.compile(r"-?\d+(\.\d+)?", re.ASCII)


def written_decimal(value: object) -> str:
    """A decimal in text."""
    number = text(value)
    if _DECIMAL.fullmatch(number) is None:
        raise _misfit(value)
    return number


def bits(value: object) -> int:
    """BIT: bytes, the lowest first."""
    return int.from_bytes(binary(value), "little")


def date(value: object) -> str:
    """Days since 1970."""
    days = whole(value)
    if not _FIRST_DAY <= days <= _LAST_DAY:
        raise _misfit(value)
    return day_text(days)


def moment_reader(per_second: int) -> Read:
    """DATETIME: a number of parts of a second since 1970, as if it were in UTC."""
    micros = 1_000_000 // per_second

    def read(value: object) -> Value:
        seconds, parts = divmod(whole(value), per_second)
        if not _FIRST_DAY * _DAY <= seconds < (_LAST_DAY + 1) * _DAY:
            raise _misfit(value)
        return _moment(seconds, parts * micros)

    return read


def _moment(seconds: int, micros: int) -> str:
    days, rest = divmod(seconds, _DAY)
    minutes, second = divmod(rest, 60)
    hour, minute = divmod(minutes, 60)
    return f"{day_text(days)} {clock_text(hour, minute, second)}.{micros:06d}"


def time_reader(per_second: int) -> Read:
    """TIME: a number of parts of a second, of either sign, and beyond a day."""

    def read(value: object) -> Value:
        number = whole(value)
        seconds, parts = divmod(abs(number), per_second)
        micros, lost = divmod(parts * 1_000_000, per_second)
        if lost or seconds > _LONGEST_TIME:
            raise _misfit(value)
        minutes, second = divmod(seconds, 60)
        hour, minute = divmod(minutes, 60)
        return f"{'-' if number < 0 else ''}{clock_text(hour, minute, second)}.{micros:06d}"

    return read


def iso_date(value: object) -> str:
    """A date in text, with a zone that says nothing."""
    found = _ISO_DATE.fullmatch(text(value))
    if found is None:
        raise _misfit(value)
    return date_text(*map(int, found.groups()))


def iso_moment(value: object) -> str:
    """DATETIME in text, with a zone that says nothing."""
    found = _ISO_MOMENT.fullmatch(text(value))
    if found is None or found[8] not in (None, "Z", "+00:00"):
        raise _misfit(value)
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    clock = clock_text(hour, minute, second)
    return f"{date_text(year, month, day)} {clock}.{_micros(found[7], value):06d}"


def iso_time(value: object) -> str:
    """A time of day in text."""
    found = _ISO_TIME.fullmatch(text(value))
    if found is None:
        raise _misfit(value)
    hour, minute, second = (int(part or 0) for part in found.groups()[:3])
    return f"{clock_text(hour, minute, second)}.{_micros(found[4], value):06d}"


def zoned(value: object) -> str:
    """TIMESTAMP: a moment with its zone.

    No TIMESTAMP of a server is at 1970-01-01 00:00:00, so that stands for its zero date.
    """
    found = _ISO_MOMENT.fullmatch(text(value))
    if found is None or found[8] is None:
        raise _misfit(value)
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    at = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    seconds = int(at.timestamp()) - _offset(found[8])
    micros = _micros(found[7], value)
    return timestamp_text(seconds, micros) if seconds or micros else ZERO_DATETIME


def _offset(zone: str) -> int:
    if zone == "Z":
        return 0
    size = int(zone[1:3]) * 3600 + int(zone[4:]) * 60
    return -size if zone[0] == "-" else size


def _micros(fraction: str | None, value: object) -> int:
    digits = (fraction or "").ljust(6, "0")
    if digits[6:].strip("0"):
        raise _misfit(value)  # a part of a microsecond, which MySQL does not have
    return int(digits[:6])


def geometry(value: object) -> bytes:
    """Well-known binary with its SRID, which is 0 where none is said."""
    if not isinstance(value, dict):
        raise ValueError("a shape that is no object")  # noqa: TRY004 - one kind of error for all
    parts = cast("dict[str, object]", value)
    srid = parts.get("srid")
    shape = binary(parts.get("wkb"))
    if not shape:
        raise ValueError("a shape without its bytes")
    return struct.pack("<I", 0 if srid is None else whole(srid)) + shape


def vector(value: object) -> bytes:
    """VECTOR: its numbers, of four bytes each."""
    if not isinstance(value, list):
        raise ValueError("a vector that is no list")  # noqa: TRY004 - one kind of error for all
    numbers = cast("list[object]", value)
    return struct.pack(f"<{len(numbers)}f", *map(floating, numbers))


def _misfit(value: object) -> ValueError:
    shown = repr(value)
    return ValueError(f"{shown[:60]}{'…' if len(shown) > 60 else ''} is none of its type")
