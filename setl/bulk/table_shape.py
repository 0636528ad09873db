"""How rows of a table are compared with what goes into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from setl.bulk.comparing import Form, digest, forms, key_text, key_values
from setl.bulk.pairs import Pair
from setl.errors import ConfigurationError
from setl.model.change import Row
from setl.model.schema import Column, RowSchema


@dataclass(frozen=True, slots=True)
class TableShape:
    """How rows of a target that holds rows are compared; see `setl.bulk.pairs.Shape`.

    Attributes:
        columns: the target table's own columns, of those that are compared.
        key: indexes of the key columns in `columns`; empty if rows are distinguished by all
            columns.
        into: see `setl.bulk.comparing.forms`.
    """

    columns: tuple[Column, ...]
    key: tuple[int, ...]
    into: tuple[Form, ...]

    @classmethod
    def build(cls, table: RowSchema, names: Sequence[str], key: Sequence[str]) -> TableShape:
        """The shape for the named columns of a target table.

        Raises:
            ConfigurationError: the table lacks some of them; says which.
        """
        indexes = {name.lower(): i for i, name in enumerate(table.names)}
        missing = [name for name in names if name.lower() not in indexes]
        if missing:
            raise ConfigurationError(
                f"the target table has no column {', '.join(missing)}",
                hint=f"Add what is missing; its columns are {', '.join(table.names)}",
                table=table.name,
            )
        return cls.of_columns([table.columns[indexes[name.lower()]] for name in names], key, names)

    @classmethod
    def of_columns(
        cls, columns: Sequence[Column], key: Sequence[str], names: Sequence[str] = ()
    ) -> TableShape:
        """The shape for these columns; `key` names some of them, by `names` if it is given."""
        known = list(names) or [column.name for column in columns]
        indexes = tuple(known.index(name) for name in key)
        return cls(tuple(columns), indexes, forms(columns))

    @property
    def names(self) -> tuple[str, ...]:
        """See `Shape.names`."""
        return tuple(column.name for column in self.columns)

    def pairs(self, rows: Sequence[Row]) -> list[Pair]:
        """See `Shape.pairs`."""
        into, key = self.into, self.key
        found: list[Pair] = []
        for row in rows:
            compared = [
                None if value is None else form(value)
                for form, value in zip(into, row, strict=True)
            ]
            # What is without a key may be long, and is there often.
            own = key_text(tuple(compared[i] for i in key)) if key else digest(compared).hex()
            found.append(Pair(own, None, compared))
        return found

    def of_source(self, columns: Sequence[Column]) -> TableShape:  # noqa: ARG002
        """See `Shape.of_source`; values are compared in the form of the target's columns."""
        return self

    def source_key(self, key: str, lookup: str | None) -> Row | None:  # noqa: ARG002
        """See `Shape.source_key`; key values pass from source to target as they are."""
        return key_values(key) if self.key else None

    def routing(self, key: str) -> None:
        """See `Shape.routing`; rows are not routed."""
