"""The row in a dead letter, as a person reads it: column by column, long values cut.

A letter may hold a row of many megabytes, and text that has no UTF-8 form. Neither may keep the
page from being shown.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from setl.operate import units
from setl.printable import printable

_LONGEST = 200
"""Characters of a value that are shown, and twice as many digits of binary values."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of a row.

    Attributes:
        column: its name.
        text: the value, or its beginning.
        rest: what is said of a value that is cut; "" for a whole one.
    """

    column: str
    text: str
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """A row.

    Attributes:
        name: which one: ``before``, ``after`` or ``values``.
        cells: its values.
    """

    name: str
    cells: Sequence[Cell]


def images_of(payload: str) -> Sequence[Image]:
    """The rows in a letter's payload; none of a record that could not be decoded."""
    try:
        return _images(json.loads(payload))
    except (ValueError, TypeError, LookupError, AttributeError):
        return ()  # changed, or of another release: the error and the position are worth showing


def _images(value: dict[str, Any]) -> Sequence[Image]:
    columns: Sequence[Mapping[str, Any]] = value.get("columns", ())
    names = [str(column["name"]) for column in columns]
    if value["form"] == "row" and value["operation"] == "delete":
        key: Sequence[int] = value["key"]
        names = [names[index] for index in key]
    return [
        Image(image, [_cell(n, each) for n, each in zip(names, row, strict=False)])
        for image in ("before", "after", "values")
        if (row := value.get(image)) is not None
    ]


def _cell(column: str, value: Any) -> Cell:
    if isinstance(value, dict) and "bytes" in value:
        raw = b64decode(cast("dict[str, str]", value)["bytes"])
        rest = f"{units.size(len(raw))} in all" if len(raw) > _LONGEST else ""
        return Cell(column, f"0x{raw[:_LONGEST].hex()}", rest)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return Cell(
        column,
        printable(text[:_LONGEST]),
        f"{len(text):,} characters in all" if len(text) > _LONGEST else "",
    )
