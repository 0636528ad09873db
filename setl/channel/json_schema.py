"""The JSON Schema of channel files, for editors: ``schemas/channel.schema.json``.

It is made from the models and knows what stands in one place; rules between places are the
business of `setl check`. To write it again: ``python -m setl.channel.json_schema``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from setl.channel.fields.endpoints import BUILT_IN_TARGETS, TARGETS
from setl.channel.file import ChannelFile

Json = dict[str, Any]

_REFERENCE = r"\$\{"
_FORMS: Json = {
    "Reference": {
        "description": "Text with a reference to the environment: ${NAME} or ${NAME:-default}.",
        "type": "string",
        "pattern": _REFERENCE,
    },
    "NumberAsText": {
        "description": "A number in quotes, or a reference to the environment.",
        "type": "string",
        "pattern": rf"^\s*[+-]?[0-9.]+([eE][+-]?[0-9]+)?\s*$|{_REFERENCE}",
    },
}
# What is said about a value as a whole stays outside when the value gets an alternative.
_OUTSIDE = ("description", "default")


def channel_schema() -> Json:
    """The schema; a value that may be a reference (``${NAME}``) is also allowed to be one."""
    made = _built_in(ChannelFile.model_json_schema())
    schema = cast("Json", _with_references(made))
    definitions = {**cast("Json", schema.pop("$defs")), **_FORMS}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:setl:channel",
        "title": made["title"],
        **schema,
        "$defs": dict(sorted(definitions.items())),
    }


def channel_schema_text() -> str:
    """The text of ``schemas/channel.schema.json``."""
    return json.dumps(channel_schema(), indent=2, ensure_ascii=False) + "\n"


def _built_in(made: Json) -> Json:
    """The schema without the targets of other packages, which the file's reader may not have."""
    foreign = {target.__name__ for target in TARGETS} - {t.__name__ for t in BUILT_IN_TARGETS}
    target = made["$defs"]["Pipeline"]["properties"]["target"]
    refs = {f"#/$defs/{name}" for name in foreign}
    target["oneOf"] = [kind for kind in target["oneOf"] if kind["$ref"] not in refs]
    for name in foreign:
        del made["$defs"][name]
    return made


def _with_references(node: Any) -> Any:
    if isinstance(node, list):
        return [_with_references(item) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    # `discriminator` is OpenAPI's; in JSON Schema the constants in each alternative do it.
    # The titles only repeat the keys.
    plain = cast("Json", node)
    schema = {k: _below(k, v) for k, v in plain.items() if k not in {"discriminator", "title"}}
    form = _form(schema)
    if not form:
        return schema
    outside = {k: schema.pop(k) for k in _OUTSIDE if k in schema}
    return {**outside, "anyOf": [schema, {"$ref": f"#/$defs/{form}"}]}


def _below(key: str, value: Any) -> Any:
    if key in {"properties", "$defs"}:
        # Names here are a file's, and may be any word of JSON Schema too.
        named = cast("Json", value)
        return {name: _with_references(schema) for name, schema in named.items()}
    return value if key in {"default", "const", "enum"} else _with_references(value)


def _form(schema: Json) -> str:
    """The form of a value that is a reference, "" where it needs no form of its own."""
    if schema.get("type") in {"integer", "number"}:
        return "NumberAsText"
    if schema.get("type") == "boolean" or (
        schema.get("type") == "string" and ("enum" in schema or "pattern" in schema)
    ):
        return "Reference"
    return ""


def main() -> None:
    """Write the file in a checkout."""
    path = Path(__file__).parents[2] / "schemas" / "channel.schema.json"
    path.write_text(channel_schema_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
