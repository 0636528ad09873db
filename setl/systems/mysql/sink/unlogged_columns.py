"""Rows that say nothing of columns which they are to fill, see `RowSchema.unlogged`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pymysql.connections import Connection

from setl.errors import DataError
from setl.load.deadletters.storing import Faults
from setl.model.change import TargetChanges
from setl.model.schema import RowSchema
from setl.model.unlogged_columns import unlogged_error
from setl.systems.mysql.load.targets import Targets


def logged_columns_only(
    targets: Targets, connection: Connection[Any], changes: Sequence[TargetChanges], faults: Faults
) -> list[TargetChanges]:
    """The changes without such rows, which are faults.

    Nothing is missing from a row if the target computes the columns, and as the source has.

    Raises:
        DataError: there is one, and faults are not put aside.
        SetlError: as `Targets.described`.
    """
    reported: list[TargetChanges] = []
    for change in changes:
        if change.unlogged and change.upserts:
            error = _error_about(targets, connection, change)
            if error is not None and change.keyless:
                raise error()
            if error is not None:
                for number in range(len(change.upserts)):
                    faults.upsert(change, number, error())
                reported.append(replace(change, upserts=[], upsert_versions=[]))
                continue
        reported.append(change)
    return reported


def _error_about(
    targets: Targets, connection: Connection[Any], change: TargetChanges
) -> Callable[[], DataError] | None:
    """Makes an error for each row; None if the rows can be written."""
    described = targets.described(connection, change.target)
    if needed := unfilled(change, described):
        return partial(unlogged_error, change.source, needed)
    computed = {c.name.lower() for c in described.columns if c.generated and c.materialized}
    silent = [name for name in change.unlogged if name.lower() in computed]
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
    names = [name for name in changes.unlogged if name.lower() not in given]
    return [name for name in names if not there.get(name.lower(), True)]
