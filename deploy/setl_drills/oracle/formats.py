"""What each format of a topic's records loses of a history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

_IMAGES: Final = "records have whole rows; the relay stops"
_ENCODINGS: Final = "records have characters, and servers choose between two encodings of one"
_SESSION: Final = "records do not have the session; the pipeline stops"
LOST: Final[Mapping[str, Mapping[str, str]]] = {
    "dts": {"session": _SESSION},
    "debezium": {
        "session": _SESSION,
        "images": _IMAGES,
        "encodings": _ENCODINGS,
        "labels": "numbers of an ENUM or SET that print alike are one text",
        "odd-dates": "a zero date is NULL or 1970-01-01; a day that does not exist, a stop",
        "lenient": "such sessions store zero dates",
    },
    "canal": {"session": _SESSION, "images": _IMAGES, "encodings": _ENCODINGS},
}
"""By the ``format`` of a topic: keys of `FEATURES` that its records do not carry, and why."""


def left_out(through: str, without: Iterable[str]) -> frozenset[str]:
    """The features that histories do not have: those named, and those that a format loses.

    Args:
        through: a key of `LOST`, "" for a binlog.
        without: named ones.
    """
    named = frozenset(without)
    if not through:
        return named
    # Without schema changes setl creates the tables, and it creates none with foreign keys.
    return named | LOST[through].keys() | ({"foreign"} if "ddl" in named else set[str]())
