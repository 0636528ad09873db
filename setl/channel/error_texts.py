"""Turns pydantic's errors into one readable line for each mistake."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from setl.channel.fields.endpoints import TYPES
from setl.channel.text.problems import Path, Problem, written
from setl.channel.text.references import has_reference, is_secret
from setl.channel.text.strict_model import RULE, closest

_SHOWN = 60  # characters of a value that a message repeats
_ENDS = {"source", "target"}
_MISSING = "is required"
_DTS = "dts"  # was a type, before Kafka had formats
_ACCOUNT = re.compile(r"//[^/@]*@")  # as in https://user:password@host


def problems_of(
    error: ValidationError, raw: Mapping[str, Any], lines: Mapping[Path, int]
) -> list[Problem]:
    """One problem for each position that is wrong, in no particular order.

    Args:
        error: what validation of a channel file raised.
        raw: the definition as written, references unresolved, so that messages can repeat a
            value without showing what the environment put in.
        lines: path → line of each value; a missing one gets the line of what it is missing in.
    """
    found: dict[Path, Problem] = {}
    misspelt: set[Path] = set()
    for item in error.errors(include_url=False):
        path = path_of(item["loc"])
        if item["type"].startswith("union_tag"):
            path = (*path, "type")
        message = _message(item["type"], item["input"], item.get("ctx", {}), path, raw)
        if path[-1:] == ("[key]",):
            path, message = path[:-2], f"has a name in it that {message}"
        misspelt.add((*path[:-1], item.get("ctx", {}).get("instead", "")))
        found.setdefault(path, Problem(written(path), message or item["msg"], _line(path, lines)))
    # A misspelt key is one mistake, not an unknown key and a missing one.
    return [p for path, p in found.items() if not (path in misspelt and p.message == _MISSING)]


def path_of(loc: Path) -> Path:
    """A position as it is in the file, without the names of the forms that a part can have.

    pydantic puts the form into the place: ``pipelines, 0, source, mysql, start, file, offset``.
    """
    steps = list(loc)
    if len(steps) > 3 and steps[0] == "pipelines" and steps[2] in _ENDS:
        # What a rule of the whole file found has no form in its place.
        if steps[3] in TYPES:
            del steps[3]
        if len(steps) > 4 and steps[3] == "start":
            del steps[4]
    if len(steps) > 5 and steps[2] == "tables" and steps[4] == "conflict":
        del steps[5]
    return tuple(steps)


def _line(path: Path, lines: Mapping[Path, int]) -> int | None:
    """The line of a position, or of the nearest thing around it that the file does have."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path)


def _message(
    kind: str, given: object, context: Mapping[str, Any], path: Path, raw: Mapping[str, Any]
) -> str:
    """What is wrong, "" for a kind of error that nothing is known of."""
    text = ""
    if given is None:
        text = "has no value; give it one or remove the key"
    elif kind == RULE:
        text = str(context["text"])
    elif kind == "union_tag_invalid" and context["tag"] == _DTS:
        text = "is a format: write `type: kafka`; `format: dts` is the default"
    elif kind in _FIXED:
        text = _FIXED[kind]
    elif kind in _WITH_LIMIT:
        words, name = _WITH_LIMIT[kind]
        text = words.format(_number(context[name]))
    elif kind in _WITH_CHOICE:
        text = _choice(str(context[_WITH_CHOICE[kind]]), context.get("tag", given))
    # Only a sentence that says what it must be can go on with what it is not.
    positive = text.startswith(("must be", "must have")) and kind != "too_short"
    return text + (_but(path, raw) if positive else "")


def _but(path: Path, raw: Mapping[str, Any]) -> str:
    """``, not …`` with the value as it is written; "" for secrets and where there is none."""
    value: Any = raw
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return ""
    return "" if is_secret(path) or value == "" else f", not {_shown(value)}"


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, list | Mapping):
        return "a list" if isinstance(value, list) else "a mapping"
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return str(value)
    safe = _ACCOUNT.sub("//…@", value)
    short = safe if len(safe) <= _SHOWN else safe[: _SHOWN - 1] + "…"
    return f"what {short} stands for" if has_reference(value) else f"`{short}`"


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _choice(expected: str, given: object) -> str:
    options = expected.replace("'", "").replace(" or ", ", ").split(", ")
    options = [_IN_YAML.get(option, option) for option in options]
    near = closest(given, options) if isinstance(given, str) else ""
    return "must be " + _either(options) + (f" (did you mean `{near}`?)" if near else "")


def _either(options: list[str]) -> str:
    quoted = [f"`{o}`" for o in options]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " or " + quoted[-1]


_FIXED: Mapping[str, str] = {
    "missing": _MISSING,
    "union_tag_not_found": "is required and says which kind this is",
    "string_type": "must be text (put it in quotes)",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    "int_parsing_size": "must be a smaller number",
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    "invalid_key": "has a key that is not text",
    "string_too_short": "must not be empty",
    "list_type": "must be a list (each item on a line that begins with -)",
    **dict.fromkeys(
        ("dict_type", "model_type", "model_attributes_type"), "must be a mapping of keys to values"
    ),
    "too_short": "must have at least one item",
}

_IN_YAML = {"True": "true", "False": "false"}
_WITH_CHOICE = {"literal_error": "expected", "union_tag_invalid": "expected_tags"}

_WITH_LIMIT: Mapping[str, tuple[str, str]] = {
    "greater_than": ("must be above {}", "gt"),
    "greater_than_equal": ("must be at least {}", "ge"),
    "less_than": ("must be below {}", "lt"),
    "less_than_equal": ("must be at most {}", "le"),
}
