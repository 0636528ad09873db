"""System-versioned tables of MariaDB, whose history is logged like live rows.

Such a table ends each row's time in a column of its primary key; in a row that is live it holds
the greatest value of its type. An update logs the old row again, as an insert, and a delete is an
update of that column. Only the live rows are for a target: it has a history of its own, or none.

Nothing in TABLE_MAP says that a table is versioned. The source is asked for the names of the two
columns where a table looks like it. Where it does not know the table, or knows it without
versioning, the greatest value tells that it was. Each change of a live row has one, before it or
behind it, and is refused: taken for a live row, one of the past would come back at the target.

Tables versioned by transaction numbers need none of this: MariaDB logs them by statement, which
is refused anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from setl.codec.binlog.tables.row_schema import TableDetail
from setl.codec.binlog.tables.table_map import ColumnType, TableMap, WireColumn
from setl.codec.binlog.values.value_number import Reader
from setl.errors import ConfigurationError, DataError
from setl.model.change import ABSENT, DecodedRows, Op, Row, Value
from setl.model.schema import RowSchema

HINT: Final = (
    "Leave the table out of `tables`. When the pipeline is past this position without it, take it "
    "in"
    " again, with `setl load --replace`"
)
"""What to do about a table of which the source does not tell any more that it was versioned."""

Versions = Callable[[str, str], tuple[str, str] | None]
"""The columns where rows of a table, by schema and name, begin and end; None if not versioned."""


def may_be_versioned(table: TableMap) -> bool:
    """Whether a table has two columns such as those in which a row's time begins and ends."""
    found = [i for i, c in enumerate(table.columns) if _moment(c, table.nullable >> i & 1)]
    return len(found) > 1


def logged_versions(table: TableMap, names: Sequence[str], versions: Versions) -> str:
    """The two columns of `Versions` as `with_versions` takes them, "" for none.

    Args:
        table: a table of a MariaDB.
        names: of its columns.
        versions: asked if it has such columns.
    """
    if not may_be_versioned(table):
        return ""
    logged = versions(table.schema, table.table)
    return "\0".join(logged) if logged is not None and set(logged) <= set(names) else ""


class LiveRows(NamedTuple):
    """Makes of a versioned table's rows those of the live ones.

    Attributes:
        start: the name of the column where a row's time begins.
        end: the name of the one where it ends.
    """

    start: str
    end: str

    def schema(self, schema: RowSchema) -> RowSchema:
        """The columns without these two."""
        there = self._there(schema)
        indexes = {i: n for n, i in enumerate(there)}
        return replace(
            schema,
            columns=tuple(schema.columns[i] for i in there),
            key=tuple(indexes[i] for i in schema.key if i in indexes),
        )

    def rows(self, rows: DecodedRows, schema: RowSchema) -> DecodedRows:
        """The changes of live rows; none may be left.

        Args:
            rows: as they were logged, with what `telling` reads.
            schema: their columns without these two.

        Raises:
            DataError: what they are is not said, or they are changes of several kinds.
        """
        names = rows.schema.names
        if self.end not in names:
            raise _not_described(schema)
        end, there = names.index(self.end), self._there(rows.schema)
        pairs: list[tuple[Row | None, Row | None]] = []
        for before, after in rows.images:
            was = None if before is None else before[end]
            lives = None if after is None else after[end]
            lives = was if lives is ABSENT else lives
            if was is ABSENT:
                raise _not_described(schema)
            one = tuple([before[i] for i in there]) if before is not None and was else None
            two = tuple([after[i] for i in there]) if after is not None and lives else None
            if one is not None or two is not None:
                pairs.append((one, two))
        kinds = {(one is None, two is None) for one, two in pairs}
        if len(kinds) > 1:
            raise DataError(
                "one event of a system-versioned table has changes of several kinds",
                hint=HINT,
            )
        op = {(True, False): Op.INSERT, (False, True): Op.DELETE}.get(
            next(iter(kinds), (False, False)), Op.UPDATE
        )
        return DecodedRows(schema, op, pairs)

    def _there(self, schema: RowSchema) -> list[int]:
        return [i for i, name in enumerate(schema.names) if name not in self]


def telling(live: tuple[bytes, ...], read: Reader) -> Reader:
    """A reader of a column of `ends_of_rows` that tells whether a row lives."""
    size = len(live[0])

    def lives(event: bytes, at: int) -> tuple[Value, int]:
        _, behind = read(event, at)
        return event[at : at + size] in live, behind

    return lives


def _not_described(schema: RowSchema) -> DataError:
    return DataError(
        "a change of a system-versioned table does not say whether its row lives",
        hint="SET GLOBAL binlog_row_image='FULL' on the source, and let no session choose"
        f" otherwise. {HINT}",
        table=schema.name,
    )


# Greatest TIMESTAMP(6): before MariaDB 11.5, and from there on where it has 64 bits.
_END_OF_TIME: Final = (b"\x7f\xff\xff\xff\x0f\x42\x3f", b"\xff\xff\xff\xff\x0f\x42\x3f")


def ends_of_rows(table: TableDetail) -> dict[int, tuple[bytes, ...]]:
    """The columns that end a row's time if the table is versioned, and what they hold in live rows.

    Few other tables have any: the column is the last of the primary key, but for the two of a
    period WITHOUT OVERLAPS, and may not be NULL; and another column of its type, where the row's
    time begins, stands outside the key. Without a key, any column may be it that looks like it.
    """
    key = table.schema.key
    found: dict[int, tuple[bytes, ...]] = {}
    for i in (*key[-1:], *key[-3:-2]) if key else range(len(table.columns)):
        live = _live(table, i)
        if live and any(
            _live(table, start) == live
            for start in range(len(table.columns))
            if start != i and start not in key
        ):
            found[i] = live
    return found


def _live(table: TableDetail, i: int) -> tuple[bytes, ...]:
    return _moment(table.columns[i], table.nullable >> i & 1)


def _moment(wire: WireColumn, nullable: int) -> tuple[bytes, ...]:
    if nullable:
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
                "the table was system-versioned: its binlog has rows of the past among those that"
                " live, and the source no longer says which column says which they are",
                hint=HINT,
                schema=schema.schema,
                table=schema.table,
            )
        return read(event, at)

    return checked
