"""The Avro form of DTS records: `schemas/Record.avsc` and what is derived from it.

A Kafka value is one bare Avro datum: no container, no schema id. The writer may have used the
schema with 15 fields or an older one that ends before ``bornTimestamp``, and nothing in the
bytes says which; the first 14 fields are the same in both, so only those are ever read.

Avro writes no names, and a record is the concatenation of its fields. So a schema with the
first fields only reads a record's front and stops, and a schema with other names for the same
types gives the values under those names.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import cache
from typing import Any, BinaryIO, Final, cast

import fastavro
from fastavro import parse_schema

from setl.resources import read_text

HEADER_FIELDS: Final = 9  # up to objectName
TAGGED_FIELDS: Final = 11  # up to tags
COMMON_FIELDS: Final = 14  # up to afterImages; bornTimestamp is not always there

# Names under which images are read here. fastavro gives every branch of the union as a plain
# dict, and in the published schema several branches have the same field names.
IMAGE_NAMES: Final[dict[str, dict[str, str]]] = {
    "Integer": {"value": "integer"},
    "Character": {"value": "character"},
    "Decimal": {"value": "decimal"},
    "Float": {"value": "float"},
    "TimestampWithTimeZone": {"value": "zoned"},
    "BinaryGeometry": {"value": "wkb"},
    "TextGeometry": {"value": "wkt"},
    "BinaryObject": {"value": "binary"},
    "TextObject": {"value": "text"},
}
"""Branch of an image's values → its members that have another name here."""

# fastavro declares its results as a union of everything that Avro has.
_schemaless_reader = cast(
    "Callable[[BinaryIO, Any, Any], Any]",
    fastavro.schemaless_reader,  # pyright: ignore[reportUnknownMemberType]
)

# What bytes that are no record raise inside fastavro, depending on where it stumbles.
MALFORMED: Final = (EOFError, LookupError, ValueError, TypeError, OverflowError, StopIteration)


def published_schema() -> list[dict[str, Any]]:
    """`schemas/Record.avsc` as it is: an array of 14 named types, ``Record`` last."""
    types: list[dict[str, Any]] = json.loads(read_text("schemas", "Record.avsc"))
    return types


@cache
def symbols(field: str) -> tuple[str, ...]:
    """The symbols of the enumeration that a field of a record is, or that its first member is."""
    declared = {f["name"]: f["type"] for f in published_schema()[-1]["fields"]}[field]
    enumeration = declared if "symbols" in declared else declared["fields"][0]["type"]
    return tuple(enumeration["symbols"])


def operation_byte(name: str) -> int:
    """The byte that an operation is in a record, which has fewer than 64 of them."""
    return 2 * symbols("operation").index(name)


def _parsed(fields: int) -> Any:
    """A schema for the first `fields` fields of a record, with image fields renamed."""
    *named, record = published_schema()
    known: dict[str, Any] = {}
    for declared in named:
        renamed = IMAGE_NAMES.get(declared["name"])
        if renamed:
            members = declared["fields"]
            declared["fields"] = [{**m, "name": renamed.get(m["name"], m["name"])} for m in members]
        parse_schema(declared, named_schemas=known)
    return parse_schema({**record, "fields": record["fields"][:fields]}, named_schemas=known)


_HEADER: Final = _parsed(HEADER_FIELDS)
_TAGGED: Final = _parsed(TAGGED_FIELDS)
_COMMON: Final = _parsed(COMMON_FIELDS)
_LONG: Final = parse_schema("long")


def read_front(value: bytes) -> Any:
    """The fields up to ``objectName``. Raises one of `MALFORMED`."""
    return _schemaless_reader(io.BytesIO(value), _HEADER, None)


def read_tagged(value: bytes) -> Any:
    """The fields up to ``tags``. Raises one of `MALFORMED`."""
    return _schemaless_reader(io.BytesIO(value), _TAGGED, None)


def read_common(value: bytes) -> Any:
    """The 14 fields that every record has. Raises one of `MALFORMED`."""
    return _schemaless_reader(io.BytesIO(value), _COMMON, None)


def read_whole(value: bytes) -> tuple[Any, int | None, int]:
    """All of a record, of either length. Raises one of `MALFORMED`.

    Returns:
        The 14 fields that every record has; ``bornTimestamp``, None if it is not there; and how
        many bytes are left behind the record.
    """
    stream = io.BytesIO(value)
    record, born = _schemaless_reader(stream, _COMMON, None), None
    if stream.tell() < len(value):
        born = _schemaless_reader(stream, _LONG, None)
    return record, born, len(value) - stream.tell()


def is_whole_record(value: bytes) -> bool:
    """Whether `value` is exactly one record, of either length, with nothing after it."""
    try:
        _, _, left = read_whole(value)
    except MALFORMED:
        return False
    return left == 0
