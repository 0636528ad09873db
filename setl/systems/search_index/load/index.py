"""Indexes: created where there is none, and completed with fields for the columns of a table.

Which field a column becomes says `setl.systems.search_index.mapping`. An index template of the
cluster counts more: the index is created empty, as the templates say, and then gets fields for the
columns that they do not mention, as long as their ``dynamic`` is neither false nor strict. The same
holds for an index that somebody created. Shards, replicas, analysers and other types of fields are
chosen in this way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from setl.errors import ConfigurationError
from setl.model.document import Geometry
from setl.model.schema import Column
from setl.systems.search_index.client import SearchClient
from setl.systems.search_index.errors import BAD_REQUEST, NOT_FOUND, AnswerError, error_of
from setl.systems.search_index.field_names import refuse_names
from setl.systems.search_index.mapping import (
    GC_DELETES,
    fields_of,
    missing_fields,
    takes_new_fields,
)


def ensure_index(
    client: SearchClient,
    index: str,
    columns: Sequence[Column],
    geometry: Geometry = "base64",
) -> dict[str, Any]:
    """Create an index for rows with these columns, or add the fields that one lacks.

    `index` may be an alias. Idempotent, and safe when several tasks do it at once: what
    another one has done meanwhile is taken as it is. After a crash in the middle it goes on
    where it was. The client's errors pass through.

    Args:
        client: of the cluster.
        index: the index.
        columns: what its documents hold.
        geometry: how spatial values are written.

    Returns:
        What the cluster said of the index, before fields were added; by name, since `index` may be
        an alias.

    Raises:
        ConfigurationError: the name is none that an index can have, or it has too many fields; or a
            column has a name that none of its fields can have.
    """
    refuse_names((column.name for column in columns), index)
    try:
        existing = client.mappings(index)
    except AnswerError as error:
        if error.status != NOT_FOUND:
            raise
        _create(client, index)
        existing = client.mappings(index)
    wanted = fields_of(columns, geometry)
    missing: dict[str, Any] = {}
    known = False
    for description in existing.values():
        mapping = description.get("mappings", {})
        properties = mapping.get("properties", {})
        lacking = missing_fields(properties, wanted)
        refuse_names(lacking, index, properties)
        known = known or len(lacking) < len(wanted)
        if takes_new_fields(mapping):
            missing.update(lacking)
    if missing and not known:
        # Nobody has written these rows here before.
        _remember_deletes(client, index)
    if missing:
        _add_fields(client, index, missing)
    return existing


def _create(client: SearchClient, index: str) -> None:
    try:
        client.create(index)
    except AnswerError as error:
        if error.type == "resource_already_exists_exception":
            return  # somebody else was faster
        if error.status != BAD_REQUEST:
            raise
        raise ConfigurationError(
            _said(error),
            hint="Create the index by hand, or send the table to another name with `to`",
            index=index,
        ) from error


def _remember_deletes(client: SearchClient, index: str) -> None:
    """Set ``gc_deletes`` where neither a template nor a person has."""
    for name, described in client.settings(index).items():
        if "gc_deletes" not in described["settings"].get("index", {}):
            client.put_settings(name, {"index": {"gc_deletes": GC_DELETES}})


def _add_fields(client: SearchClient, index: str, fields: dict[str, Any]) -> None:
    try:
        client.put_mapping(index, properties=fields)
    except AnswerError as error:
        message = _said(error)
        if "Limit of total fields" in message:
            raise ConfigurationError(
                message,
                hint="Raise index.mapping.total_fields.limit, or leave columns out",
                index=index,
            ) from error
        # A document that came first has given one of them another type by its value. Whether
        # rows fit that type is seen when they are written.
        if error.type != "illegal_argument_exception":
            raise


def _said(error: AnswerError) -> str:
    reason = error_of(error.body)
    return f"{reason.get('type')}: {reason.get('reason')}" if reason else str(error.body)
