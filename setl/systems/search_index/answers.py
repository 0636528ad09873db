"""Parts of answers, which may be missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast


def part(value: object, name: str) -> dict[str, Any]:
    """The object under a name, empty if there is none."""
    found: object = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def name_said(info: object) -> str:
    """What a server calls its product in the answer to ``GET /``."""
    said = part({"it": info}, "it")
    return str(part(said, "version").get("distribution") or said.get("tagline") or "")


def each(value: object, name: str) -> Iterator[dict[str, Any]]:
    """The objects in the object under a name."""
    for item in part(value, name).values():
        if isinstance(item, dict):
            yield cast("dict[str, Any]", item)


def number(value: dict[str, Any], name: str) -> int:
    """The whole number under a name, 0 if there is none."""
    found: object = value.get(name)
    return int(found) if isinstance(found, (int, float)) else 0
