"""Servers for one measurement: started for it, with nothing in them, and removed after it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import click
from elasticsearch import Elasticsearch as Client
from elasticsearch.helpers import bulk

from setl.systems.mysql.sql_files import system_table_statements
from setl_embedded import DatabaseServer, Elasticsearch, MariaDb, MySql
from tests.bench.workloads import Shape, Workload, base_rows, fill

# What is committed is on disk, as with a MariaDB as it comes and with any that matters. For tests
# the embedded one is more careless, which would favour whoever commits most often.
_DURABLE = ("--innodb-flush-log-at-trx-commit=1",)

FAMILIES: dict[str, type[MariaDb | MySql]] = {"mariadb": MariaDb, "mysql": MySql}


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
    """Where one peer writes to: one of the two."""

    database: DatabaseServer | None = None
    elasticsearch: Elasticsearch | None = None

    @property
    def mysql(self) -> DatabaseServer:
        return cast("DatabaseServer", self.database)

    @property
    def url(self) -> str:
        return cast("Elasticsearch", self.elasticsearch).url

    @property
    def settings(self) -> dict[str, Any]:
        """For a client: arguments of `pymysql.connect`, or ``{"url": …}``."""
        return mysql_settings(self.database) if self.database else {"url": self.url}

    @property
    def pid(self) -> int:
        return cast("Elasticsearch", self.database or self.elasticsearch).pid


def mysql_settings(server: DatabaseServer) -> dict[str, Any]:
    """Arguments of `pymysql.connect`."""
    return {name: getattr(server, name) for name in ("host", "port", "user", "password")}


def add_system_tables(server: DatabaseServer) -> None:
    """Create what `sql/` describes."""
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in system_table_statements():
            cursor.execute(statement)


@contextmanager
def source_server(folder: Path, family: str = "mariadb") -> Iterator[DatabaseServer]:
    """A server to read from, with setl's system tables."""
    with FAMILIES[family](folder / "source", "source", server_id=11) as server:
        add_system_tables(server)
        yield server
    shutil.rmtree(folder / "source", ignore_errors=True)


@contextmanager
def disguised(server: DatabaseServer) -> Iterator[DatabaseServer]:
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
    """A target with what is there before a workload begins; what it holds is gone at the end."""
    folder = folder / "target"
    if kind == "mysql":
        with FAMILIES[family](folder, "target", 12, options=(*_DURABLE, *options)) as server:
            add_system_tables(server)
            with server.connect() as connection:
                fill(connection, workload)
            yield Target(server)
    else:
        with Elasticsearch(folder) as search:
            with Client(search.url, request_timeout=120) as client:
                fill_indexes(client, workload)
            yield Target(elasticsearch=search)
    shutil.rmtree(folder, ignore_errors=True)


def fill_indexes(client: Client, workload: Workload) -> None:
    """The same indexes for every peer, as setl would create them."""
    shape = workload.shape
    fields = {column.name: column.field for column in shape.columns}
    for table in workload.tables:
        client.indices.create(index=table, mappings={"dynamic": True, "properties": fields})
        bulk(client, [
            {"_index": table, "_id": str(row[0]), "_source": document(shape, row)}
            for row in base_rows(workload)
        ])  # fmt: skip


def document(shape: Shape, row: tuple[Any, ...]) -> dict[str, Any]:
    """A row as a document whose fields are what JSON has; decimals become numbers, times ISO."""
    return {
        column.name: _in_json(column.field["type"], value)
        for column, value in zip(shape.columns, row, strict=True)
    }


def _in_json(field: str, value: Any) -> Any:
    if value is None:
        return None
    if field == "double":
        return float(value)
    return str(value).replace(" ", "T") if field == "date" else value
