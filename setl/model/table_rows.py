"""Rows written, by table and kind: for people, within a bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MOST_TABLES = 500
"""Tables that are counted one by one."""

OTHERS = "(others)"
"""Counts the tables beyond these together."""


@dataclass(frozen=True, slots=True)
class TableRows:
    """What was written to one table or index.

    Attributes:
        upserts: rows or documents written.
        deletes: deletes sent.
        contested: changes of rows that both sites may write, of which some may have lost.
    """

    upserts: int = 0
    deletes: int = 0
    contested: int = 0

    def __add__(self, other: TableRows) -> TableRows:
        return TableRows(
            self.upserts + other.upserts,
            self.deletes + other.deletes,
            self.contested + other.contested,
        )


ByTable = Mapping[str, TableRows]
"""``schema.table`` or index → what was written to it."""


def added(first: ByTable, second: ByTable) -> ByTable:
    """Both together; tables that are new when there are too many already count as others."""
    if not second:
        return first
    both = dict(first)
    for name, rows in second.items():
        known = name if name in both or len(both) < MOST_TABLES else OTHERS
        both[known] = both.get(known, TableRows()) + rows
    return both
