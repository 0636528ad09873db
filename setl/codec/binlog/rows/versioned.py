"""System-versioned tables of MariaDB, whose history is logged like live rows.

Such a table ends each row's time in a column of its primary key; in a row that is live it holds
the greatest value of its type. An update logs the old row again, as an insert: taken for a live
row it would come back at the target. Nothing in TABLE_MAP says that a table is versioned, so the
greatest value tells it. Each change of a live row has one, before it or behind it.

Tables versioned by transaction numbers need none of this: MariaDB logs them by statement, which
is refused anyway.
"""

from __future__ import annotations

from typing import Final

from setl.codec.binlog.tables.row_schema import TableDetail
from setl.codec.binlog.tables.table_map import ColumnType
from setl.codec.binlog.values.value_number import Reader
from setl.errors import ConfigurationError
from setl.model.change import Value

WAY_OUT: Final = (
    "Leave the table out of `tables`. To have it in, end its versioning on the source (ALTER TABLE"
    " … DROP SYSTEM VERSIONING); when the pipeline is past that without the table, take it in"
    " again, with `setl load --replace`"
)
"""What to do about a system-versioned table."""

# Greatest TIMESTAMP(6): before MariaDB 11.5, and from there on where it has 64 bits.
_END_OF_TIME: Final = (b"\x7f\xff\xff\xff\x0f\x42\x3f", b"\xff\xff\xff\xff\x0f\x42\x3f")


def ends_of_rows(table: TableDetail) -> dict[int, tuple[bytes, ...]]:
    """The columns that end a row's time if the table is versioned, and what they hold in live rows.

    Few other tables have any: the column is the last of the primary key and may not be NULL, and
    another column of its type, where the row's time begins, stands outside the key. Without a
    key, any column may be it that looks like it.
    """
    key = table.schema.key
    found: dict[int, tuple[bytes, ...]] = {}
    for i in key[-1:] if key else range(len(table.columns)):
        live = _live(table, i)
        if live and any(
            _live(table, start) == live
            for start in range(len(table.columns))
            if start != i and start not in key
        ):
            found[i] = live
    return found


def _live(table: TableDetail, i: int) -> tuple[bytes, ...]:
    wire = table.columns[i]
    if table.nullable >> i & 1:
        return ()
    if wire.type == ColumnType.TIMESTAMP2 and wire.length == 6:
        return _END_OF_TIME
    return ()


def refusing(read: Reader, live: tuple[bytes, ...], table: TableDetail) -> Reader:
    """A reader of a column of `ends_of_rows` that refuses what live rows hold there.

    It raises ConfigurationError: all rows of the table are like that.
    """
    size = len(live[0])
    schema = table.schema

    def checked(event: bytes, at: int) -> tuple[Value, int]:
        if event[at : at + size] in live:
            raise ConfigurationError(
                "the table is system-versioned: its binlog has rows of the past among those that"
                " live, and they cannot be told apart for sure",
                hint=WAY_OUT,
                schema=schema.schema,
                table=schema.table,
            )
        return read(event, at)

    return checked
