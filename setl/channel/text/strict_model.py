"""The base of all parts of a channel file: no unknown fields, immutable, all errors at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, cast, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from setl.channel.text.problems import Path
from setl.channel.text.raw import Raw

RULE = "setl"
"""Type of the errors whose message is ours, as opposed to pydantic's."""


class StrictModel(BaseModel):
    """A part of a channel file.

    Rules between several fields are not written as pydantic's "after" validators, which do
    not run when any field is wrong: `rules` sees the raw values, so that a file's mistakes
    are found all at once.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False
    )

    @classmethod
    def rules(cls, raw: Raw) -> Iterable[tuple[Path, str]]:  # noqa: ARG003
        """The broken rules between fields: where, relative to this part, and what is wrong."""
        return ()

    @model_validator(mode="wrap")
    @classmethod
    def _all_at_once(
        cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        errors: list[InitErrorDetails] = []
        made = None
        try:
            made = handler(data)
        except ValidationError as error:
            errors += [_stored(e, cls) for e in cast("list[Any]", error.errors())]
        if isinstance(data, Mapping):
            raw = cast("Raw", data)
            errors += [broken(path, message, raw) for path, message in cls.rules(raw)]
            errors += _truth_as_number(cls, raw)
            if info.context and info.context.get("file"):
                errors += _names_of_code(cls, raw)
        if errors or made is None:
            raise ValidationError.from_exception_data(cls.__name__, errors)
        return made


def problem(message: str, instead: str = "") -> PydanticCustomError:
    """An error whose message is shown as it is; raise it in validators of fields.

    Args:
        message: what is wrong, the end of a sentence that begins with the path.
        instead: for an unknown key, the key that was probably meant.
    """
    return PydanticCustomError(RULE, "{text}", {"text": message, "instead": instead})


def broken(path: Path, message: str, value: Any) -> InitErrorDetails:
    """An error at a position below the part that is being validated."""
    return InitErrorDetails(type=problem(message), loc=path, input=value)


def aliases(model: type[BaseModel]) -> list[str]:
    """The keys a part may have in a file."""
    return [info.alias or name for name, info in model.model_fields.items()]


def closest(word: str, known: Iterable[str]) -> str:
    """The known word that is most like `word`, "" if none is."""
    near = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return near[0] if near else ""


def _stored(error: dict[str, Any], model: type[BaseModel]) -> InitErrorDetails:
    """An error as it goes on to the part above; unknown keys get a suggestion here."""
    kind, loc = error["type"], cast("Path", error["loc"])
    if kind == "extra_forbidden" and len(loc) == 1:
        kind = _unknown_key(str(loc[0]), aliases(model), _parts_with(str(loc[0]), model))
    elif kind == RULE:
        kind = problem(error["ctx"]["text"], error["ctx"].get("instead", ""))
    details = InitErrorDetails(type=kind, loc=loc, input=error["input"])
    if isinstance(kind, str):
        details["ctx"] = error.get("ctx", {})
    return details


def _unknown_key(key: str, known: list[str], below: list[str]) -> PydanticCustomError:
    if below:
        return problem(f"is an unknown key here; it belongs in `{'` or `'.join(below)}`")
    near = closest(key, known)
    advice = f"; did you mean `{near}`?" if near else f"; known are {', '.join(known)}"
    return problem(f"is an unknown key{advice}", near)


def _parts_with(key: str, model: type[BaseModel]) -> list[str]:
    """The keys of a part below which `key` is known: it was written one level too high."""
    return [
        info.alias or name
        for name, info in model.model_fields.items()
        if any(key in aliases(part) for part in _parts_in(info.annotation))
    ]


def _parts_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The parts that a field may hold, by itself, in a list or as one of several kinds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _parts_in(inner)


def _truth_as_number(model: type[BaseModel], raw: Raw) -> Iterator[InitErrorDetails]:
    """``port: true``, which pydantic takes for 1."""
    for name, info in model.model_fields.items():
        kinds = {info.annotation, *get_args(info.annotation)}
        key = info.alias or name
        if isinstance(raw.get(key), bool) and kinds & {int, float}:
            yield broken((key,), "must be a number", raw[key])


def _names_of_code(model: type[BaseModel], raw: Raw) -> Iterator[InitErrorDetails]:
    """Field names that only code may use, such as ``from_``."""
    for name, info in model.model_fields.items():
        if info.alias and info.alias != name and name in raw:
            kind = _unknown_key(name, [info.alias], [])
            yield InitErrorDetails(type=kind, loc=(name,), input=raw[name])
