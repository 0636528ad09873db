"""The error about rows that say nothing of columns that are to be written."""

from __future__ import annotations

from collections.abc import Sequence

from setl.errors import DataError


def unsaid(table: str, columns: Sequence[str]) -> DataError:
    """An update does not say what these columns hold, see `RowSchema.untold`.

    Args:
        table: ``schema.table`` of the source.
        columns: those that somebody needs.
    """
    return DataError(
        f"an update does not say what {', '.join(columns)} of its row holds",
        hint="A MariaDB from 11 on logs no generated column with an update, and a session with"
        " binlog_row_image=NOBLOB no text that it did not set. Set `read: source` for the table;"
        " or leave the columns out with `exclude`, or have the target compute them",
        table=table,
    )
