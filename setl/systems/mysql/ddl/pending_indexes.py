"""Keys of created tables that are added after their rows, in ``retl.setl_ddl`` of the target."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pymysql.connections import Connection

from setl.load.sink import LoadTicket
from setl.systems.mysql.ddl.table_records import Name, TableRecord, TableRecords


@dataclass(frozen=True, slots=True)
class TableKeys:
    """Keys that a table still has to get.

    Attributes:
        table: schema and table.
        keys: their definitions.
    """

    table: Name
    keys: tuple[str, ...]


class PendingIndexes:
    """The keys that one pipeline still has to add. pymysql's errors pass through."""

    def __init__(self, connection: Connection[Any], ticket: LoadTicket) -> None:
        """Read and write over `connection`, inside its transaction."""
        self._records = TableRecords(connection, ticket, "keys", before="keys of")

    def write(self, wanted: TableKeys) -> None:
        """Keep the keys of a table in place of what was kept of it."""
        if wanted.keys:
            text = json.dumps([wanted.table, wanted.keys])
            self._records.write([wanted.table], TableRecord(text=text))
        else:
            self.forget(wanted.table)

    def forget(self, table: Name) -> None:
        """The table has its keys."""
        self._records.forget([table])

    def all(self) -> Sequence[TableKeys]:
        """What is kept."""
        found = [json.loads(record.text) for record in self._records.all().values()]
        return [TableKeys((name[0], name[1]), tuple(keys)) for name, keys in found]

    def id_of(self, table: Name) -> str:
        """What ``retl.setl_ddl`` calls the keys of a table."""
        return self._records.id_of(table)
