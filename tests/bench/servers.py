"""Servers for one measurement: started for it, with nothing in them, and removed after it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elasticsearch import Elasticsearch as Client

from setl.mysql.statements import system_table_statements
from setl_embedded import Elasticsearch, MariaDb
from tests.bench.workloads import COLUMNS, Workload, create_table

# The same index for every competitor, as setl would create it: what is indexed costs time.
_TEXT = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 8191}}}
_FIELDS = {
    "id": {"type": "long"},
    "quantity": {"type": "long"},
    "name": _TEXT,
    "price": {"type": "double"},
    "created": {"type": "date", "format": "strict_date_optional_time"},
    "coupon": _TEXT,
    "note": _TEXT,
    "score": {"type": "double"},
}
assert tuple(_FIELDS) == COLUMNS


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
def source_server(folder: Path) -> Iterator[MariaDb]:
    """A server to read from, with setl's system tables."""
    with MariaDb(folder / "source", "source", server_id=11) as server:
        add_system_tables(server)
        yield server
    shutil.rmtree(folder / "source", ignore_errors=True)


@contextmanager
def fresh_target(folder: Path, kind: str, workload: Workload) -> Iterator[Target]:
    """A target with an empty table or index; what it holds is gone at the end.

    Args:
        folder: where it may keep its data.
        kind: mysql or elasticsearch.
        workload: whose table it is for.
    """
    if kind == "mysql":
        with MariaDb(folder / "target", "target", server_id=12) as server:
            add_system_tables(server)
            with server.connect() as connection:
                create_table(connection, workload)
            yield Target(mariadb=server)
    else:
        with Elasticsearch(folder / "target") as server:
            with Client(server.url) as client:
                client.indices.create(
                    index=workload.table, mappings={"dynamic": True, "properties": _FIELDS}
                )
            yield Target(elasticsearch=server)
    shutil.rmtree(folder / "target", ignore_errors=True)


def add_system_tables(server: MariaDb) -> None:
    """Create what `sql/` describes."""
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in system_table_statements():
            cursor.execute(statement)
