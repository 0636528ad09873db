"""What ``retl.setl_ddl`` of a target says of tables: one record of each kind for a table.

Their kind is the ``state`` of their row.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pymysql.connections import Connection

from setl.load.creation import LoadEnd
from setl.load.sink import LoadTicket
from setl.systems.mysql.ddl.table_state import Name

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
    """The records of one kind and pipeline. pymysql's errors pass through.

    A kind is the state of the rows. An id is the name of the table behind a prefix and a space.
    """

    kind = prefix = ""

    def __init__(self, connection: Connection[Any], ticket: LoadTicket) -> None:
        """Read and write over `connection`, inside its transaction."""
        self._connection, self._ticket = connection, ticket

    def every(self) -> Mapping[str, TableRecord]:
        """The records by their ids, in the order of these."""
        return self._read(f"{_READ} ORDER BY id")

    def of(self, table: Name) -> TableRecord | None:
        """The record of a table, None if there is none."""
        id_ = self.id_of(table)
        return self._read(f"{_READ} AND id = %s", id_).get(id_)

    def put(self, tables: Iterable[Name], record: TableRecord) -> None:
        """Keep a record of each of these tables, in place of the one before."""
        ticket = self._ticket
        head = [(ticket.pipeline_key, self.id_of(t), self.kind, ticket.epoch) for t in tables]
        self._run(_WRITE, [(*each, *record) for each in head])

    def forget(self, *tables: Name) -> None:
        """Keep no record of these tables: they are gone, or get other names."""
        key = self._ticket.pipeline_key
        self._run(_FORGET, [(key, self.kind, self.id_of(table)) for table in tables])

    def id_of(self, table: Name) -> str:
        """What the record of a table is called."""
        return f"{self.prefix or self.kind} {'.'.join(table)}"

    def _read(self, sql: str, *more: object) -> dict[str, TableRecord]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql, (self._ticket.pipeline_key, self.kind, *more))
            return {
                str(id_): TableRecord(int(generation), int(version), text)
                for id_, generation, version, text in cursor.fetchall()
            }

    def _run(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(sql, rows)


class CreatedTables(TableRecords):
    """Which tables setl has created, and from which position on they are as they are.

    With `ddl: pass`, the stream brings statements that lie before that position: the CREATE TABLE
    itself, and every ALTER TABLE that the source had made by then. The table has all that already.
    """

    kind = "made"

    def write(self, table: Name, position: LoadEnd) -> None:
        """A table is made as the source's was at a position."""
        self.put([table], TableRecord(position.generation, position.version))

    def position(self, table: Name) -> LoadEnd | None:
        """The position from which on a table is as it is; None for one that setl has not made."""
        record = self.of(table)
        return None if record is None else LoadEnd(record.generation, record.version)


class ExistingTables(TableRecords):
    """Which tables of a target were there: those are not to be made twice.

    A table that somebody has dropped would be made again without its rows, in silence.
    """

    kind = "there"

    def among(self, tables: Collection[Name]) -> set[Name]:
        """Those that were there, under this generation: who resets a position restarts."""
        of_now, records = self._ticket.generation, self.every()
        known = {id_ for id_, record in records.items() if record.generation == of_now}
        return {table for table in tables if self.id_of(table) in known}

    def write(self, tables: Iterable[Name]) -> None:
        """These tables are there."""
        self.put(tables, TableRecord(self._ticket.generation))


class SetAside(TableRecords):
    """Tables that were renamed as the source's were, to names that are not mapped.

    ``RENAME TABLE t TO _t_old`` may be the first half of an online schema change in two statements,
    and then the target's table stays what it is: its shadow comes next. Where no shadow of it was
    made, it is what it says. The table is out of the mapping then, and goes when the source drops
    its own.
    """

    kind = "aside"

    def __contains__(self, table: Name) -> bool:
        """Whether a table of the target is one, under its new name."""
        return self.of(table) is not None


class DatabaseDefault(TableRecords):
    """The default collation that a database of the source had, see `source_settings`."""

    kind = "default"


class ServerSetting(TableRecords):
    """What a setting of the source's server was, see `source_settings`."""

    kind = "server"


@dataclass(frozen=True, slots=True)
class TableKeys:
    """Keys that a table still has to get.

    Attributes:
        table: schema and table.
        keys: their definitions.
    """

    table: Name
    keys: tuple[str, ...]


class PendingIndexes(TableRecords):
    """The keys that one pipeline still has to add."""

    kind, prefix = "keys", "keys of"

    def write(self, wanted: TableKeys) -> None:
        """Keep the keys of a table in place of what was kept of it."""
        if wanted.keys:
            text = json.dumps([wanted.table, wanted.keys])
            self.put([wanted.table], TableRecord(text=text))
        else:
            self.forget(wanted.table)

    def all(self) -> Sequence[TableKeys]:
        """What is kept."""
        found = [json.loads(record.text) for record in self.every().values()]
        return [TableKeys((name[0], name[1]), tuple(keys)) for name, keys in found]
