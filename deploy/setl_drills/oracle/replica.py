"""The server's own replication, of one schema, between two places of a binlog."""

from __future__ import annotations

import time
from typing import Any

from setl.model.position import BinlogPosition
from setl_embedded import DatabaseServer

_LIMIT = 60.0


def is_mariadb(server: DatabaseServer) -> bool:
    """Which family a server is of, by its own words: it may be one that somebody else runs."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        return "mariadb" in str(cursor.fetchone()[0]).lower()


class Replication:
    """A replica that follows a source of the same product, from a file and offset on."""

    def __init__(self, replica: DatabaseServer, source: DatabaseServer) -> None:
        self._replica = replica
        self._source = source
        self._mysql = not is_mariadb(replica)
        self._word = "REPLICA" if self._mysql else "SLAVE"

    def start(self, schema: str, position: BinlogPosition) -> None:
        """Replicate this schema from there on, and nothing else; "" for all schemas."""
        source, tables = self._source, f"{schema}.%" if schema else ""
        listed = f"'{tables}'" if tables else ""
        with self._replica.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"STOP {self._word}")
            if self._mysql:
                cursor.execute(f"CHANGE REPLICATION FILTER REPLICATE_WILD_DO_TABLE = ({listed})")
                cursor.execute(
                    f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{source.host}',"
                    f" SOURCE_PORT = {source.port}, SOURCE_USER = '{source.user}',"
                    f" SOURCE_PASSWORD = '{source.password}', SOURCE_AUTO_POSITION = 0,"
                    f" SOURCE_LOG_FILE = '{position.file}', SOURCE_LOG_POS = {position.offset},"
                    " SOURCE_CONNECT_RETRY = 1, GET_SOURCE_PUBLIC_KEY = 1"
                )
            else:
                cursor.execute("SET GLOBAL replicate_wild_do_table = %s", (tables,))
                cursor.execute(
                    f"CHANGE MASTER TO MASTER_HOST = '{source.host}', MASTER_PORT = {source.port},"
                    f" MASTER_USER = '{source.user}', MASTER_PASSWORD = '{source.password}',"
                    f" MASTER_USE_GTID = no, MASTER_LOG_FILE = '{position.file}',"
                    f" MASTER_LOG_POS = {position.offset}, MASTER_CONNECT_RETRY = 1"
                )
            cursor.execute(f"START {self._word}")

    def reach(self, position: BinlogPosition) -> str:
        """Wait until it is there; returns "" or the error that it has stopped with.

        Raises:
            TimeoutError: neither happens.
        """
        wait = "SOURCE_POS_WAIT" if self._mysql else "MASTER_POS_WAIT"
        deadline = time.monotonic() + _LIMIT
        while time.monotonic() < deadline:
            with self._replica.connect() as connection, connection.cursor() as cursor:
                cursor.execute(f"SELECT {wait}(%s, %s, 0.2)", (position.file, position.offset))
                (done,) = cursor.fetchone()
                if done is not None and done >= 0:
                    return ""
                status = self._status(cursor)
            if status.get("Last_SQL_Errno"):
                return f"{status['Last_SQL_Errno']} {status['Last_SQL_Error']}"
            if status.get("Last_IO_Errno") and not self._is_passing(status):
                raise RuntimeError(f"the replica cannot read: {status['Last_IO_Error']}")
            time.sleep(0.02)
        raise TimeoutError(f"the replica does not get to {position}")

    def stop(self) -> None:
        """Replicate nothing any more."""
        with self._replica.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"STOP {self._word}")
            cursor.execute(f"RESET {self._word} ALL")
            if self._mysql:
                cursor.execute("CHANGE REPLICATION FILTER REPLICATE_WILD_DO_TABLE = ()")
            else:
                cursor.execute("SET GLOBAL replicate_wild_do_table = ''")

    def _status(self, cursor: Any) -> dict[str, Any]:
        cursor.execute(f"SHOW {self._word} STATUS")
        row = cursor.fetchone()
        names = [column[0] for column in cursor.description or ()]
        return dict(zip(names, row, strict=True)) if row else {}

    @staticmethod
    def _is_passing(status: dict[str, Any]) -> bool:
        return "econnecting" in str(status.get("Last_IO_Error", ""))
