"""The conflict policy of a table, and when two row states are the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

from setl.model.change import ABSENT, Row, Value
from setl.model.schema import Column, Kind


class Winner(Enum):
    """Whose state of a row stays."""

    SOURCE = "source"
    TARGET = "target"
    BOTH = "both"  # they are equal


Age = Callable[[Value], Any]
"""How new a value of the column is, as something that compares; greater is newer."""


@dataclass(frozen=True, slots=True)
class Rules:
    """A policy, for the rows of one table.

    Attributes:
        from_home: whether the source is the home site.
        age: how new a value of the column is; None for the policy `home`.
        index: index of the column, for the policy `newest`.
    """

    from_home: bool
    age: Age | None = None
    index: int = -1

    def value(self, row: Row | None) -> Value:
        """What tells how new a row is."""
        return None if self.age is None or row is None else row[self.index]


def age_by(column: Column) -> Age:
    """The age by a value of the column; NULL is older than everything."""
    decimal = column.kind is Kind.DECIMAL

    def age(value: Value) -> tuple[bool, Any]:
        if value is None or value is ABSENT:
            return False, 0
        return True, Decimal(str(value)) if decimal else value

    return age


def same(one: Row | None, other: Row | None) -> bool:
    """Whether two states are equal in all columns that both of them mention."""
    if one is None or other is None:
        return one is other
    return one == other or all(map(_agree, one, other))


def _agree(one: Value, other: Value) -> bool:
    return one == other or one is ABSENT or other is ABSENT
