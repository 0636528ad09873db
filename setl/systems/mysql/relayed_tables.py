"""Reads the unique keys of a relay's source, which no binlog names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, TypeVar

from pymysql.connections import Connection

from setl.systems.mysql.catalog import read_unique_keys
from setl.systems.mysql.connection import MysqlEndpoint, connect, translating

_T = TypeVar("_T")


class MysqlRelayedTables:
    """The `setl.relay.ports.RelayedTables` of a MySQL server, asked for each time."""

    def __init__(self, endpoint: MysqlEndpoint) -> None:
        """Nothing is asked yet."""
        self._endpoint = endpoint

    def server_version(self) -> str:
        """See `RelayedTables.server_version`."""

        def ask(connection: Connection[Any]) -> str:
            with translating(self._endpoint), connection.cursor() as cursor:
                cursor.execute("SELECT VERSION()")
                row = cursor.fetchone()
            return str(row[0]) if row else ""

        return self._asked(ask)

    def unique_keys(self, schema: str, table: str) -> Mapping[str, tuple[str, ...]]:
        """See `RelayedTables.unique_keys`."""
        found = self._asked(lambda connection: read_unique_keys(connection, schema, table))
        return {name: names for name, names in found.items() if name != "PRIMARY"}

    def _asked(self, ask: Callable[[Connection[Any]], _T]) -> _T:
        with closing(connect(self._endpoint)) as connection:
            return ask(connection)
