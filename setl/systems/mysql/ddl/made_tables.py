"""Which tables setl has created, and from which place of the stream on they are as they are.

With `ddl: pass`, the stream brings statements that lie before that place: the CREATE TABLE itself,
and every ALTER TABLE that the source had made by then. The table has all that already.
"""

from __future__ import annotations

from typing import Any, Final

from pymysql.connections import Connection

from setl.load.creation import StreamPlace
from setl.load.sink import LoadTicket

_STATE: Final = "made"
_WRITE: Final = (
    "REPLACE INTO retl.setl_ddl (pipeline, id, step, generation, version, state, statement, epoch)"
    " VALUES (%s, %s, 0, %s, %s, %s, '', %s)"
)


class MadeTables:
    """The tables of one pipeline. pymysql's errors pass through."""

    def __init__(self, connection: Connection[Any], ticket: LoadTicket) -> None:
        """Read and write over `connection`, inside its transaction."""
        self._connection, self._ticket = connection, ticket

    def write(self, table: tuple[str, str], place: StreamPlace) -> None:
        """A table is made as the source's was at a place."""
        ticket = self._ticket
        self._run(
            _WRITE, ticket.pipeline_key, _id(table), place.generation, place.version, _STATE,
            ticket.epoch,
        )  # fmt: skip

    def place(self, table: tuple[str, str]) -> StreamPlace | None:
        """The place from which on a table is as it is; None for one that setl has not made."""
        with self._connection.cursor() as cursor:
            cursor.execute(
                "SELECT generation, version FROM retl.setl_ddl WHERE pipeline = %s AND id = %s",
                (self._ticket.pipeline_key, _id(table)),
            )
            row = cursor.fetchone()
        return StreamPlace(int(row[0]), int(row[1])) if row else None

    def forget(self, table: tuple[str, str]) -> None:
        """A table is gone; the next one of its name is another one."""
        self._run(
            "DELETE FROM retl.setl_ddl WHERE pipeline = %s AND id = %s",
            self._ticket.pipeline_key, _id(table),
        )  # fmt: skip

    def _run(self, sql: str, *args: object) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(sql, args)


def _id(table: tuple[str, str]) -> str:
    return f"made {'.'.join(table)}"
