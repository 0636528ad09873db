"""Columns of which an insert or an update of MariaDB says nothing.

MariaDB from 11 on (seen with 11.8.9) logs neither image of an update with its generated columns,
also with ``binlog_row_image=FULL``. Inserts have them, but not those of a REPLACE that removed a
row. Nobody can tell them from a BLOB that a session with NOBLOB did not set, nor from what an
INSERT or a REPLACE set to its default. So what is not there is not taken for unchanged: the rows
are rows of a table without these columns, and whoever writes them has to need none of these.

With MINIMAL the image before holds the key alone, and what neither image has is unchanged, but for
generated columns. Nothing in TABLE_MAP says which these are, so the source is asked when a table
comes up. A column that was generated when a row was logged, and is a plain one by then, is taken
for unchanged; `setl check` refuses MINIMAL.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

from setl.model.change import DecodedRows
from setl.model.schema import RowSchema

LAST_WHOLE: Final = 10
"""The last major version of MariaDB of which images are known to have generated columns."""

Generated = Callable[[str, str], Collection[str]]
"""The generated columns that a table, by schema and name, has at the source now."""


def unlogged_columns_mask(
    schema: RowSchema, before: int | None, after: int, generated: Collection[str] = ()
) -> int:
    """The columns of which an insert or an update says nothing, a bit for each.

    Those that are generated alone where the key alone stands before an update, as with MINIMAL.

    Args:
        schema: the columns that statements can name.
        before: a bit for each column that the images before have; None for an insert.
        after: likewise.
        generated: columns that are generated.
    """
    key = sum(1 << i for i in schema.key)
    missing = ((1 << len(schema.columns)) - 1) & ~(after | (before or 0))
    if missing & key:
        return 0
    if before is not None and not before & ~key:
        return missing & sum(1 << i for i, c in enumerate(schema.columns) if c.name in generated)
    return missing


def without_doubles(schema: RowSchema, before: int, after: int) -> bool:
    """Whether the images after an update lack only what the images before them say already.

    That is ``binlog_row_image=FULL_NODUP``, of MariaDB from 11.4 on: the image before is whole, and
    the one behind it has what was written, of a REPLACE all columns. With MINIMAL the image
    before has the key alone, with NOBLOB both have the same columns. Tables without a key are
    logged whole.

    Args:
        schema: as for `unlogged_columns_mask`.
        before: likewise.
        after: likewise.
    """
    key = sum(1 << i for i in schema.key)
    return bool(key and before & ~key) and before & key == key and not after & ~before


def logged_columns_only(rows: DecodedRows, schema: RowSchema, unlogged: int) -> DecodedRows:
    """The rows without columns of which they say nothing.

    Args:
        rows: of an insert or an update.
        schema: as `without_unlogged` makes it.
        unlogged: see `unlogged_columns_mask`.
    """
    there = [i for i in range(len(rows.schema.columns)) if not unlogged >> i & 1]
    images = [
        (
            None if before is None else tuple([before[i] for i in there]),
            None if after is None else tuple([after[i] for i in there]),
        )
        for before, after in rows.images
    ]
    return DecodedRows(schema, rows.op, images)


def without_unlogged(schema: RowSchema, unlogged: int) -> RowSchema:
    """The columns that are reported; none of the key is among the others."""
    there = [i for i in range(len(schema.columns)) if not unlogged >> i & 1]
    indexes = {i: n for n, i in enumerate(there)}
    return replace(
        schema,
        columns=tuple(schema.columns[i] for i in there),
        key=tuple(indexes[i] for i in schema.key),
        unlogged=tuple(c.name for i, c in enumerate(schema.columns) if unlogged >> i & 1),
    )
