"""One entry of `tables`, compiled: which tables it means, and what it calls its targets."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

from setl.channel.file import Pipeline, TableMapping
from setl.channel.names.document_ids import IdTemplate, IdTemplateError, parse_id
from setl.channel.names.patterns import (
    PatternError,
    TablePattern,
    TargetPattern,
    parse_from,
    parse_index_target,
    parse_table_target,
)
from setl.errors import ConfigurationError

# What decides to which row of a target a change goes, and what stands in it.
_DECIDES: Final = {
    "to", "columns", "include", "exclude", "where", "key", "nested", "processor", "id", "routing",
    "zero_dates", "geometry",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RoutedTable:
    """One entry of a pipeline's `tables`, compiled.

    Attributes:
        index: its position in `tables`.
        pattern: its `from`.
        target: its `to`; None for the default.
        mapping: the entry.
        id: its `id`; None for the default.
        distinguishes_types: see `IdsOf`.
        mapped_by: a digest of the entry, see `_mapped_by`.
    """

    index: int
    pattern: TablePattern
    target: TargetPattern | None
    mapping: TableMapping
    id: IdTemplate | None = None
    distinguishes_types: bool = True
    mapped_by: str = ""

    @property
    def name(self) -> str:
        """Tells it from other entries of the file, whatever their order: its `from` and `to`."""
        return f"{self.mapping.from_} -> {self.mapping.to or ''}".rstrip()

    @property
    def has_unique_ids(self) -> bool:
        """Whether the file says that keys are unique over all tables of the entry."""
        return self.id is not None and not self.id.names_table


def compiled(index: int, pipeline: Pipeline) -> RoutedTable:
    """An entry of a pipeline by its position.

    Raises:
        ConfigurationError: a name or a template in it makes no sense.
    """
    mapping = pipeline.tables[index]
    try:
        besides = tuple(parse_from(text) for text in mapping.except_)
        pattern = replace(parse_from(mapping.from_), besides=besides)
        target = None
        if mapping.to is not None:
            documents = pipeline.target.holds_documents
            parse = parse_index_target if documents else parse_table_target
            target = parse(mapping.to, pattern)
        template = parse_id(mapping.id) if mapping.id is not None else None
    except PatternError as error:
        raise ConfigurationError(f"tables[{index}]: `from`, `except` or `to` {error}") from error
    except IdTemplateError as error:
        raise ConfigurationError(f"tables[{index}].id {error}") from error
    shows = pipeline.source.has_signs
    return RoutedTable(index, pattern, target, mapping, template, shows, _mapped_by(mapping))


def _mapped_by(mapping: TableMapping) -> str:
    """A digest of an entry; another one if rows may go to other places, or become other rows.

    The same in each release that knows the entry's fields: those that are left out, and new ones
    with it, do not count.
    """
    decides = mapping.model_dump(mode="json", include=_DECIDES, exclude_defaults=True)
    return sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:16]
