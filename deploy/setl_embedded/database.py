"""What the embedded MariaDB and MySQL servers have in common: address, account, data folder."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import subprocess
import tempfile
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pymysql
from pymysql.connections import Connection

from setl_embedded.errors import EmbeddedError
from setl_embedded.ports import HOST, free_port
from setl_embedded.server import Server

USER = "setl"
TEMPLATES = "SETL_EMBEDDED_TEMPLATES"
"""Variable with a folder, in which new data folders are kept for the servers that come after.

For tests: what a server makes at its installation, certificates too, is that of all others.
"""


class DatabaseServer(Server):
    """A server that speaks MySQL's protocol and writes a full row binlog.

    Its data survive `stop`, `kill` and the end of this process; a crash of the machine is
    not provided for, since binlog and redo log are not synced.

    Attributes:
        server_id: its ``server_id``; binlog readers need ids of their own.
        host: always 127.0.0.1.
        port: TCP port, the same over restarts.
        user: an account with all privileges, over TCP from anywhere.
        password: its password, made up for this server.
    """

    def __init__(
        self, folder: Path | str, name: str, server_id: int, options: Sequence[str]
    ) -> None:
        super().__init__(folder, name)
        self.server_id = server_id
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
            # Else each connection reads all certificates of the system first, 20 ms long.
            "ssl_disabled": True,
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
    def _template(self) -> str:
        """The name under which the data folder of a new server like this is kept."""
        return type(self).__name__

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
            + "".join(f"{statement};\n" for statement in self._account(f"'{self.user}'@'%'"))
            + f"GRANT ALL PRIVILEGES ON *.* TO '{self.user}'@'%' WITH GRANT OPTION;\n"
        )
        self._temporary.mkdir(exist_ok=True)
        if not (self._data / "mysql").is_dir():
            self._install()

    def _install(self) -> None:
        """Make the data folder, or copy that of the first server of this kind, see `TEMPLATES`."""
        folder = os.environ.get(TEMPLATES, "")
        if not folder:
            self._run(self._installation())
            return
        template = Path(folder) / self._template
        if not template.is_dir():
            self._run(self._installation())
            _keep(self._data, template)
            return
        # Most of it are zeros, which need not be written: of MariaDB 6 of 81 MB are left.
        self._run(["cp", "-a", "--sparse=always", f"{template}/.", str(self._data)])
        # Else two servers have one UUID, and their GTIDs are the same.
        (self._data / "auto.cnf").unlink(missing_ok=True)

    @abstractmethod
    def _account(self, account: str) -> Sequence[str]:
        """Statements after which `account` exists and has this server's password."""

    @abstractmethod
    def _installation(self) -> Sequence[str]:
        """The command that makes a new data folder."""

    def _common_options(self) -> list[str]:
        return [
            *as_root(),
            f"--datadir={self._data}",
            f"--tmpdir={self._temporary}",
            f"--bind-address={HOST}",
            f"--port={self.port}",
            # Relative to the data folder: a socket's full path may not pass 107 bytes.
            "--socket=server.sock",
            "--pid-file=server.pid",
            f"--init-file={self._init_file}",
            f"--server-id={self.server_id}",
            "--log-bin=binlog",
            "--binlog-row-image=FULL",
            "--binlog-row-metadata=FULL",
            "--sync-binlog=0",
            "--character-set-server=utf8mb4",
            "--skip-name-resolve",
            "--innodb-buffer-pool-size=256M",
            "--innodb-flush-log-at-trx-commit=2",
            "--innodb-buffer-pool-dump-at-shutdown=OFF",
            "--innodb-buffer-pool-load-at-startup=OFF",
        ]

    def _run(self, command: Sequence[str]) -> None:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise EmbeddedError(
                f"{self.name}: its data folder could not be made, exit status {done.returncode}:\n"
                f"{done.stdout}\n{done.stderr}"
            )


def _keep(data: Path, template: Path) -> None:
    """Keep a copy; several servers may do so at the same time, and a half one is never seen."""
    template.parent.mkdir(parents=True, exist_ok=True)
    own = Path(tempfile.mkdtemp(dir=template.parent))
    shutil.copytree(data, own / "data")
    try:
        (own / "data").rename(template)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    shutil.rmtree(own)


def as_root() -> tuple[str, ...]:
    """The option without which both servers refuse to run as root."""
    return ("--user=root",) if os.geteuid() == 0 else ()
