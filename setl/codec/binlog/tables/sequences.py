"""MariaDB's sequences: they log reserved numbers as if they were rows of a table.

Such a table has one row and no key. A wildcard of a channel file matches its name, though
`setl check` does not list it: its rows are left out of the stream, as nothing at a target could
take them.

A table made of one looks the same, see `setl.codec.binlog.rows.seeming_sequences`.

Source: ``sql_sequence.cc`` of MariaDB, the array ``sequence_structure``.
"""

from __future__ import annotations

from typing import Final

from setl.codec.binlog.tables.row_schema import column_names
from setl.codec.binlog.tables.table_map import TableMap

_COLUMNS: Final = (
    "next_not_cached_value",
    "minimum_value",
    "maximum_value",
    "start_value",
    "increment",
    "cache_size",
    "cycle_option",
    "cycle_count",
)


def looks_like_sequence(table: TableMap) -> bool:
    """Whether a TABLE_MAP event describes a sequence, or a table made of one.

    A table of somebody's with these very columns and a key is none.

    Raises:
        LookupError, ValueError: its metadata is damaged.
    """
    if len(table.columns) != len(_COLUMNS):
        return False
    names, keyed = column_names(table)
    return not keyed and names == _COLUMNS
