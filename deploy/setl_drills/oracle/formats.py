"""Formats of records in which a history may travel, and what each of them loses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Format:
    """One format of a relay's topic.

    Attributes:
        written: settings of the relay's target.
        read: settings of the source that reads the topic.
        lost: why it does not carry features of histories, by keys of `FEATURES`.
    """

    written: Mapping[str, Any] = field(default_factory=dict[str, Any])
    read: Mapping[str, Any] = field(default_factory=dict[str, Any])
    lost: Mapping[str, str] = field(default_factory=dict[str, str])


_IMAGES: Final = "records have whole rows; the relay stops"
_ENCODINGS: Final = "records have characters, and servers choose between two encodings of one"
_SESSION: Final = "records do not have the session; the pipeline stops"
FORMATS: Final = {
    "dts": Format(lost={"session": _SESSION}),
    "debezium": Format(
        written={"schemas": True, "schema_changes": True},
        lost={
            "session": _SESSION,
            "images": _IMAGES,
            "encodings": _ENCODINGS,
            "labels": "numbers of an ENUM or SET that print alike are one text",
            "odd-dates": "a zero date is NULL or 1970-01-01; a day that does not exist, a stop",
            "lenient": "such sessions store zero dates",
        },
    ),
    "canal": Format(
        read={"time_zone": "UTC"},
        lost={"session": _SESSION, "images": _IMAGES, "encodings": _ENCODINGS},
    ),
}
"""By the name of ``format`` in a channel file."""


def left_out(through: str, without: Iterable[str]) -> frozenset[str]:
    """The features that histories do not have: those named, and those that a format loses.

    Args:
        through: a key of `FORMATS`, "" for a binlog.
        without: named ones.
    """
    named = frozenset(without)
    if not through:
        return named
    # Without schema changes setl creates the tables, and it creates none with foreign keys.
    return named | FORMATS[through].lost.keys() | ({"foreign"} if "ddl" in named else set[str]())
