"""Names of columns that an index cannot have as fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from setl.errors import ConfigurationError
from setl.systems.search_index.mapping import mapped_field

# Members of a document that Elasticsearch or OpenSearch keeps for itself.
_RESERVED: Final = frozenset({
    "_doc_count", "_feature", "_field_names", "_id", "_ignored", "_index", "_nested_path",
    "_routing", "_seq_no", "_source", "_tier", "_tsid", "_version",
})  # fmt: skip


class NameFault(NamedTuple):
    """A name that an index cannot have.

    Attributes:
        name: the name.
        reason: how a sentence about the column ends.
    """

    name: str
    reason: str


def faulty_names(
    names: Sequence[str], there: Mapping[str, Any] | None = None
) -> Iterator[NameFault]:
    """The names that an index cannot have beside each other, or beside the fields that it has.

    Args:
        names: of columns.
        there: the properties of the index's mapping.
    """
    for name in names:
        if name in _RESERVED:
            yield NameFault(name, "has a name that indexes keep for themselves")
        elif not all(part.strip() for part in name.split(".")):
            yield NameFault(name, "has a name that no field can have")
        elif any(other.startswith(f"{name}.") for other in names) or _is_in_value(
            name, there or {}
        ):
            yield NameFault(name, "would be a field and an object at once")


def refuse_names(names: Iterable[str], index: str, there: Mapping[str, Any] | None = None) -> None:
    """Refuse columns that an index cannot have; see `faulty_names`.

    Raises:
        ConfigurationError: there is one; names index and column.
    """
    for fault in faulty_names(tuple(names), there):
        raise ConfigurationError(
            f"the column {fault.name!r} {fault.reason}",
            hint=hint(fault.name),
            index=index,
        )


def hint(name: str, entry: int | None = None) -> str:
    """What to do about such a name.

    Args:
        name: the name.
        entry: the position of the table's entry in the channel file, None if it is not known.
    """
    position = "the table's entry" if entry is None else f"tables[{entry}]"
    new = "_".join(filter(None, (part.strip() for part in name.lstrip("_").split("."))))
    shown = f"`columns: {{{new or 'other'}: {_written(name)}}}`"
    return (
        f"Rename it with `columns` in {position}, such as {shown}, or leave it out with `exclude`"
    )


def _written(name: str) -> str:
    return name if name.replace("_", "a").isalnum() else f'"`{name}`"'


def _is_in_value(name: str, there: Mapping[str, Any]) -> bool:
    """Whether the index has a field where it would need an object with such a field."""
    parts = name.split(".")
    parents = (mapped_field(dict(there), ".".join(parts[:n])) for n in range(1, len(parts)))
    return any(parent is not None and "properties" not in parent for parent in parents)
