"""Which of two states of a row wins. Pure: both sites decide alike about the same two states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple

from setl.model.change import ABSENT, Row, Value
from setl.model.schema import Column, Kind


class Winner(Enum):
    """Whose state of a row stays."""

    SOURCE = "source"
    TARGET = "target"
    BOTH = "both"  # they are equal


class State(NamedTuple):
    """What one site holds under a key.

    Attributes:
        row: the row, None if there is none.
        deleted: the row that was deleted, if there is none and that is known.
    """

    row: Row | None
    deleted: Row | None = None


Age = Callable[[Row], Any]
"""How new a row is, as something that compares; greater is newer."""


@dataclass(frozen=True, slots=True)
class Rules:
    """A policy, for the rows of one table.

    Attributes:
        from_home: whether the source is the home site.
        age: how new a row is; None for the policy `home`.
    """

    from_home: bool
    age: Age | None = None


def age_by(place: int, column: Column) -> Age:
    """The age of rows by the value at `place`; NULL is older than everything."""
    decimal = column.kind is Kind.DECIMAL

    def age(row: Row) -> tuple[bool, Any]:
        value = row[place]
        if value is None or value is ABSENT:
            return False, 0
        return True, Decimal(str(value)) if decimal else value

    return age


def resolve(rules: Rules, incoming: State, current: State) -> Winner:
    """Decide between what the source says and what the target holds.

    `home`: the home site's state, a deleted row included. `newest`: the newer row; of two
    equally new ones the home site's. A deleted row counts with the age that it had, and wins
    over a row that is as new; where nothing is known of it, any row wins over it.
    """
    if same(incoming.row, current.row):
        return Winner.BOTH
    home = Winner.SOURCE if rules.from_home else Winner.TARGET
    if rules.age is None:
        return home
    theirs, ours = _rank(rules.age, incoming), _rank(rules.age, current)
    if theirs == ours:
        return home
    return Winner.SOURCE if theirs > ours else Winner.TARGET


def _rank(age: Age, state: State) -> tuple[Any, ...]:
    if state.row is not None:
        return True, age(state.row), False
    if state.deleted is not None:
        return True, age(state.deleted), True
    return (False,)


def same(one: Row | None, other: Row | None) -> bool:
    """Whether two states are equal in all columns that both of them mention."""
    if one is None or other is None:
        return one is other
    return one == other or all(map(_agree, one, other))


def _agree(one: Value, other: Value) -> bool:
    return one == other or one is ABSENT or other is ABSENT
