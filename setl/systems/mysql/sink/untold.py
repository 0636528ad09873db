"""Rows that say nothing of columns which they are to fill, see `RowSchema.untold`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pymysql.connections import Connection

from setl.errors import DataError
from setl.load.deadletters.keeping import Faults
from setl.model.change import TargetChanges
from setl.model.schema import RowSchema
from setl.model.untold import unsaid
from setl.systems.mysql.load.targets import Targets


def told_alone(
    targets: Targets, connection: Connection[Any], changes: Sequence[TargetChanges], faults: Faults
) -> list[TargetChanges]:
    """The changes without such rows, which are faults.

    Nothing is missing from a row if the target computes the columns, and as the source has.

    Raises:
        DataError: there is one, and faults are not put aside.
        SetlError: as `Targets.described`.
    """
    told: list[TargetChanges] = []
    for change in changes:
        if change.untold and change.upserts:
            error = _error_about(targets, connection, change)
            if error is not None and change.keyless:
                raise error()
            if error is not None:
                for number in range(len(change.upserts)):
                    faults.upsert(change, number, error())
                told.append(replace(change, upserts=[], upsert_versions=[]))
                continue
        told.append(change)
    return told


def _error_about(
    targets: Targets, connection: Connection[Any], change: TargetChanges
) -> Callable[[], DataError] | None:
    """Makes an error for each row; None if the rows can be written."""
    described = targets.described(connection, change.target)
    if needed := unfilled(change, described):
        return partial(unsaid, change.source, needed)
    computed = {c.name.lower() for c in described.columns if c.generated and c.materialized}
    silent = [name for name in change.untold if name.lower() in computed]
    if not silent:
        return None
    by_session = targets.by_session(connection, change.target)
    reasons = {name: by_session[name.lower()] for name in silent if name.lower() in by_session}
    if not reasons:
        return None
    (reason, *_) = reasons.values()
    return partial(
        DataError,
        f"a change does not say what {', '.join(reasons)} of its row holds, and what the target"
        f" computes depends on {reason} of the session that has written the row",
        hint="Set `read: source` for the table. A MariaDB from 11 on logs no generated columns with"
        " an update; other servers do, with binlog_row_image='FULL'",
        table=change.source,
    )


def unfilled(changes: TargetChanges, target: RowSchema) -> list[str]:
    """The columns that rows say nothing of and that the table does not compute."""
    given = {c.name.lower() for c in changes.columns}
    there = {c.name.lower(): c.generated for c in target.columns}
    names = [name for name in changes.untold if name.lower() not in given]
    return [name for name in names if not there.get(name.lower(), True)]
