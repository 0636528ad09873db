"""MySQL with row binlogs and GTIDs, on a private data folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from setl_embedded.database import DatabaseServer
from setl_embedded.server_home import ServerHome

_REDO_LOG = "--innodb-redo-log-capacity=64M"


class MySql(DatabaseServer):
    """A MySQL server that writes a full row binlog; see `DatabaseServer`.

    It runs from the folder that `setl_embedded.unpacking` filled, not from the system.
    """

    def __init__(
        self, folder: Path | str, name: str, server_id: int, *, options: Sequence[str] = ()
    ) -> None:
        """Describe a server; nothing is started.

        Args:
            folder: for data and log. With data in it from an earlier server, those are used.
            name: what errors and log files call it.
            server_id: from 1 on, different for every server and binlog reader.
            options: further options of ``mysqld``, such as ``--max-connections=10``; they win.
        """
        super().__init__(folder, name, server_id, options)

    def _account(self, account: str) -> Sequence[str]:
        # The first makes it at the first start, the second gives it the password of this one.
        return (
            f"CREATE USER IF NOT EXISTS {account} IDENTIFIED BY '{self.password}'",
            f"ALTER USER {account} IDENTIFIED BY '{self.password}'",
        )

    def _installation(self) -> Sequence[str]:
        return [*self._program(), "--initialize-insecure", *self._common_options(), _REDO_LOG]

    def _command(self) -> list[str]:
        return [*self._program(), *self._common_options(), _REDO_LOG, *self._options]

    def _program(self) -> list[str]:
        home = ServerHome.of_this_machine("mysql")
        return [
            *home.program("mysqld"),
            "--no-defaults",
            f"--basedir={home.base}",
            f"--lc-messages-dir={home.base / 'share' / 'mysql'}",
            # Where Debian has them does not exist, or belongs to somebody else.
            "--secure-file-priv=NULL",
            "--mysqlx=OFF",
            # Redo log and tables are not synced; the system writes them after a kill, too.
            "--innodb-flush-method=nosync",
            # Takes an eighth of the processor time; sessions and locks are listed without it.
            "--performance-schema-instrument=%=OFF",
            "--gtid-mode=ON",
            "--enforce-gtid-consistency=ON",
        ]
