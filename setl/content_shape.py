"""Says of a content that nobody can read what it is like, and nothing of what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from setl.counting import count


def shape(content: object) -> str:
    """The kind and length of a content: a file or a record may hold anything, secrets too."""
    match content:
        case None:
            return "nothing"
        case str():
            return count(len(content), "character")
        case bytes():
            return count(len(content), "byte")
        case Mapping():
            return f"an object of {count(len(cast('Mapping[Any, Any]', content)), 'member')}"
        case Sequence():
            return f"a list of {count(len(cast('Sequence[Any]', content)), 'item')}"
        case _:
            return f"a value of type {type(content).__name__}"
