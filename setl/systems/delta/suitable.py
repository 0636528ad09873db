"""Which tables that others have made are written to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from setl.errors import ConfigurationError
from setl.systems.delta.location import Folder

if TYPE_CHECKING:
    from deltalake import DeltaTable

_FEATURES: Final = frozenset({"timestampNtz", "variantType", "appendOnly", "invariants"})
"""Features that a table may have. The others ask something of each writer; of these, the first two
say no more than that there is such a type, and the others need a property or a rule to act.
delta-rs adds all of them when it sets any property of a table that has one feature already."""

_VARIANT: Final = re.compile(r'"(type|elementType|keyType|valueType)":"variant"')

_ACTING: Final = {
    "delta.appendOnly": "rows of it cannot be replaced",
    "delta.enableChangeDataFeed": "each commit would have to describe its changes once more",
    "delta.enableDeletionVectors": "its files have rows that are not there",
    "delta.enableRowTracking": "each row would have to keep its number",
}
_OWN: Final = "Give the rows another table with `to`, and have it made with `create: true`"


def why_unsuitable(table: DeltaTable) -> str:
    """Why rows are not written to a table; "" if they are."""
    metadata, protocol = table.metadata(), table.protocol()
    if metadata.partition_columns:
        return f"it is partitioned by {', '.join(metadata.partition_columns)}"
    for name, why in _ACTING.items():
        if str(metadata.configuration.get(name, "")).lower() == "true":
            return f"{name} is set: {why}"
    if protocol.min_writer_version <= 2:
        features: set[str] = set()
    elif protocol.min_writer_version == 7:
        features = {*(protocol.writer_features or ()), *(protocol.reader_features or ())}
    else:
        return f"its protocol asks for a writer of version {protocol.min_writer_version}"
    if others := sorted(features - _FEATURES):
        return f"it has the features {', '.join(others)}"
    return _why_unsuitable_columns(table)


def _why_unsuitable_columns(table: DeltaTable) -> str:
    schema = table.schema()
    if _VARIANT.search(schema.to_json()):
        return "it has values of the type variant"
    for column in schema.fields:
        if "delta.invariants" in column.metadata or "delta.generationExpression" in column.metadata:
            return f"its column {column.name} has a rule"
    return ""


def refuse_unsuitable(table: DeltaTable, folder: Folder) -> None:
    """ConfigurationError if rows are not written to a table."""
    if why := why_unsuitable(table):
        raise ConfigurationError(
            f"setl does not write to this Delta table: {why}", hint=_OWN, server=folder.uri
        )
