"""Documents that are made of the rows of several tables, such as orders with their items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NestedTable:
    """A table whose rows documents show under one of their fields. Picklable.

    Attributes:
        field: the document's field.
        schema: schema of the nested table.
        table: the nested table.
        on: (its column, key column of the document's table), by the latter's name.
        include: the only columns to show; None for all.
        exclude: columns not to show.
    """

    field: str
    schema: str
    table: str
    on: tuple[tuple[str, str], ...]
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()

    def shown(self, names: Sequence[str]) -> list[int]:
        """Which of the nested table's columns are shown, as indexes among `names`."""
        include = None if self.include is None else {name.lower() for name in self.include}
        exclude = {name.lower() for name in self.exclude}
        return [
            i
            for i, name in enumerate(names)
            if (include is None or name.lower() in include) and name.lower() not in exclude
        ]


@dataclass(frozen=True, slots=True)
class Documents:
    """Documents that are made of the rows of several tables. Picklable.

    Attributes:
        schema: schema of the table that has a row for each document.
        table: this table.
        nested: the tables whose rows its documents show as well, at least one.
    """

    schema: str
    table: str
    nested: tuple[NestedTable, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """The key columns of the documents' table, by name: the order of keys in `on`."""
        return tuple(column for _, column in self.nested[0].on)
