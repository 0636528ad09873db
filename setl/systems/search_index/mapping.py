"""Index fields for the columns of a table.

The mapping decides what can be searched, sorted and added up; the document's ``_source`` keeps
every value as `setl.systems.search_index.load.documents` writes it, whatever the mapping. A
default must not refuse a value that a column may hold:

=====================  ==========================================================================
INTEGER, YEAR          ``long``; ``unsigned_long`` where a column has no sign; exact
BIT                    ``unsigned_long``; exact
FLOAT                  ``double``; exact
DECIMAL                ``double``, and ``.exact`` as ``keyword``. Ranges, sorting and sums are those
                       of doubles: they tell 15 digits apart. ``.exact`` finds all digits, written
                       as MySQL writes them. (``scaled_float`` would gain nothing: it goes through
                       a double too.)
TEXT                   ``text``, and ``.keyword`` for texts of up to 8,191 characters
ENUM, SET, TIME        ``keyword``; a SET is a list of its labels; TIME sorts as text
DATE                   ``date``
DATETIME, TIMESTAMP    ``date``, to the millisecond. (``date_nanos`` would refuse what is not
                       between 1970 and 2262.)
BINARY                 ``binary``: kept, not searched
GEOMETRY               ``binary``; as ``wkt`` a ``geo_shape``, which leaves out of the search what
                       lies on no globe or crosses itself
JSON                   ``object``, kept and not searched: values of one column may be objects,
                       lists and numbers by turns, which every other type would refuse
ROWS                   ``nested``, with a field for each column of the rows
=====================  ==========================================================================
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from setl.model.document import Geometry
from setl.model.schema import Column, Kind

GC_DELETES: Final = "1h"
"""``index.gc_deletes`` of indexes that setl creates: how long an index remembers the version of a
deleted document. Within this time a late write cannot bring the document back; see
`setl.systems.search_index.load.sink` for what sends none later."""

GC_DELETES_SECONDS: Final = 3600.0

_KEYWORD: Final = {"type": "keyword"}
_BINARY: Final = {"type": "binary"}
_DATE_TIME: Final = {"type": "date", "format": "strict_date_optional_time"}

# A keyword longer than 32,766 bytes is refused; 8,191 characters never are.
_TEXT: Final = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 8191}}}

_GEO_SHAPE: Final = {"type": "geo_shape", "ignore_malformed": True}

_FIELDS: Final[dict[Kind, dict[str, Any]]] = {
    Kind.INTEGER: {"type": "long"},
    Kind.YEAR: {"type": "long"},
    Kind.BIT: {"type": "unsigned_long"},
    Kind.FLOAT: {"type": "double"},
    Kind.DECIMAL: {"type": "double", "fields": {"exact": _KEYWORD}},
    Kind.TEXT: _TEXT,
    Kind.ENUM: _KEYWORD,
    Kind.SET: _KEYWORD,
    Kind.TIME: _KEYWORD,
    Kind.DATE: {"type": "date", "format": "strict_date"},
    Kind.DATETIME: _DATE_TIME,
    Kind.TIMESTAMP: _DATE_TIME,
    Kind.BINARY: _BINARY,
    Kind.GEOMETRY: _BINARY,
    Kind.JSON: {"type": "object", "enabled": False},
}


def field_of(column: Column, geometry: Geometry = "base64") -> dict[str, Any]:
    """The mapping of a column's field."""
    if column.kind is Kind.INTEGER and column.unsigned:
        return {"type": "unsigned_long"}
    if column.kind is Kind.GEOMETRY and geometry == "wkt":
        return _GEO_SHAPE
    if column.kind is Kind.ROWS:
        return {"type": "nested", "properties": fields_of(column.fields, geometry)}
    return _FIELDS[column.kind]


def fields_of(columns: Iterable[Column], geometry: Geometry = "base64") -> dict[str, Any]:
    """The ``properties`` of a mapping for columns, by name."""
    return {column.name: field_of(column, geometry) for column in columns}


def mapped_field(properties: dict[str, Any], name: str) -> dict[str, Any] | None:
    """The field of a name; a dot in it makes it a field of an object. None if there is none."""
    head, dot, rest = name.partition(".")
    found = properties.get(head)
    if found is None or not dot:
        return found
    return mapped_field(found.get("properties", {}), rest)


def missing_fields(properties: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """Those of the wanted fields that there are not; of a nested one, the fields inside."""
    lacking: dict[str, Any] = {}
    for name, field in wanted.items():
        found = mapped_field(properties, name)
        if found is None:
            lacking[name] = field
        elif "properties" in field and found.get("type") == field["type"]:
            inside = missing_fields(found.get("properties", {}), field["properties"])
            if inside:
                lacking[name] = {**field, "properties": inside}
    return lacking


def takes_new_fields(mapping: dict[str, Any]) -> bool:
    """Whether an index lets fields be added (``dynamic`` is neither false nor strict)."""
    # Spelled "true", true or not at all.
    return str(mapping.get("dynamic", "true")).lower() in {"true", "runtime"}


def mapping_lines(mapping: dict[str, Any]) -> list[str]:
    """A mapping for people: one line a field, its type first, then everything else it has."""
    fields: dict[str, Any] = mapping.get("properties", {})
    width = max(map(len, fields), default=0)
    lines = [f"{name:{width}}  {_described(field)}" for name, field in fields.items()]
    others = {part: content for part, content in mapping.items() if part != "properties"}
    return [*lines, *(f"{part}: {json.dumps(content)}" for part, content in others.items())]


def _described(field: dict[str, Any]) -> str:
    texts = [str(field.get("type", "object"))]
    for part, content in field.items():
        if part == "fields":
            texts += [f".{name} {_described(sub)}" for name, sub in content.items()]
        elif part != "type":
            texts.append(f"{part} {content if isinstance(content, str) else json.dumps(content)}")
    return ", ".join(texts)
