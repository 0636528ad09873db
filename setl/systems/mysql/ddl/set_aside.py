"""Tables of the target that were renamed as the source's were, to names that are not mapped.

``RENAME TABLE t TO _t_old`` may be the first half of an online schema change in two statements, and
then the target's table stays what it is: its shadow comes next. Where no shadow of it was made, it
is what it says. The table is out of the mapping then, and goes when the source drops its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from pymysql.connections import Connection

from setl.load.sink import LoadTicket
from setl.systems.mysql.ddl.table_records import Name, TableRecord, TableRecords


class SetAside:
    """The tables of one pipeline, under their new names. pymysql's errors pass through."""

    def __init__(self, connection: Connection[Any], ticket: LoadTicket) -> None:
        """Read and write over `connection`, inside its transaction."""
        self._records = TableRecords(connection, ticket, "aside", before="aside")

    def __contains__(self, table: Name) -> bool:
        """Whether a table of the target is one."""
        return self._records.of(table) is not None

    def write(self, tables: Iterable[Name]) -> None:
        """These tables are about to get these names."""
        self._records.write(tables, TableRecord())

    def forget(self, tables: Collection[Name]) -> None:
        """These tables are gone."""
        self._records.forget(tables)
