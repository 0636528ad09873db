"""Values of Canal's flat messages, which are all text, in their normal form.

What a value is, the column's type says. See `setl.model.schema.Kind` for the forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from math import isfinite
from typing import Final
from zoneinfo import ZoneInfo

from setl.codec.temporal import ZERO_DATETIME, clock_text, timestamp_text
from setl.errors import ConfigurationError, DataError
from setl.model.change import Value
from setl.model.labels import begins_with_half, of_numbers
from setl.model.schema import Kind

Read = Callable[[str], Value]

_WHOLE: Final = re.compile(r"-?\d+", re.ASCII)
_DECIMAL: Final = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.(\d{1,6}))?", re.ASCII)
_TIME: Final = re.compile(r"(-?)(\d{1,3}):(\d\d):(\d\d)(?:\.(\d{1,6}))?", re.ASCII)
_OFFSET: Final = re.compile(r"([+-])(\d\d):(\d\d)", re.ASCII)
_ZERO: Final = ZERO_DATETIME.partition(".")[0]


def whole(text: str) -> int:
    """A whole number."""
    if _WHOLE.fullmatch(text) is None:
        raise _misfit(text)
    return int(text)


def unsigned_reader(bits: int) -> Read:
    """For a whole number without a sign.

    Canal does not take ZEROFILL for UNSIGNED, and writes large numbers of so many bits as negative.
    """

    def read(text: str) -> Value:
        number = whole(text)
        return number if number >= 0 else number + (1 << bits)

    return read


def decimal(text: str) -> str:
    """A decimal."""
    if _DECIMAL.fullmatch(text) is None:
        raise _misfit(text)
    return text


def floating(text: str) -> float:
    """A number of four or eight bytes, as Java prints it."""
    number = float(text)
    if not isfinite(number):
        raise _misfit(text)
    return number


def plain(text: str) -> str:
    """Text."""
    if begins_with_half(text):
        raise _misfit(text)
    return text


def ascii_text(text: str) -> str:
    """Text whose bytes Canal took for characters, without asking for the column's encoding."""
    if not text.isascii() or "\0" in text:
        raise ValueError(
            "Canal wrote the bytes of a text whose type has a size, and not its characters: change"
            " the column to a type without a size, such as TEXT, at the source"
        )
    return text


def json_text(text: str) -> str:
    """JSON; the source's JSON null, if there is nothing.

    Of a change that the source logs in part, Canal writes an expression of SQL.
    """
    if text.startswith("JSON_"):
        raise ValueError(
            "a change of a part of a JSON value: turn binlog_row_value_options=PARTIAL_JSON off at"
            " the source"
        )
    return plain(text) or "null"


def binary_reader(size: int) -> Read:
    """Bytes, each as the character of its number; BINARY is filled up with zero bytes to a size."""
    return lambda text: text.encode("latin-1").ljust(size, b"\0")


def date(text: str) -> str:
    """A date, also a zero date."""
    if _DATE.fullmatch(text) is None:
        raise _misfit(text)
    return text


def moment(text: str) -> str:
    """A date with a time."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise _misfit(text)
    return f"{found[1]}.{(found[2] or '').ljust(6, '0')}"


def time(text: str) -> str:
    """A length of time."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise _misfit(text)
    clock = clock_text(int(found[2]), int(found[3]), int(found[4]))
    return f"{found[1]}{clock}.{(found[5] or '').ljust(6, '0')}"


def timestamp_reader(zone: str) -> Read:
    """A moment as it is in a time zone, that of Canal's JVM.

    Args:
        zone: its name or its distance from UTC, "" if it is not known.

    Raises:
        ConfigurationError: there is no such zone.
    """
    known = _zone(zone) if zone else None

    def read(text: str) -> Value:
        found = _MOMENT.fullmatch(text)
        if found is None:
            raise _misfit(text)
        if found[1] == _ZERO:
            return ZERO_DATETIME
        if known is None:
            raise DataError(
                "a TIMESTAMP, which Canal writes in the time zone of its JVM",
                hint="Name that zone under `time_zone` of the source, such as +08:00 or"
                " Asia/Shanghai",
            )
        local = datetime.fromisoformat(found[1])
        offsets = {local.replace(tzinfo=known, fold=fold).utcoffset() for fold in (0, 1)}
        if len(offsets) > 1:
            raise ValueError(f"{text} is there twice, or not at all, in the time zone {zone}")
        seconds = int(local.replace(tzinfo=known).astimezone(UTC).timestamp())
        return timestamp_text(seconds, int((found[2] or "").ljust(6, "0")))

    return read


def _zone(name: str) -> tzinfo:
    found = _OFFSET.fullmatch(name)
    if found is not None:
        distance = timedelta(hours=int(found[2]), minutes=int(found[3]))
        return timezone(-distance if found[1] == "-" else distance)
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:
        raise ConfigurationError(
            f"this machine knows no time zone {name}",
            hint="Correct `time_zone` of the source, write it as +08:00, or install tzdata",
        ) from error


def label_reader(kind: Kind, labels: tuple[str, ...]) -> Read:
    """ENUM and SET, of which Canal writes the number.

    A writer that puts labels instead is understood where no label looks like a number. Servers
    describe labels with a question mark instead of each character beyond the Basic Multilingual
    Plane, so such a label is none.
    """
    value_of = of_numbers(kind, labels)
    known = frozenset(labels) | {""}
    numbers = any(_WHOLE.fullmatch(label) for label in labels)

    def read(text: str) -> Value:
        if _WHOLE.fullmatch(text) is not None:
            label = value_of(int(text))
            if "?" in label:
                raise ValueError(f"of the label {label!r:.60} Canal may have lost a character")
            return label
        parts = text.split(",") if kind is Kind.SET else [text]
        if numbers or not known.issuperset(parts):
            raise _misfit(text)
        return text

    return read


def _misfit(text: str) -> ValueError:
    return ValueError(f"{text[:60]!r}{'…' if len(text) > 60 else ''} is none of its type")
