"""Records about tables of a target, in ``retl.setl_ddl``: one of each kind for a table.

Their kind is the ``state`` of their row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pymysql.connections import Connection

from setl.load.sink import LoadTicket

Name = tuple[str, str]

_COLUMNS: Final = "generation, version, statement"
_WRITE: Final = (
    f"REPLACE INTO retl.setl_ddl (pipeline, id, step, state, epoch, {_COLUMNS})"
    " VALUES (%s, %s, 0, %s, %s, %s, %s, %s)"
)
_READ: Final = f"SELECT id, {_COLUMNS} FROM retl.setl_ddl WHERE pipeline = %s AND state = %s"
_FORGET: Final = "DELETE FROM retl.setl_ddl WHERE pipeline = %s AND state = %s AND id = %s"


class TableRecord(NamedTuple):
    """What is kept of a table.

    Attributes:
        generation: of a checkpoint; 0 where it does not matter.
        version: a position in the stream; 0 where it does not matter.
        text: whatever else is to be known.
    """

    generation: int = 0
    version: int = 0
    text: str = ""


class TableRecords:
    """The records of one kind and pipeline. pymysql's errors pass through."""

    def __init__(
        self, connection: Connection[Any], ticket: LoadTicket, kind: str, *, before: str
    ) -> None:
        """Read and write over `connection`, inside its transaction.

        An id is the name of the table with `before` and a space before it.
        """
        self._connection, self._ticket = connection, ticket
        self._kind, self._before = kind, before

    def all(self) -> Mapping[str, TableRecord]:
        """The records by their ids, in the order of these."""
        return self._read(f"{_READ} ORDER BY id")

    def of(self, table: Name) -> TableRecord | None:
        """The record of a table, None if there is none."""
        id_ = self.id_of(table)
        return self._read(f"{_READ} AND id = %s", id_).get(id_)

    def write(self, tables: Iterable[Name], record: TableRecord) -> None:
        """Keep a record of each of these tables, in place of the one before."""
        ticket = self._ticket
        head = [(ticket.pipeline_key, self.id_of(t), self._kind, ticket.epoch) for t in tables]
        self._run(_WRITE, [(*each, *record) for each in head])

    def forget(self, tables: Iterable[Name]) -> None:
        """Keep no record of these tables."""
        key = self._ticket.pipeline_key
        self._run(_FORGET, [(key, self._kind, self.id_of(table)) for table in tables])

    def id_of(self, table: Name) -> str:
        """What the record of a table is called."""
        return f"{self._before} {'.'.join(table)}"

    def _read(self, sql: str, *more: object) -> dict[str, TableRecord]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql, (self._ticket.pipeline_key, self._kind, *more))
            return {
                str(id_): TableRecord(int(generation), int(version), text)
                for id_, generation, version, text in cursor.fetchall()
            }

    def _run(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(sql, rows)
