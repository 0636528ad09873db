"""The table mappings of a pipeline with their defaults put in, and files without secrets. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import yaml

from setl.channel.fields.endpoints import takes_documents
from setl.channel.text.references import without_secrets


@dataclass(frozen=True, slots=True)
class MappedTable:
    """One table mapping.

    Attributes:
        source: the source tables.
        target: where they go, the default in words.
        options: what else the file says of it, as text.
    """

    source: str
    target: str
    options: str


def mapped_tables(definition: Mapping[str, Any], pipeline: str) -> list[MappedTable]:
    """The table mappings of a pipeline, in the file's order; what cannot be read is left out."""
    found: list[MappedTable] = []
    for raw in _mappings(definition.get("pipelines")):
        if str(raw.get("name")) != pipeline:
            continue
        into_index = takes_documents(_mapping(raw.get("target")))
        default = "an index with the table's name" if into_index else "same schema and table"
        for table in _mappings(raw.get("tables")):
            others = {k: v for k, v in table.items() if k not in ("from", "to")}
            found.append(
                MappedTable(
                    str(table.get("from", "?")),
                    str(table.get("to") or default),
                    _flow(others) if others else "",
                )
            )
    return found


def as_text(definition: Mapping[str, Any]) -> str:
    """A definition as the YAML of its file; literal secrets are hidden, references are not."""
    return yaml.safe_dump(
        without_secrets(definition), sort_keys=False, allow_unicode=True, width=100
    )


def _flow(value: Mapping[str, Any]) -> str:
    text = yaml.safe_dump(
        dict(value), sort_keys=False, allow_unicode=True, default_flow_style=True, width=4096
    )
    return text.strip().removeprefix("{").removesuffix("}")


def _mappings(value: object) -> Sequence[Mapping[str, Any]]:
    if not isinstance(value, list):
        return ()
    items = cast("list[Any]", value)
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, Mapping)]


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
