"""MariaDB with row binlogs, on a private data folder."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pymysql
from pymysql.connections import Connection

from setl_embedded.errors import EmbeddedError
from setl_embedded.ports import HOST, free_port
from setl_embedded.programs import mariadb_program
from setl_embedded.server import Server

USER = "setl"
_REDO_LOG = "--innodb-log-file-size=64M"  # must be the same at installation and later


class MariaDb(Server):
    """A MariaDB server that writes a full row binlog.

    Its data survive `stop`, `kill` and the end of this process; a crash of the machine is
    not provided for, since binlog and redo log are not synced.

    Attributes:
        server_id: its ``server_id``; binlog readers need ids of their own.
        gtid_domain_id: the domain of the GTIDs it gives.
        host: always 127.0.0.1.
        port: TCP port, the same over restarts.
        user: an account with all privileges, over TCP from anywhere.
        password: its password, made up for this server.
    """

    def __init__(
        self,
        folder: Path | str,
        name: str,
        server_id: int,
        *,
        gtid_domain_id: int | None = None,
        options: Sequence[str] = (),
    ) -> None:
        """Describe a server; nothing is started.

        Args:
            folder: for data and log. With data in it from an earlier server, those are used.
            name: what errors and log files call it.
            server_id: from 1 on, different for every server and binlog reader.
            gtid_domain_id: None for the server id.
            options: further options of ``mariadbd``, such as ``--max-connections=10``; they win.
        """
        super().__init__(folder, name)
        self.server_id = server_id
        self.gtid_domain_id = server_id if gtid_domain_id is None else gtid_domain_id
        self.host = HOST
        self.port = free_port()
        self.user = USER
        self.password = secrets.token_urlsafe(12)
        self._options = tuple(options)

    def connect(self, **options: Any) -> Connection[Any]:
        """A new connection, with autocommit; `options` are those of ``pymysql.connect``."""
        given: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "charset": "utf8mb4",
            "autocommit": True,
            "connect_timeout": 5,
        }
        return pymysql.connect(**{**given, **options})

    def answers(self) -> bool:
        """See `Server.answers`."""
        try:
            with self.connect(connect_timeout=1, read_timeout=5) as connection:
                connection.ping(reconnect=False)
        except (pymysql.MySQLError, OSError):
            return False
        return True

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _temporary(self) -> Path:
        # Of its own: a server that starts removes the temporary tables of all others in /tmp.
        return self.folder / "tmp"

    @property
    def _init_file(self) -> Path:
        return self.folder / "account.sql"

    def _prepare(self) -> None:
        # Without sql_log_bin=0 every start would add events to the binlog under test. One
        # statement a line: the server reads the file so. The password stays in this file,
        # out of the process list.
        self._init_file.touch(mode=0o600)
        self._init_file.write_text(
            "SET SESSION sql_log_bin=0;\n"
            f"CREATE OR REPLACE USER '{self.user}'@'%' IDENTIFIED BY '{self.password}';\n"
            f"GRANT ALL PRIVILEGES ON *.* TO '{self.user}'@'%' WITH GRANT OPTION;\n"
        )
        self._temporary.mkdir(exist_ok=True)
        if not (self._data / "mysql").is_dir():
            self._install()

    def _install(self) -> None:
        command = [
            mariadb_program("mariadb-install-db"),
            "--no-defaults",
            f"--datadir={self._data}",
            f"--tmpdir={self._temporary}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            _REDO_LOG,
            *_as_root(),
        ]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise EmbeddedError(
                f"{self.name}: mariadb-install-db failed with exit status {done.returncode}:\n"
                f"{done.stdout}\n{done.stderr}"
            )

    def _command(self) -> list[str]:
        return [
            mariadb_program("mariadbd"),
            "--no-defaults",
            *_as_root(),
            f"--datadir={self._data}",
            f"--tmpdir={self._temporary}",
            f"--bind-address={HOST}",
            f"--port={self.port}",
            # Relative to the data folder: a socket's full path may not pass 107 bytes.
            "--socket=server.sock",
            "--pid-file=server.pid",
            f"--init-file={self._init_file}",
            f"--server-id={self.server_id}",
            f"--gtid-domain-id={self.gtid_domain_id}",
            "--gtid-strict-mode=ON",
            "--log-bin=binlog",
            "--binlog-format=ROW",
            "--binlog-row-image=FULL",
            "--binlog-row-metadata=FULL",
            "--sync-binlog=0",
            "--character-set-server=utf8mb4",
            "--skip-name-resolve",
            "--performance-schema=OFF",
            "--innodb-buffer-pool-size=256M",
            "--innodb-flush-log-at-trx-commit=2",
            "--innodb-buffer-pool-dump-at-shutdown=OFF",
            "--innodb-buffer-pool-load-at-startup=OFF",
            _REDO_LOG,
            *self._options,
        ]


def _as_root() -> tuple[str, ...]:
    # Both programs refuse to run as root unless told that it is meant.
    return ("--user=root",) if os.geteuid() == 0 else ()
