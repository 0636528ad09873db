"""Which tables of a target were there, in ``retl.setl_ddl``: those are not to be made twice.

A table that somebody has dropped would be made anew without its rows, and nothing would say so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from pymysql.connections import Connection

from setl.load.sink import LoadTicket
from setl.model.position import version_generation

_STATE: Final = "there"
_KNOWN: Final = (
    "SELECT id FROM retl.setl_ddl WHERE pipeline = %s AND state = %s AND generation = %s"
)
_WRITE: Final = (
    "REPLACE INTO retl.setl_ddl (pipeline, id, step, generation, version, state, statement, epoch)"
    " VALUES (%s, %s, 0, %s, 0, %s, '', %s)"
)
_FORGET: Final = "DELETE FROM retl.setl_ddl WHERE pipeline = %s AND id = %s AND state = %s"

Name = tuple[str, str]


class PresentTables:
    """The tables of one pipeline. pymysql's errors pass through."""

    def __init__(self, connection: Connection[Any], ticket: LoadTicket) -> None:
        """Read and write over `connection`, inside its transaction."""
        self._connection, self._ticket = connection, ticket

    def among(self, tables: Collection[Name]) -> set[Name]:
        """Those that were there, under this generation: who resets a position begins anew."""
        with self._connection.cursor() as cursor:
            cursor.execute(_KNOWN, (self._ticket.pipeline_key, _STATE, self._generation))
            known = {str(id_) for (id_,) in cursor.fetchall()}
        return {table for table in tables if _id(table) in known}

    def write(self, tables: Iterable[Name]) -> None:
        """These tables are there."""
        ticket = self._ticket
        with self._connection.cursor() as cursor:
            cursor.executemany(
                _WRITE,
                [
                    (ticket.pipeline_key, _id(table), self._generation, _STATE, ticket.epoch)
                    for table in tables
                ],
            )

    def forget(self, tables: Iterable[Name]) -> None:
        """A schema change of the source may take these tables away, or their names."""
        with self._connection.cursor() as cursor:
            cursor.executemany(
                _FORGET, [(self._ticket.pipeline_key, _id(table), _STATE) for table in tables]
            )

    @property
    def _generation(self) -> int:
        return version_generation(self._ticket.through)


def _id(table: Name) -> str:
    return f"there {'.'.join(table)}"
