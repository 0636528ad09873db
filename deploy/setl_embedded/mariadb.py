"""MariaDB with row binlogs, on a private data folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from setl_embedded.database import DatabaseServer, as_root
from setl_embedded.programs import mariadb_program
from setl_embedded.server_home import ServerHome

_REDO_LOG = "--innodb-log-file-size=64M"  # must be the same at installation and later


class MariaDb(DatabaseServer):
    """A MariaDB server that writes a full row binlog; see `DatabaseServer`.

    It is that of the system, or runs from a folder of `setl_embedded.server_home`.

    Attributes:
        gtid_domain_id: the domain of the GTIDs it gives.
    """

    def __init__(
        self,
        folder: Path | str,
        name: str,
        server_id: int,
        *,
        gtid_domain_id: int | None = None,
        options: Sequence[str] = (),
        home: ServerHome | None = None,
    ) -> None:
        """Describe a server; nothing is started.

        Args:
            folder: for data and log. With data in it from an earlier server, those are used.
            name: what errors and log files call it.
            server_id: from 1 on, different for every server and binlog reader.
            gtid_domain_id: None for the server id.
            options: further options of ``mariadbd``, such as ``--max-connections=10``; they win.
            home: the folder that it runs from; None for the one that `ServerHome.for_mariadb`
                tells, or the system's.
        """
        super().__init__(folder, name, server_id, options)
        self._home = home or ServerHome.for_mariadb()
        self.gtid_domain_id = server_id if gtid_domain_id is None else gtid_domain_id

    def _account(self, account: str) -> Sequence[str]:
        return (f"CREATE OR REPLACE USER {account} IDENTIFIED BY '{self.password}'",)

    @property
    def _template(self) -> str:
        return super()._template if self._home is None else self._home.folder.name

    def _installation(self) -> Sequence[str]:
        begin = [mariadb_program("mariadb-install-db"), "--no-defaults"]
        if self._home is not None:
            begin = self._home.mariadb_installation()
        return [
            *begin,
            f"--datadir={self._data}",
            f"--tmpdir={self._temporary}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            _REDO_LOG,
            *as_root(),
        ]

    def _program(self) -> list[str]:
        if self._home is None:
            return [mariadb_program("mariadbd"), "--no-defaults"]
        return [*self._home.program("mariadbd"), "--no-defaults", f"--basedir={self._home.base}"]

    def _command(self) -> list[str]:
        return [
            *self._program(),
            *self._common_options(),
            # Definitions of tables are not synced; the system writes them after a kill, too.
            "--debug-no-sync",
            f"--gtid-domain-id={self.gtid_domain_id}",
            "--gtid-strict-mode=ON",
            "--binlog-format=ROW",
            "--performance-schema=OFF",
            _REDO_LOG,
            *self._options,
        ]
