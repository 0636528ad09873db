"""Columns of which an insert or an update of MariaDB says nothing.

MariaDB from 11 on (seen with 11.8.9) logs neither image of an update with its generated columns,
also with ``binlog_row_image=FULL``. Inserts have them, but not those of a REPLACE that removed a
row. Nobody can tell them from a BLOB that a session with NOBLOB did not set, nor from what an
INSERT or a REPLACE set to its default. So what is not there is not taken for unchanged: the rows
are rows of a table without these columns, and whoever writes them has to need none of these.

With MINIMAL the image before holds the key alone, and what neither image has is unchanged. That is
as sure as the table has no generated columns; `setl check` refuses MINIMAL.
"""

from __future__ import annotations

from dataclasses import replace

from setl.model.change import DecodedRows
from setl.model.schema import RowSchema


def untold_places(schema: RowSchema, before: int | None, after: int) -> int:
    """The columns of which an insert or an update says nothing, a bit for each.

    None where the key alone stands before an update, as with MINIMAL.

    Args:
        schema: the columns that statements can name.
        before: a bit for each column that the images before have; None for an insert.
        after: likewise.
    """
    key = sum(1 << i for i in schema.key)
    missing = ((1 << len(schema.columns)) - 1) & ~(after | (before or 0))
    if missing & key or (before is not None and not before & ~key):
        return 0
    return missing


def without_doubles(schema: RowSchema, before: int, after: int) -> bool:
    """Whether the images after an update lack only what the images before them say already.

    That is ``binlog_row_image=FULL_NODUP``, of MariaDB from 11.4 on: the image before is whole, and
    the one behind it has what was written, of a REPLACE all columns. With MINIMAL the image
    before has the key alone, with NOBLOB both have the same columns. Tables without a key are
    logged whole.

    Args:
        schema: as for `untold_places`.
        before: likewise.
        after: likewise.
    """
    key = sum(1 << i for i in schema.key)
    return bool(key and before & ~key) and before & key == key and not after & ~before


def told_alone(rows: DecodedRows, schema: RowSchema, untold: int) -> DecodedRows:
    """The rows without columns of which they say nothing.

    Args:
        rows: of an insert or an update.
        schema: as `without_untold` makes it.
        untold: see `untold_places`.
    """
    there = [i for i in range(len(rows.schema.columns)) if not untold >> i & 1]
    images = [
        (
            None if before is None else tuple([before[i] for i in there]),
            None if after is None else tuple([after[i] for i in there]),
        )
        for before, after in rows.images
    ]
    return DecodedRows(schema, rows.op, images)


def without_untold(schema: RowSchema, untold: int) -> RowSchema:
    """The columns that are told; none of the key is among the others."""
    there = [i for i in range(len(schema.columns)) if not untold >> i & 1]
    places = {i: n for n, i in enumerate(there)}
    return replace(
        schema,
        columns=tuple(schema.columns[i] for i in there),
        key=tuple(places[i] for i in schema.key),
        untold=tuple(c.name for i, c in enumerate(schema.columns) if untold >> i & 1),
    )
