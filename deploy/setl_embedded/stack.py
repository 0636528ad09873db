"""All servers that a demo, a test run or a drill needs, started and stopped together."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol, Self, TypeVar

from setl_embedded.database import DatabaseServer
from setl_embedded.errors import EmbeddedError
from setl_embedded.mariadb import MariaDb
from setl_embedded.mysql import MySql
from setl_embedded.noida import Elasticsearch, Kafka
from setl_embedded.zookeeper import ZooKeeper, ZooKeeperEnsemble

_S = TypeVar("_S")


class _Startable(Protocol):
    def start(self) -> object: ...
    def stop(self) -> None: ...


class Stack:
    """The servers, in one folder, as a context manager.

    On entry all are started side by side and each has answered; on exit all are stopped. A
    temporary folder is removed at the end of a block that went well and kept, with the logs,
    when it ended with an error; `stored` then says where.

    Attributes:
        folder: data, configuration and logs of all servers, a folder for each.
        mariadb: the MariaDB servers, with server and GTID domain ids 1, 2, …
        mysql: the MySQL servers; their server ids go on behind MariaDB's.
        zookeeper: the ZooKeeper server or ensemble, None if not asked for.
        kafka: the broker, None if not asked for.
        elasticsearch: the server, None if not asked for.
        stored: the temporary folder that was left because of an error, else None.
    """

    def __init__(
        self,
        folder: Path | str | None = None,
        *,
        mariadb: int = 0,
        mysql: int = 0,
        zookeeper: int = 0,
        kafka: bool = False,
        elasticsearch: bool = False,
        mariadb_options: Sequence[str] = (),
    ) -> None:
        """Describe a stack; nothing is started.

        Args:
            folder: where everything is kept, None for a temporary folder.
            mariadb: how many MariaDB servers; named ``mariadb-a``, ``mariadb-b``, …
            mysql: how many MySQL servers; named ``mysql-a``, ``mysql-b``, …
            zookeeper: how many ZooKeeper servers: 0, 1, or 3 for an ensemble.
            kafka: whether to start a Kafka broker.
            elasticsearch: whether to start an Elasticsearch server.
            mariadb_options: further options for each ``mariadbd``.
        """
        self._temporary = folder is None
        self.folder = Path(folder or tempfile.mkdtemp(prefix="setl-stack-")).absolute()
        self.stored: Path | None = None
        self.mariadb = [
            MariaDb(self.folder / name, name, number, options=mariadb_options)
            for number, name in enumerate(_names("mariadb", mariadb), start=1)
        ]
        self.mysql = [
            MySql(self.folder / name, name, number)
            for number, name in enumerate(_names("mysql", mysql), start=mariadb + 1)
        ]
        self.zookeeper: ZooKeeper | ZooKeeperEnsemble | None = None
        if zookeeper == 1:
            self.zookeeper = ZooKeeper(self.folder / "zookeeper")
        elif zookeeper > 1:
            self.zookeeper = ZooKeeperEnsemble(self.folder, zookeeper)
        self.kafka = Kafka(self.folder / "kafka") if kafka else None
        self.elasticsearch = Elasticsearch(self.folder / "elasticsearch") if elasticsearch else None

    @property
    def databases(self) -> list[DatabaseServer]:
        """The MariaDB and then the MySQL servers."""
        return [*self.mariadb, *self.mysql]

    @property
    def zookeeper_hosts(self) -> str:
        """The ZooKeeper servers' addresses, comma-separated."""
        return _wanted(self.zookeeper, "zookeeper").hosts

    @property
    def kafka_brokers(self) -> str:
        """The Kafka broker's address."""
        return _wanted(self.kafka, "kafka").brokers

    @property
    def elasticsearch_url(self) -> str:
        """The Elasticsearch server's address."""
        return _wanted(self.elasticsearch, "elasticsearch").url

    def start(self) -> Self:
        """Start all servers side by side and wait until each answers.

        Raises:
            EmbeddedError: one did not start; the others are stopped again.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        servers = self._servers()
        try:
            with ThreadPoolExecutor(max(1, len(servers))) as pool:
                for started in [pool.submit(server.start) for server in servers]:
                    started.result()
        except BaseException:
            self.stop(keep=True)
            raise
        return self

    def stop(self, *, keep: bool = False) -> None:
        """Stop all servers, side by side, and remove the folder if it is a temporary one.

        Args:
            keep: leave a temporary folder where it is, with the logs.
        """
        servers = self._servers()
        with ThreadPoolExecutor(max(1, len(servers))) as pool:
            for stopped in [pool.submit(server.stop) for server in servers]:
                stopped.result()
        if self._temporary and keep:
            self.stored = self.folder
        elif self._temporary:
            self.remove()

    def remove(self) -> None:
        """Remove the folder with everything in it; the servers must have been stopped."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _servers(self) -> list[_Startable]:
        others = (self.zookeeper, self.kafka, self.elasticsearch)
        return [*self.databases, *(server for server in others if server is not None)]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop(keep=kind is not None)


def _names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{chr(ord('a') + number)}" for number in range(count)]


def _wanted(server: _S | None, name: str) -> _S:
    if server is None:
        raise EmbeddedError(f"this stack was described without {name}")
    return server
