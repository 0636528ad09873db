"""Rows looked up in the MySQL or MariaDB server whose stream has named them.

A table may be altered between the moment at which it is described and the one at which it is
read. So the rows are read in a transaction, in which nobody can alter the table any more, and it
is described in there, too. If it is not what it was taken for, it is read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pymysql.connections import Connection
from pymysql.cursors import Cursor
from pymysql.err import MySQLError

from setl.errors import SetlError, TransientError
from setl.model.change import Row
from setl.model.checkpoint import ShownPosition
from setl.model.schema import Column, Kind, RowSchema
from setl.systems.mysql.cached_connection import CachedConnection
from setl.systems.mysql.catalog import read_table
from setl.systems.mysql.connection import (
    MysqlEndpoint,
    error_number,
    translating,
)
from setl.systems.mysql.identifiers import identifier
from setl.systems.mysql.reading.consistent_read import begin_consistent_read
from setl.systems.mysql.values.conditions import keyed_conditions
from setl.systems.mysql.values.row_values import (
    AlteredTableError,
    decoded,
    decoders,
    select_list,
)

_LOCK_WAIT: Final = 10
_ATTEMPTS: Final = 5
_MOST_TABLES: Final = 1_000
# Unknown column; no such table; its definition has changed since the transaction began.
_ALTERED: Final = frozenset((1054, 1146, 1412))

_TEXTS: Final = frozenset((Kind.TEXT, Kind.ENUM, Kind.SET))

# What this process took the tables for when it asked last.
_described: dict[tuple[MysqlRows, str, str], RowSchema] = {}


@dataclass(frozen=True, slots=True)
class MysqlRows:
    """The `setl.transform.rereading.RowSource` of a MySQL or MariaDB server.

    Attributes:
        endpoint: the server; its account may read the tables.
        logged: see `setl.systems.port.SourceSystem.tables`.
    """

    endpoint: MysqlEndpoint
    logged: bool = False

    def read(
        self, table: RowSchema, keys: Sequence[Row], position: ShownPosition | None
    ) -> tuple[RowSchema, list[Row]] | None:
        """See `RowSource.read`."""
        cached = CachedConnection(self.endpoint, _LOCK_WAIT)
        try:
            for _ in range(_ATTEMPTS):
                there = self._described(cached, table)
                if there is None or not _has_key(there, table):
                    return None
                rows = cached.ask(
                    lambda found, as_=there: self._rows(found, table, as_, keys, position)
                )
                if rows is not None:
                    return there, rows
                _described.pop(self._name(table), None)
        except SetlError as error:
            error.at(table=table.name)
            raise
        raise TransientError("the table is just being changed", table=table.name)

    def _described(self, cached: CachedConnection, table: RowSchema) -> RowSchema | None:
        known = _described.get(self._name(table))
        if known is None:
            known = cached.ask(lambda found: self._asked(found, table))
            if known is not None:
                if len(_described) >= _MOST_TABLES:
                    _described.clear()
                _described[self._name(table)] = known
        return known

    def _asked(self, connection: Connection[Any], table: RowSchema) -> RowSchema | None:
        return read_table(connection, table.schema, table.table, logged=self.logged)

    def _name(self, table: RowSchema) -> tuple[MysqlRows, str, str]:
        return self, table.schema, table.table

    def _rows(
        self,
        connection: Connection[Any],
        seen: RowSchema,
        there: RowSchema,
        keys: Sequence[Row],
        other_position: ShownPosition | None,
    ) -> list[Row] | None:
        """The rows; None if the table is not what it is taken for."""
        decode, rows = decoders(there.columns), list[Row]()
        key = [there.columns[_position(there, seen.columns[i].name)] for i in seen.key]
        select = (
            f"SELECT {select_list(there.columns)}"
            f" FROM {identifier(there.schema)}.{identifier(there.table)}"
        )
        with translating(self.endpoint):
            try:
                position, inside = other_position or (None, False)
                ending = begin_consistent_read(connection, position, inside=inside)
                with connection.cursor(Cursor) as cursor:
                    for condition in keyed_conditions(key, keys):
                        sql = f"{select} WHERE {condition.sql}{ending}"
                        cursor.execute(sql, condition.values)
                        rows += [decoded(decode, raw) for raw in cursor.fetchall()]
                same = self._asked(connection, there) == there
            except MySQLError as error:
                if error_number(error) not in _ALTERED:
                    raise
                same = False
            except AlteredTableError:
                same = False
            connection.rollback()
        return rows if same else None


def _has_key(there: RowSchema, seen: RowSchema) -> bool:
    """Whether the table still identifies its rows by the key that the stream knows.

    By another key, or by other values of it, other rows would be found, or none.
    """
    known = [seen.columns[i] for i in seen.key]
    positions = {there.folded.get(column.name.lower(), -1) for column in known}
    alike = all(
        _writes_alike(column, there.columns[there.folded[column.name.lower()]])
        for column in known
        if column.name.lower() in there.folded
    )
    return alike and positions in ({*key} for key in (there.key, *there.unique))


def _writes_alike(seen: Column, there: Column) -> bool:
    """Whether both columns write the same value in the same way."""
    if seen.kind is not there.kind:
        return {seen.kind, there.kind} <= _TEXTS
    return not seen.precision or seen.scale <= there.scale


def _position(there: RowSchema, name: str) -> int:
    return there.folded[name.lower()]
