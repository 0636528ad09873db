"""Servers for one measurement: started for it, with nothing in them, and removed after it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from elasticsearch import Elasticsearch as Client
from elasticsearch.helpers import bulk

from setl.systems.mysql.sql_files import system_table_statements
from setl_embedded import Elasticsearch, MariaDb, MySql
from tests.bench.workloads import Shape, Workload, base_rows, fill

# What is committed is on disk, as with a MariaDB as it comes and with any that matters. For tests
# the embedded one is more careless, which would favour whoever commits most often.
_DURABLE = ("--innodb-flush-log-at-trx-commit=1",)

# MySQL's server has all that is asked of MariaDB's here.
_FAMILIES: dict[str, Any] = {"mariadb": MariaDb, "mysql": MySql}


TARGETS = ("mysql", "elasticsearch")

keep_option = click.option("--keep", is_flag=True, help="Keep logs and data.")
target_option = click.option(
    "--target", type=click.Choice([*TARGETS, "all"]), default="all", show_default=True,
    help="Where to.",
)  # fmt: skip


def family_option(name: str, *, help: str) -> Callable[[Any], Any]:  # noqa: A002 - click's word
    """Which servers the databases are."""
    return click.option(
        name, "family", type=click.Choice([*_FAMILIES]), default="mariadb", show_default=True,
        help=help,
    )  # fmt: skip


@contextmanager
def scratch_folder(name: str, *, keep: bool = False) -> Iterator[Path]:
    """A folder for one call of a command; removed after it, unless it is to be kept."""
    folder = Path(tempfile.mkdtemp(prefix=f"setl-{name}-"))
    try:
        yield folder
    finally:
        if keep:
            click.echo(f"logs and data are in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Target:
    """Where one competitor writes to: one of the two."""

    mariadb: MariaDb | None = None
    elasticsearch: Elasticsearch | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """How the plain script is told of it."""
        if self.elasticsearch is not None:
            return {"url": self.elasticsearch.url}
        return mysql_settings(self.mysql)

    @property
    def kind(self) -> str:
        """Which of the two, as in channel files."""
        return "mysql" if self.elasticsearch is None else "elasticsearch"

    @property
    def pid(self) -> int:
        """The server's process."""
        return (self.elasticsearch or self.mysql).pid

    @property
    def mysql(self) -> MariaDb:
        """The server; only of a MySQL target."""
        if self.mariadb is None:
            raise TypeError("the target is Elasticsearch")
        return self.mariadb


def mysql_settings(server: MariaDb) -> dict[str, Any]:
    """Keyword arguments of `pymysql.connect`."""
    return {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
    }


@contextmanager
def source_server(folder: Path, family: str = "mariadb") -> Iterator[MariaDb]:
    """A server to read from, with setl's system tables; of MariaDB or of MySQL."""
    with _FAMILIES[family](folder / "source", "source", server_id=11) as server:
        add_system_tables(server)
        yield server
    shutil.rmtree(folder / "source", ignore_errors=True)


@contextmanager
def disguised(server: MariaDb) -> Iterator[MariaDb]:
    """The same server with the same data, restarted under the version of an old MySQL.

    Clients made for MySQL take MariaDB's version for a new one of MySQL's, and ask for what only
    that has.
    """
    server.stop()
    options = ("--version=5.7.19-log",)
    with MariaDb(server.folder, server.name, server.server_id, options=options) as other:
        yield other
    server.start()


@contextmanager
def fresh_target(
    folder: Path,
    kind: str,
    workload: Workload,
    options: Sequence[str] = (),
    family: str = "mariadb",
) -> Iterator[Target]:
    """A target with what is there before a workload begins; what it holds is gone at the end.

    Args:
        folder: where it may keep its data.
        kind: mysql or elasticsearch.
        workload: whose tables or indexes they are.
        options: further ones of the database.
        family: of the database.
    """
    if kind == "mysql":
        with _FAMILIES[family](
            folder / "target", "target", server_id=12, options=(*_DURABLE, *options)
        ) as server:
            add_system_tables(server)
            with server.connect() as connection:
                fill(connection, workload)
            yield Target(mariadb=server)
    else:
        with Elasticsearch(folder / "target") as server:
            with Client(server.url, request_timeout=120) as client:
                fill_indexes(client, workload)
            yield Target(elasticsearch=server)
    shutil.rmtree(folder / "target", ignore_errors=True)


def fill_indexes(client: Client, workload: Workload) -> None:
    """The same indexes for every competitor, as setl would create them."""
    shape = workload.shape
    for table in workload.tables:
        client.indices.create(index=table, mappings={"dynamic": True, "properties": shape.fields})
        bulk(client, [
            {"_index": table, "_id": str(row[0]), "_source": document(shape, row)}
            for row in base_rows(workload)
        ])  # fmt: skip


def document(shape: Shape, row: tuple[Any, ...]) -> dict[str, Any]:
    """A row as a document whose fields are what JSON has; decimals become numbers, times ISO."""
    return {
        column.name: _plain(column.field, value)
        for column, value in zip(shape.columns, row, strict=True)
    }


def _plain(field: str, value: Any) -> Any:
    if value is None:
        return None
    if field == "double":
        return float(value)
    return str(value).replace(" ", "T") if field == "date" else value


def add_system_tables(server: MariaDb) -> None:
    """Create what `sql/` describes."""
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in system_table_statements():
            cursor.execute(statement)
