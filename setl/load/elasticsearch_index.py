"""Indexes that setl creates, and what it makes of the columns of a table in them.

The mapping decides what can be searched; the document's ``_source`` keeps every value exactly as
`setl.load.elasticsearch_documents` writes it, whatever the mapping. Where these defaults do not
suit, create the index before the first change arrives: setl then adds fields for columns that
the mapping lacks, if the index lets it (``dynamic`` is neither false nor strict), and no more.

============================  =======================================================
INTEGER, YEAR                 ``long``; unsigned ``unsigned_long``; BIT too
FLOAT                         ``double``
DECIMAL                       ``double``: ranges and sums work, beyond 15 digits nearly
TEXT                          ``text``, with ``.keyword`` for the first 8,191 characters
ENUM, SET, TIME               ``keyword``
DATE, DATETIME, TIMESTAMP     ``date``
BINARY, GEOMETRY              ``binary``: kept, not searched
JSON                          ``object`` that is kept, not searched: fields of rows need not
                              agree in their types, and one that does not would be refused
============================  =======================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elasticsearch import BadRequestError, Elasticsearch, NotFoundError

from setl.elastic.client import translate
from setl.errors import ConfigurationError
from setl.model.schema import Column, Kind

_DATE_TIME = {"type": "date", "format": "strict_date_optional_time"}
_KEYWORD = {"type": "keyword"}
_BINARY = {"type": "binary"}

# A keyword longer than 32,766 bytes is refused; 8,191 characters never are.
_TEXT = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 8191}}}

_FIELDS: dict[Kind, dict[str, Any]] = {
    Kind.INTEGER: {"type": "long"},
    Kind.YEAR: {"type": "long"},
    Kind.BIT: {"type": "unsigned_long"},
    Kind.FLOAT: {"type": "double"},
    Kind.DECIMAL: {"type": "double"},
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

# A deleted document's version is remembered this long. By default it is a minute, after which a
# stale leader's late write, which the version is there to stop, would bring the document back.
_SETTINGS = {"index": {"gc_deletes": "1h"}}


def field_of(column: Column) -> dict[str, Any]:
    """The mapping of a column's field."""
    if column.kind is Kind.INTEGER and column.unsigned:
        return {"type": "unsigned_long"}
    return _FIELDS[column.kind]


def ensure_index(client: Elasticsearch, index: str, columns: Sequence[Column]) -> None:
    """Create an index for rows with these columns, or add the fields that one lacks.

    `index` may be an alias. Idempotent, and safe when several tasks do it at once: what
    another one has done meanwhile is taken as it is. The client's errors pass through.

    Raises:
        ConfigurationError: the name is none that an index can have.
    """
    try:
        existing = client.indices.get_mapping(index=index)
    except NotFoundError:
        if _create(client, index, columns):
            return
        existing = client.indices.get_mapping(index=index)
    missing: dict[str, Any] = {}
    for description in existing.values():
        mapping = description.get("mappings", {})
        # Spelled "true", true or not at all when fields may be added.
        if str(mapping.get("dynamic", "true")).lower() not in {"true", "runtime"}:
            continue
        properties = mapping.get("properties", {})
        missing.update({c.name: field_of(c) for c in columns if not _has(properties, c.name)})
    if missing:
        _add_fields(client, index, missing)


def _create(client: Elasticsearch, index: str, columns: Sequence[Column]) -> bool:
    """Whether the index was created; if not, somebody else was faster."""
    properties = {c.name: field_of(c) for c in columns}
    try:
        client.indices.create(
            index=index,
            settings=_SETTINGS,
            mappings={"dynamic": True, "properties": properties},
        )
    except BadRequestError as error:
        if error.error == "resource_already_exists_exception":
            return False
        raise ConfigurationError(
            translate(error).message,
            hint="Create the index by hand, or send the table to another name with `to`",
            index=index,
        ) from error
    return True


def _add_fields(client: Elasticsearch, index: str, fields: dict[str, Any]) -> None:
    try:
        client.indices.put_mapping(index=index, properties=fields)
    except BadRequestError as error:
        # A document that came first has given one of them another type by its value. Whether
        # rows fit that type is seen when they are written.
        if error.error != "illegal_argument_exception":
            raise


def _has(properties: dict[str, Any], name: str) -> bool:
    """Whether a mapping has a field; a dot in its name makes it a field of an object."""
    head, dot, rest = name.partition(".")
    found = properties.get(head)
    if found is None or not dot:
        return found is not None
    return _has(found.get("properties", {}), rest)
