"""Writes the generated part of ``docs/pages/channel-file.md``: the fields of channel files.

It is made from setl's JSON Schema of channel files, so the page says what `setl check` accepts.
To write it again: ``python docs/channel_reference.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

from setl.channel.json_schema import channel_schema

Json = dict[str, Any]

PAGE: Final = Path(__file__).parent / "pages" / "channel-file.md"
BEGIN: Final = "<!-- made by docs/channel_reference.py: begin -->"
END: Final = "<!-- made by docs/channel_reference.py: end -->"

_TITLES: Final = {
    "": "The file",
    "Pipeline": "A pipeline",
    "MysqlSource": "A source of type mysql",
    "KafkaSource": "A source of type kafka",
    "MysqlTarget": "A target of type mysql",
    "ElasticsearchTarget": "A target of type elasticsearch",
    "OpenSearchTarget": "A target of type opensearch",
    "DeltaTarget": "A target of type delta",
    "KafkaTarget": "A target of type kafka",
    "TableMapping": "A table mapping",
    "NestedRows": "Nested rows",
    "NewestRow": "The conflict policy newest",
    "LoadLimits": "Limits of table loads",
    "StandingVerification": "Standing verification",
    "Alarms": "Alarm rules",
    "AlarmRule": "An alarm rule",
    "LagAlarm": "A rule about lag",
    "CountAlarm": "A rule about a count",
    "VerificationAgeAlarm": "A rule about the age of verification",
    "PositionAlarm": "A rule about the position",
    "ExpiryAlarm": "A rule about expiry",
    "TargetDiskAlarm": "A rule about the target's disks",
    "Restart": "Automatic restart",
    "NodeChoice": "Preferred nodes",
    "Database": "A database connection",
    "BinlogStart": "Start at a binlog position",
    "GtidStart": "Start after GTIDs",
    "LoadStart": "Start with a load",
    "TimestampStart": "Start at a time",
    "OffsetStart": "Start at an offset",
}
# What stands for a value of another kind is said once, above the tables.
_FORMS: Final = frozenset({"Reference", "NumberAsText"})
_RULE: Final = "AlarmRule"
_BASES: Final = (_RULE, "Database")
"""Objects whose fields others have as well; these have only their further fields in a table."""
_SAME_RULE: Final = frozenset({"MinuteAlarm", "FiveMinuteAlarm", "TenMinuteAlarm"})
"""Rules that differ from `_RULE` in the default of `for` alone: they have no table of their own."""
_TOGETHER: Final = {
    **dict.fromkeys(("LagAlarm", "CountAlarm", "VerificationAgeAlarm"), _RULE),
    **dict.fromkeys(("PositionAlarm", "ExpiryAlarm", "TargetDiskAlarm"), _RULE),
    **dict.fromkeys(("GtidStart", "LoadStart", "TimestampStart", "OffsetStart"), "BinlogStart"),
}
"""Objects of a field or two → the object in whose table they stand."""
_HEADINGS: Final = {
    _RULE: ("One alarm rule", "Fields of all rules, then those of some."),
    "BinlogStart": (
        "Start positions",
        "Where `start` of a source may begin, each with its fields.",
    ),
}
"""Headings of these tables, and what they show."""
_OBJECTS: Final = {
    "LagAlarm": "`lag`",
    "CountAlarm": "`dead_letters`, `echoes`, `verification_differences`",
    "VerificationAgeAlarm": "`verification_age`",
    "PositionAlarm": "`position`",
    "ExpiryAlarm": "`expiry`",
    "TargetDiskAlarm": "`target_disk`",
    "BinlogStart": "Binlog",
    "GtidStart": "GTIDs",
    "LoadStart": "Load",
    "TimestampStart": "Time",
    "OffsetStart": "Kafka",
}
"""What a row of these tables begins with: the object that has the field."""
_DAYS: Final = "[dhmsDHMS]"
"""Stands in the pattern of a duration, which is explained once, above the tables."""
_PLAIN: Final = {"string": "text", "integer": "integer", "number": "number"}
_REFERENCE: Final = "#/$defs/"


def reference_text(schema: Json) -> str:
    """The tables of all objects of a schema, the file first, then in the order of their use."""
    definitions = cast("dict[str, Json]", schema["$defs"])
    objects = dict(_objects(schema))
    parts: list[str] = []
    for name, part in objects.items():
        if name not in _TOGETHER:
            together = [name, *(each for each in objects if _TOGETHER.get(each) == name)]
            rows = [row for each in together for row in _rows(each, objects[each], definitions)]
            parts.append("\n".join([*_head(name, part, definitions), *rows]))
    return "\n\n".join(parts)


def page_text(page: str, schema: Json) -> str:
    """A page with its generated part written again; what stands around the part stays.

    Raises:
        ValueError: the page does not hold the two lines between which the part stands.
    """
    before, found, rest = page.partition(BEGIN)
    _, found_end, after = rest.partition(END)
    if not (found and found_end):
        raise ValueError(f"the page lacks {BEGIN} or {END}")
    return f"{before}{BEGIN}\n\n{reference_text(schema)}\n\n{END}{after}"


def _objects(schema: Json) -> Iterator[tuple[str, Json]]:
    """Every object of the schema once, breadth first; the file itself has the name ""."""
    definitions = cast("dict[str, Json]", schema["$defs"])
    root = {key: value for key, value in schema.items() if key != "$defs"}
    waiting: list[tuple[str, Json]] = [("", root)]
    seen = {""}
    while waiting:
        name, part = waiting.pop(0)
        yield name, part
        for used in map(_shown_as, _references(part)):
            if used not in seen and used not in _FORMS:
                seen.add(used)
                waiting.append((used, definitions[used]))


def _references(node: Any) -> Iterator[str]:
    """Names of the definitions that a part of a schema refers to, in its order."""
    if isinstance(node, list):
        for item in cast("list[Any]", node):
            yield from _references(item)
    elif isinstance(node, dict):
        for key, value in cast("Json", node).items():
            if key == "$ref":
                yield str(value).removeprefix(_REFERENCE)
            else:
                yield from _references(value)


def _shown_as(name: str) -> str:
    """The definition whose table describes this one."""
    return _RULE if name in _SAME_RULE else name


def _base_of(name: str, definitions: dict[str, Json]) -> str:
    """The object whose fields this one has beside its own; "" if there is none."""
    own = cast("Json", definitions.get(name, {}).get("properties", {}))
    for base in _BASES:
        if name != base and cast("Json", definitions[base]["properties"]).keys() <= own.keys():
            return base
    return ""


def _inherited(name: str, definitions: dict[str, Json]) -> Json:
    """The fields that an object shares with its base; their table is the base's."""
    base = _base_of(name, definitions)
    return cast("Json", definitions[base]["properties"]) if base else {}


def _head(name: str, part: Json, definitions: dict[str, Json]) -> list[str]:
    own = _TITLES.get(name, name), _cleaned(str(part["description"]))
    title, about = _HEADINGS.get(name, own)
    base = _base_of(name, definitions)
    if base:
        about += f" It also has the fields of [{_TITLES[base].lower()}](#{_anchor(base)})."
    return [
        f"### {title} {{ #{_anchor(name)} }}",
        "",
        about,
        "",
        "| field | type | default | meaning |",
        "|---|---|---|---|",
    ]


def _rows(name: str, part: Json, definitions: dict[str, Json]) -> list[str]:
    required = cast("list[str]", part.get("required", []))
    fields = cast("dict[str, Json]", part["properties"])
    inherited = _inherited(name, definitions)
    of = f"{_OBJECTS[name]}: " if name in _OBJECTS else ""
    lines: list[str] = []
    for field, value in fields.items():
        if field in inherited:
            continue
        cells = (
            f"`{field}`",
            _type_text(value),
            "required" if field in required else _default_of(name, field, value, definitions),
            of + _cleaned(str(value["description"])),
        )
        lines.append(" ".join(["|", *(f"{cell} |".lstrip() for cell in cells)]))
    return lines


def _anchor(name: str) -> str:
    return _TOGETHER.get(name, name).lower() or "file"


def _default_of(name: str, field: str, value: Json, definitions: dict[str, Json]) -> str:
    """The default of a field of an object; of an alarm rule, how long it waits."""
    if (name, field) == (_RULE, "for"):
        return f"see [{_TITLES['Alarms'].lower()}](#{_anchor('Alarms')})"
    used = str(value.get("$ref", "")).removeprefix(_REFERENCE)
    fields = cast("Json", definitions.get(used, {}).get("properties", {}))
    if fields.keys() >= cast("Json", definitions[_RULE]["properties"]).keys():
        return f"`for: {fields['for']['default']:g}`"
    return _default_text(value)


def _default_text(value: Json) -> str:
    default = value.get("default")
    if default is None or default in ("", [], {}):
        return ""
    if isinstance(default, bool):
        return "`true`" if default else "`false`"
    if isinstance(default, float) and default.is_integer():
        return f"`{int(default)}`"
    return f"`{default}`"


def _type_text(value: Json) -> str:
    """What a value may be, in a few words; alternatives are joined by "or"."""
    if _DAYS in json.dumps(value):
        return "duration"
    words: list[str] = []
    for word in _types(value):
        if word not in words:
            words.append(word)
    return " or ".join(words)


def _types(value: Json) -> Iterator[str]:
    if "$ref" in value:
        name = _shown_as(str(value["$ref"]).removeprefix(_REFERENCE))
        if name not in _FORMS:
            title = _TITLES.get(name, name)
            yield f"[{title[0].lower()}{title[1:]}](#{_anchor(name)})"
        return
    for several in ("anyOf", "oneOf"):
        for alternative in cast("list[Json]", value.get(several, [])):
            yield from _types(alternative)
    if "const" in value:
        const = value["const"]
        yield f"`{const if isinstance(const, str) else json.dumps(const)}`"
    elif "enum" in value:
        yield from (f"`{word}`" for word in cast("list[str]", value["enum"]))
    elif "type" in value:
        yield from _typed(value)


def _typed(value: Json) -> Iterator[str]:
    kind = str(value["type"])
    if kind == "null":
        return
    if kind == "array":
        yield f"list of {_type_text(cast('Json', value['items']))}"
    elif kind == "object":
        yield f"map of {_values_of(value)}"
    elif kind == "boolean":
        yield "boolean"
    else:
        yield f"{_PLAIN[kind]}{_bounds(value)}"


def _values_of(value: Json) -> str:
    """What the values of an object with free names may be."""
    named = cast("dict[str, Json]", value.get("patternProperties", {}))
    further = value.get("additionalProperties")
    kinds = [*named.values(), *([cast("Json", further)] if isinstance(further, dict) else [])]
    return " or ".join(_type_text(kind) for kind in kinds)


def _bounds(value: Json) -> str:
    if {"minimum", "maximum"} <= value.keys():
        return f", {value['minimum']:,} to {value['maximum']:,}"
    words = {
        "minimum": "at least",
        "exclusiveMinimum": "more than",
        "maximum": "at most",
        "exclusiveMaximum": "less than",
    }
    said = [f"{word} {value[key]:,}" for key, word in words.items() if key in value]
    return f", {', '.join(said)}" if said else ""


def _cleaned(text: str) -> str:
    """A description as one line of Markdown, in which a star or a bar is only itself."""
    line = " ".join(text.split()).replace("``", "`")
    # Between backticks, which are the odd pieces, a star means nothing anyway.
    pieces = line.split("`")
    pieces[::2] = [piece.replace("*", r"\*").replace("<", "&lt;") for piece in pieces[::2]]
    return "`".join(pieces).replace("|", r"\|")


def main() -> None:
    """Write the page in a checkout."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page_text(page, channel_schema()), encoding="utf-8")


if __name__ == "__main__":
    main()
