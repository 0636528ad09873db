"""Fields that are a word, or a mapping whose key tells its kind, such as a source's `start`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, Tag

from setl.channel.text.strict_model import RULE, StrictModel

_WORD = "word"
WORD = Tag(_WORD)
"""Marks the form that is a word."""

_NOTHING = "nothing"
NOTHING = Tag(_NOTHING)
"""Marks None, where the field may be left out."""

Word = Annotated[Literal["latest", "earliest"], WORD]


class LoadStart(StrictModel):
    """Load the existing rows of the tables, alongside the stream."""

    load: Literal[True] = Field(
        description="Load the existing rows of the mapped tables, and apply changes from now on."
    )


def start_kind(*, optional: bool = False, **kinds: type[BaseModel]) -> Callable[[Any], str | None]:
    """Tells the forms of such a field apart by a key: the name of each argument."""

    def kind(value: Any) -> str | None:
        if isinstance(value, str):
            return _WORD
        if value is None and optional:
            return _NOTHING
        for key, model in kinds.items():
            if isinstance(value, model) or (isinstance(value, Mapping) and key in value):
                return key
        return None

    return kind


def start_error(forms: str) -> dict[str, Any]:
    """What is said about a value that has none of the `forms`, which end a sentence."""
    return {
        "custom_error_type": RULE,
        "custom_error_message": "{text}",
        "custom_error_context": {"text": f"must be {forms}"},
    }
