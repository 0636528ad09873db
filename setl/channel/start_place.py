"""The forms of a source's `start`: a word, or a mapping whose key tells its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, Tag

from setl.channel.strict_model import RULE, StrictModel

_WORD = "word"

Word = Annotated[Literal["latest", "earliest"], Tag(_WORD)]


class LoadStart(StrictModel):
    """Start with the rows that are there: load the tables while the stream goes on."""

    load: Literal[True] = Field(
        description="Load the rows that the mapped tables have, and what is changed from now on."
    )


def start_kind(**kinds: type[BaseModel]) -> Callable[[Any], str | None]:
    """Tells the forms of `start` apart by a key: the name of each argument."""

    def kind(value: Any) -> str | None:
        if isinstance(value, str):
            return _WORD
        for key, model in kinds.items():
            if isinstance(value, model) or (isinstance(value, Mapping) and key in value):
                return key
        return None

    return kind


def start_error(forms: str) -> dict[str, Any]:
    """What is said about anything else."""
    return {
        "custom_error_type": RULE,
        "custom_error_message": "{text}",
        "custom_error_context": {"text": f"must be latest, earliest, {forms}"},
    }
