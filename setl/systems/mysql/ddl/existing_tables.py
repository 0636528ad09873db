"""Which tables of a target were there, in ``retl.setl_ddl``: those are not to be made twice.

A table that somebody has dropped would be made again without its rows, and nothing would say so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from pymysql.connections import Connection

from setl.load.sink import LoadTicket
from setl.systems.mysql.ddl.table_records import Name, TableRecord, TableRecords


class ExistingTables:
    """The tables of one pipeline. pymysql's errors pass through."""

    def __init__(self, connection: Connection[Any], ticket: LoadTicket) -> None:
        """Read and write over `connection`, inside its transaction."""
        self._records = TableRecords(connection, ticket, "there", before="there")
        self._generation = ticket.generation

    def among(self, tables: Collection[Name]) -> set[Name]:
        """Those that were there, under this generation: who resets a position restarts."""
        records = self._records.all()
        known = {id_ for id_, record in records.items() if record.generation == self._generation}
        return {table for table in tables if self._records.id_of(table) in known}

    def write(self, tables: Iterable[Name]) -> None:
        """These tables are there."""
        self._records.write(tables, TableRecord(self._generation))

    def forget(self, tables: Iterable[Name]) -> None:
        """A schema change of the source may take these tables away, or their names."""
        self._records.forget(tables)
