"""Rows that say nothing of columns which they are to fill, see `RowSchema.untold`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pymysql.connections import Connection

from setl.load.deadletters.keeping import Faults
from setl.model.change import TargetChanges
from setl.model.schema import RowSchema
from setl.model.untold import unsaid
from setl.systems.mysql.load.targets import Targets


def told_alone(
    targets: Targets, connection: Connection[Any], changes: Sequence[TargetChanges], faults: Faults
) -> list[TargetChanges]:
    """The changes without such rows, which are faults.

    Nothing is missing from a row if the target computes the columns.

    Raises:
        DataError: there is one, and faults are not put aside.
        SetlError: as `Targets.described`.
    """
    told: list[TargetChanges] = []
    for change in changes:
        if change.untold and change.upserts:
            needed = unfilled(change, targets.described(connection, change.target))
            for number in range(len(change.upserts) if needed else 0):
                faults.upsert(change, number, unsaid(change.source, needed))
            if needed:
                told.append(replace(change, upserts=[], upsert_versions=[]))
                continue
        told.append(change)
    return told


def unfilled(changes: TargetChanges, target: RowSchema) -> list[str]:
    """The columns that rows say nothing of and that the table does not compute."""
    given = {c.name.lower() for c in changes.columns}
    there = {c.name.lower(): c.generated for c in target.columns}
    names = [name for name in changes.untold if name.lower() not in given]
    return [name for name in names if not there.get(name.lower(), True)]
