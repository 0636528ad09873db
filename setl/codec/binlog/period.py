"""Rows of MariaDB's system-versioned tables, which no target may take for rows of a plain table.

Such a table keeps what a row was before as rows beside it, and the binlog has these as inserts
like any other. Nothing in a TABLE_MAP event says that a table is versioned. But each row of today
ends its period at the largest time (or transaction id) there is, and a primary key has the
period's end as its last column; every statement's first event has a row of today in one of its
images. Source: https://mariadb.com/kb/en/system-versioned-tables/.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from setl.codec.binlog.row_schema import TableDetail
from setl.codec.binlog.table_map import ColumnType
from setl.errors import ConfigurationError
from setl.model.change import DecodedRows, Value
from setl.model.schema import Kind

_NEVER: Final[dict[Kind, frozenset[Value]]] = {
    # The largest TIMESTAMP(6), to and from MariaDB 11.5.
    Kind.TIMESTAMP: frozenset({"2038-01-19 03:14:07.999999", "2106-02-07 06:28:15.999999"}),
    Kind.INTEGER: frozenset({2**64 - 1}),
}

PeriodEnds = tuple[tuple[int, Collection[Value]], ...]
"""Indexes of columns that may be the end of a period, and the values that mean "not yet"."""


def period_ends(table: TableDetail) -> PeriodEnds:
    """The columns of a MariaDB table that may end a period; none for nearly all tables."""
    candidates: dict[Kind, list[int]] = {Kind.TIMESTAMP: [], Kind.INTEGER: []}
    for i, (wire, detail) in enumerate(zip(table.columns, table.details, strict=True)):
        may_be_null = table.nullable >> i & 1
        if wire.type == ColumnType.TIMESTAMP2 and wire.length == 6 and not may_be_null:
            candidates[Kind.TIMESTAMP].append(i)
        elif wire.type == ColumnType.LONGLONG and detail.column.unsigned and not may_be_null:
            candidates[Kind.INTEGER].append(i)
    last = table.schema.key[-1:]
    return tuple(
        (i, _NEVER[kind])
        for kind, found in candidates.items()
        if len(found) > 1
        for i in (found if not last else last if last[0] in found else ())
    )


def refuse_versioned(rows: DecodedRows, ends: PeriodEnds) -> None:
    """See that rows are not those of a versioned table.

    Raises:
        ConfigurationError: they are.
    """
    for pair in rows.images:
        for image in pair:
            if image is not None and any(image[i] in never for i, never in ends):
                raise ConfigurationError(
                    "the table is system-versioned: the binlog has rows of its history among the "
                    "others, and setl does not tell them apart",
                    hint="Leave the table out of the mapping, or ALTER TABLE … DROP SYSTEM "
                    "VERSIONING on the source and start behind that",
                    schema=rows.schema.schema,
                    table=rows.schema.table,
                )
