"""Which tables setl has created, and from which position of the stream on they are as they are.

With `ddl: pass`, the stream brings statements that lie before that position: the CREATE TABLE
itself, and every ALTER TABLE that the source had made by then. The table has all that already.
"""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from setl.load.creation import LoadEnd
from setl.load.sink import LoadTicket
from setl.systems.mysql.ddl.table_records import Name, TableRecord, TableRecords


class CreatedTables:
    """The tables of one pipeline. pymysql's errors pass through."""

    def __init__(self, connection: Connection[Any], ticket: LoadTicket) -> None:
        """Read and write over `connection`, inside its transaction."""
        self._records = TableRecords(connection, ticket, "made", before="made")

    def write(self, table: Name, position: LoadEnd) -> None:
        """A table is made as the source's was at a position."""
        self._records.write([table], TableRecord(position.generation, position.version))

    def position(self, table: Name) -> LoadEnd | None:
        """The position from which on a table is as it is; None for one that setl has not made."""
        record = self._records.of(table)
        return None if record is None else LoadEnd(record.generation, record.version)

    def forget(self, table: Name) -> None:
        """A table is gone; the next one of its name is another one."""
        self._records.forget([table])
