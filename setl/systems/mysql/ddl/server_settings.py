"""What the source's server takes over when it is started, as it was when a statement ran (I26).

The zone of its machine, and whether it logs what foreign keys do, are in no event. The server tells
what they are now. They were the same then if it has not been started since, which would show in the
binlog. They were as well if they had the same values at a change before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pymysql.connections import Connection

from setl.clock import SystemClock
from setl.load.sink import LoadTicket, SchemaChange
from setl.model.position import BinlogPosition
from setl.systems.mysql.binlog.statements_ahead import finds_server_start
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.ddl.table_records import TableRecord, TableRecords

_KIND: Final = "server"
_LIMIT: Final = 120.0  # seconds to read ahead


class ServerSettings:
    """Those of one pipeline's source, for one schema change."""

    def __init__(
        self,
        source: MysqlEndpoint,
        ticket: LoadTicket,
        change: SchemaChange,
        *,
        connection: Callable[[], Connection[Any]],
        begin: Callable[[], Connection[Any]],
    ) -> None:
        """Connect to nothing yet.

        Args:
            source: the source's server.
            ticket: on whose behalf.
            change: the schema change.
            connection: to the target.
            begin: begins a fenced transaction on it.
        """
        self._source, self._ticket, self._change = source, ticket, change
        self._connection, self._begin = connection, begin

    def had(self, setting: str, value: str) -> bool:
        """Whether a setting had the value that it has now when the change ran.

        Args:
            setting: names it.
            value: what it is now.

        Returns:
            False if that is not known. True also where no binlog is read: nothing tells there.

        Raises:
            SetlError: a server does not answer.
        """
        position, change = self._change.position, self._change
        if not isinstance(position, BinlogPosition):
            return True
        known = self._records(self._connection()).of((setting, ""))
        if known is not None and (known.generation, known.text) == (change.generation, value):
            return True
        if finds_server_start(self._source, position, SystemClock(), _LIMIT) is not False:
            return False
        connection = self._begin()
        record = TableRecord(change.generation, change.version, value)
        self._records(connection).write([(setting, "")], record)
        connection.commit()
        return True

    def _records(self, connection: Connection[Any]) -> TableRecords:
        return TableRecords(connection, self._ticket, _KIND, before=_KIND)
