"""The error about rows that say nothing of columns that are to be written."""

from __future__ import annotations

from collections.abc import Sequence

from setl.errors import DataError


def unlogged_error(table: str, columns: Sequence[str]) -> DataError:
    """A change does not say what these columns hold, see `RowSchema.unlogged`.

    Args:
        table: ``schema.table`` of the source.
        columns: those that somebody needs.
    """
    return DataError(
        f"a change does not say what {', '.join(columns)} of its row holds",
        hint="Have all sessions of the source log whole rows (binlog_row_image='FULL'). A MariaDB"
        " from 11 on leaves generated columns out all the same: set `read: source` for the table,"
        " or leave the columns out with `exclude`, or have the target compute them",
        table=table,
    )
