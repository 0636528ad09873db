"""Divides the changes of one task into transactions.

One transaction would be simplest, but then a table that the target writes slowly holds up what
stands beside it: rows are seen when their transaction ends. So a table with many rows gets a
transaction of its own, after those that are done soon. Tables of a group stay together, since a
reader must never see one ahead of another; and few rows are not worth a transaction of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from setl.model.change import TargetChanges

FEW_ROWS: Final = 500
"""Rows of one table, or table group, up to which it shares a transaction with others."""


def transactions(
    changes: Sequence[TargetChanges], few: int = FEW_ROWS
) -> list[list[TargetChanges]]:
    """Changes by transaction, what is done soonest first; within one in the order given.

    Args:
        changes: of one task, each with at least one row.
        few: rows up to which a table or group shares a transaction.
    """
    units: dict[object, list[TargetChanges]] = {}
    for change in changes:
        units.setdefault(change.group or change.target, []).append(change)
    ordered = sorted(units.values(), key=_rows)
    shared = [change for unit in ordered if _rows(unit) <= few for change in unit]
    alone = [unit for unit in ordered if _rows(unit) > few]
    return [shared, *alone] if shared else alone


def _rows(unit: Sequence[TargetChanges]) -> int:
    return sum(len(change.upserts) + len(change.deletes) for change in unit)
