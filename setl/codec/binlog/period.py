"""Rows of MariaDB's system-versioned tables, which no target may take for rows of a plain table.

Such a table keeps what a row was before as rows beside it, and the binlog has these as inserts
like any other. Nothing in a TABLE_MAP event says that a table is versioned. But each row of today
ends its period at the largest time there is, and a primary key has the period's end as its last
column; every statement's first event has a row of today in one of its images. Where periods count
transactions, MariaDB logs statements, which are refused anyway.
Source: https://mariadb.com/kb/en/system-versioned-tables/.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from setl.codec.binlog.row_schema import TableDetail
from setl.codec.binlog.table_map import ColumnType
from setl.errors import ConfigurationError
from setl.model.change import DecodedRows

# The largest TIMESTAMP(6), before MariaDB 11.5 and from there on.
_NEVER: Final = ("2038-01-19 03:14:07.999999", "2106-02-07 06:28:15.999999")
_DIGITS: Final = 6


def period_ends(table: TableDetail) -> tuple[int, ...]:
    """Indexes of columns of a MariaDB table that may end a period; none for nearly all tables."""
    found = tuple(
        i
        for i, wire in enumerate(table.columns)
        if wire.type == ColumnType.TIMESTAMP2
        and wire.length == _DIGITS
        and not table.nullable >> i & 1
    )
    if len(found) < 2:  # a period has a beginning, too
        return ()
    last = table.schema.key[-1:]
    return found if not last else last if last[0] in found else ()


def refuse_versioned(rows: DecodedRows, ends: Sequence[int]) -> None:
    """See that rows are not those of a versioned table.

    Raises:
        ConfigurationError: they are.
    """
    for pair in rows.images:
        for image in pair:
            if image is not None and any(image[i] in _NEVER for i in ends):
                raise ConfigurationError(
                    "the table is system-versioned: the binlog has rows of its history among the "
                    "others, and setl does not tell them apart",
                    hint="Leave the table out of the mapping, or ALTER TABLE … DROP SYSTEM "
                    "VERSIONING on the source and start behind that",
                    schema=rows.schema.schema,
                    table=rows.schema.table,
                )
