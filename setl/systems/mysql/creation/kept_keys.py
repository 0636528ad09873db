"""Keys of created tables that are added after their rows, in ``retl.setl_ddl`` of the target."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pymysql.connections import Connection

from setl.load.sink import LoadTicket

STATE: Final = "keys"

_WRITE: Final = (
    "REPLACE INTO retl.setl_ddl (pipeline, id, step, generation, version, state, statement, epoch)"
    " VALUES (%s, %s, 0, 0, 0, %s, %s, %s)"
)


@dataclass(frozen=True, slots=True)
class TableKeys:
    """Keys that a table still has to get.

    Attributes:
        table: schema and table.
        keys: their definitions.
    """

    table: tuple[str, str]
    keys: tuple[str, ...]


class KeptKeys:
    """The keys that one pipeline still has to add. pymysql's errors pass through."""

    def __init__(self, connection: Connection[Any], ticket: LoadTicket) -> None:
        """Read and write over `connection`, inside its transaction."""
        self._connection, self._ticket = connection, ticket

    def write(self, wanted: TableKeys) -> None:
        """Keep the keys of a table in place of what was kept of it."""
        if not wanted.keys:
            self.forget(wanted.table)
            return
        text = json.dumps([wanted.table, wanted.keys])
        key = self._ticket.pipeline_key
        self._run(_WRITE, key, id_of(wanted.table), STATE, text, self._ticket.epoch)

    def forget(self, table: tuple[str, str]) -> None:
        """The table has its keys."""
        self._run(
            "DELETE FROM retl.setl_ddl WHERE pipeline = %s AND id = %s AND state = %s",
            self._ticket.pipeline_key, id_of(table), STATE,
        )  # fmt: skip

    def all(self) -> Sequence[TableKeys]:
        """What is kept."""
        with self._connection.cursor() as cursor:
            cursor.execute(
                "SELECT statement FROM retl.setl_ddl WHERE pipeline = %s AND state = %s"
                " ORDER BY id",
                (self._ticket.pipeline_key, STATE),
            )
            found = [json.loads(text) for (text,) in cursor.fetchall()]
        return [TableKeys((name[0], name[1]), tuple(keys)) for name, keys in found]

    def _run(self, sql: str, *args: object) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(sql, args)


def id_of(table: tuple[str, str]) -> str:
    """What ``retl.setl_ddl`` calls the keys of a table."""
    return f"keys of {'.'.join(table)}"
