"""One connection to a MySQL or MariaDB server, and what it is asked about binlogs."""

from __future__ import annotations

import time
from typing import Any

import pymysql
from pymysql.connections import Connection

from setl.codec.binlog.transactions.gtid import mariadb_missing
from setl.errors import ConfigurationError, TransientError
from setl.systems.mysql.binlog.unanswered import answered, refuse_unanswered
from setl.systems.mysql.connection import MysqlEndpoint, error_number
from setl.systems.mysql.server_kind import UPGRADE_SOURCE, ServerKind

FIRST_OFFSET = 4  # the four bytes before it mark the file as a binlog

_MALFORMED_GTIDS = 1772
_MOMENT = 2  # seconds; a commit that nothing holds up takes milliseconds
_WAITING = "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_%_wait_sessions'"


NAME_NOT_UTF8 = "the server's binlogs have a name that is not UTF-8"
RENAME_LOG_BIN = "Give log_bin a name in UTF-8 in the server's configuration file, and restart it"


class ServerSession:
    """One connection, and which family of server is at its other end.

    Raises what pymysql raises; `translating` around it makes that setl's errors.

    Attributes:
        mariadb: whether it is MariaDB.
        version: its version, as it tells it.
    """

    def __init__(self, connection: Connection[Any], endpoint: MysqlEndpoint) -> None:
        """Ask it for its version.

        Args:
            connection: open; it stays the caller's.
            endpoint: where it leads, for errors.
        """
        self._connection = connection
        self._endpoint = endpoint
        row = self.row("SELECT VERSION()")
        version = str(row[0]) if row else ""
        self.mariadb = "mariadb" in version.lower()
        self.version = version
        self._kind = ServerKind.of(version)
        self._version = self._kind.version

    def refuse_nameless(self) -> None:
        """See that its binlog can name columns. Raises ConfigurationError."""
        if self._kind.no_source:
            raise ConfigurationError(
                self._kind.no_source, hint=UPGRADE_SOURCE, server=self._endpoint
            )

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows of an answer."""
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return list(cursor.fetchall())

    def row(self, statement: str, *values: object) -> tuple[Any, ...] | None:
        """The first row of an answer, None if it has none."""
        rows = self.rows(statement, *values)
        return rows[0] if rows else None

    def of_binlog(self, statement: str) -> list[tuple[Any, ...]]:
        """The answer to a question for which the server has to lock its binlog.

        Raises:
            TransientError: see `refuse_unanswered`.
            ConfigurationError: the names of its files are no text.
        """
        refuse_unanswered(self._connection, self._endpoint)
        begun = time.monotonic()
        try:
            rows = self.rows(statement)
        except UnicodeDecodeError as error:
            what = f"{NAME_NOT_UTF8}: {error.object!r}"
            raise ConfigurationError(what, hint=RENAME_LOG_BIN, server=self._endpoint) from error
        answered(self._endpoint, begun)
        return rows

    def status_statement(self) -> str:
        """What tells where the binlog ends."""
        return self._kind.binlog_status

    def identity(self) -> str:
        """See `BinlogServer.identity`."""
        row = self.row("SELECT @@GLOBAL.server_id" if self.mariadb else "SELECT @@server_uuid")
        return str(row[0]) if row else ""

    def folds_names(self) -> bool:
        """See `BinlogServer.folds_names`."""
        row = self.row("SELECT @@lower_case_table_names")
        return row is not None and int(row[0]) == 1

    def gtid_mode(self) -> str:
        """MySQL only."""
        row = self.row("SELECT @@GLOBAL.gtid_mode")
        return str(row[0]) if row else ""

    def gtids_before(self, file: str) -> str:
        """The GTIDs before the oldest binlog, which is this file."""
        if self.mariadb:
            return self.gtid_at(file, FIRST_OFFSET) or ""
        # What the file itself says leaves out what was in files of another name (log_bin).
        row = self.row("SELECT @@GLOBAL.gtid_purged")
        return str(row[0] or "").replace("\n", "") if row else ""

    def all_have_gtids(self) -> bool:
        """See `BinlogServer.all_have_gtids`."""
        return self.mariadb or self.gtid_mode() == "ON"

    def gtid_at(self, file: str, offset: int) -> str | None:
        """MariaDB only. None where no event begins."""
        row = self.row("SELECT BINLOG_GTID_POS(%s, %s)", file, offset)
        return None if row is None or row[0] is None else str(row[0])

    def missing(self, gtid: str) -> str:
        """See `BinlogServer.missing`."""
        if not self.mariadb:
            try:
                missing = self._not_executed(gtid)
            except pymysql.MySQLError as error:
                if error_number(error) != _MALFORMED_GTIDS:
                    raise
                raise ConfigurationError(
                    f"not GTIDs of a MySQL server: {gtid!r}",
                    hint="They are written UUID:first-last, such as the server's "
                    "@@GLOBAL.gtid_executed, with commas between",
                    server=self._endpoint,
                ) from error
            return missing and self._uncommitted(missing)
        row = self.row("SELECT @@GLOBAL.gtid_binlog_state")
        try:
            return mariadb_missing(str(row[0] or "") if row else "", gtid)
        except ValueError as error:
            raise ConfigurationError(
                f"not GTIDs of a MariaDB server: {gtid!r}",
                hint="They are written domain-server-sequence, such as 0-1-100, with commas "
                "between",
                server=self._endpoint,
            ) from error

    def _uncommitted(self, gtid: str) -> str:
        """Those of some missing GTIDs that do not come within a moment; MySQL only.

        A transaction is in the binlog before it is executed, and was read and applied perhaps:
        for as long as its commit waits for a replica (semi-synchronous, AFTER_SYNC).
        """
        wait = "IF(@@GLOBAL.gtid_mode = 'OFF', 1, WAIT_FOR_EXECUTED_GTID_SET(%s, %s))"
        self.row(f"SELECT {wait}", gtid, _MOMENT)
        waiting = sum(int(count) for _, count in self.rows(_WAITING))
        missing = self._not_executed(gtid)
        if missing and waiting:
            raise TransientError(
                f"the source has not executed {missing}. Commits wait there for a replica"
                f" ({waiting}), and theirs may be among them",
                hint="See why no replica acknowledges them: `SHOW STATUS LIKE 'Rpl_semi_sync%'`",
                server=self._endpoint,
            )
        return missing

    def _not_executed(self, gtid: str) -> str:
        """Those of some GTIDs that are not in `gtid_executed` now; MySQL only."""
        row = self.row("SELECT GTID_SUBTRACT(%s, @@GLOBAL.gtid_executed)", gtid)
        return str(row[0] or "").replace("\n", "") if row else ""
