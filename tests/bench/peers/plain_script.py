"""Scripts that a person would write instead of setl, each in a process of its own.

``python -m tests.bench.peers.plain_script changes`` reads the binlog with `mysql-replication`,
keeps the last image of each key until enough rows have gathered, then writes them: multi-row
upserts and deletes with `pymysql`, or `elasticsearch.helpers.bulk`. It keeps no position, no order
between keys and no old key when a key changes.

``python -m tests.bench.peers.plain_script documents`` writes documents that are ready with
`elasticsearch.helpers.bulk`. No change data at all: it is here to tell what the server takes.

Both are here for their speed. Each is told its settings as a line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pymysql
from elasticsearch import Elasticsearch
from elasticsearch.helpers import bulk
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from tests.bench.servers import document
from tests.bench.workloads import NARROW, PLAIN, WIDE

_turns: list[int] = []  # the file descriptor that replaces standard output

Images = dict[str, dict[Any, dict[str, Any] | None]]
"""Table -> key -> last image; None when the row was deleted."""

Write = Callable[[Images], None]

_CHUNK = 2_000
_SHAPES = {"wide": WIDE, "load": PLAIN}


@dataclass(frozen=True)
class Settings:
    """What the script for changes is told.

    Attributes:
        source: keyword arguments of `pymysql.connect` for the source.
        start: binlog file and offset to start from.
        end: binlog file and offset at which it is done.
        schema: the tables' schema.
        tables: the tables; `key` is their primary key.
        key: see `tables`.
        target: keyword arguments of `pymysql.connect`, or `{"url": ...}` of Elasticsearch.
        batch_rows: row changes after which it writes, at the end of a transaction.
    """

    source: dict[str, Any]
    start: tuple[str, int]
    end: tuple[str, int]
    schema: str
    tables: list[str]
    key: str
    target: dict[str, Any]
    batch_rows: int = 10_000


def changes() -> None:
    """Run until the end position is applied."""
    settings = Settings(**logged_settings())
    write = (elasticsearch_writer if "url" in settings.target else mysql_writer)(settings)
    wait_for_go()
    began = time.perf_counter()
    count = run(settings, write)
    answer(count, time.perf_counter() - began)


def run(settings: Settings, write: Write) -> int:
    """Apply everything between start and end; returns the number of row changes."""
    images: Images = {}
    count = pending = 0
    key = settings.key
    for event in events(settings):
        if isinstance(event, XidEvent):
            if pending >= settings.batch_rows:
                write(images)
                images, pending = {}, 0
            continue
        changed = event.rows
        table = images.setdefault(event.table, {})
        if isinstance(event, DeleteRowsEvent):
            for row in changed:
                table[row["values"][key]] = None
        else:
            image = "after_values" if isinstance(event, UpdateRowsEvent) else "values"
            for row in changed:
                values = row[image]
                table[values[key]] = values
        count += len(changed)
        pending += len(changed)
    if images:
        write(images)
    return count


def events(settings: Settings) -> Iterator[Any]:
    """The row and commit events between start and end.

    The server is MariaDB, yet `is_mariadb` stays False: with it the reader ignores `log_file`
    and `log_pos` and starts at the oldest binlog. Without it they hold (`resume_stream` makes
    it take the offset too), and MariaDB's own events are understood all the same.
    """
    reader = BinLogStreamReader(
        connection_settings=settings.source,
        server_id=990_017,
        is_mariadb=False,
        log_file=settings.start[0],
        log_pos=settings.start[1],
        resume_stream=True,
        blocking=False,
        only_schemas=[settings.schema],
        only_tables=settings.tables,
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent, XidEvent],
    )
    try:
        for event in reader:
            yield event
            if (reader.log_file, reader.log_pos) >= tuple(settings.end):
                return
    finally:
        reader.close()


def mysql_writer(settings: Settings) -> Write:
    """Writes with multi-row upserts and deletes, one transaction a batch."""
    connection = pymysql.connect(charset="utf8mb4", autocommit=False, **settings.target)
    cursor = connection.cursor()

    def write(images: Images) -> None:
        for table, rows in images.items():
            stored = [row for row in rows.values() if row is not None]
            gone = [key for key, row in rows.items() if row is None]
            name = f"`{settings.schema}`.`{table}`"
            if stored:
                cursor.executemany(upsert(name, list(stored[0]), settings.key),
                                   [tuple(row.values()) for row in stored])  # fmt: skip
            for first in range(0, len(gone), 1000):
                cursor.execute(
                    f"DELETE FROM {name} WHERE `{settings.key}` IN %s",
                    (gone[first : first + 1000],),
                )
        connection.commit()

    return write


def upsert(name: str, columns: list[str], key: str) -> str:
    """The statement, as `executemany` takes it to write many rows at once."""
    names = ", ".join(f"`{c}`" for c in columns)
    updates = ", ".join(f"`{c}`=VALUES(`{c}`)" for c in columns if c != key)
    return (
        f"INSERT INTO {name} ({names}) VALUES ({', '.join(['%s'] * len(columns))})"
        f" ON DUPLICATE KEY UPDATE {updates}"
    )


def elasticsearch_writer(settings: Settings) -> Write:
    """Writes with `helpers.bulk`: an index action for each last image, or a delete."""
    client = Elasticsearch(settings.target["url"], request_timeout=120)

    def write(images: Images) -> None:
        # A row that came and went within a batch was never there to be deleted.
        bulk(client, actions(images), chunk_size=2_000, ignore_status=404)

    def actions(images: Images) -> Iterator[dict[str, Any]]:
        for index, rows in images.items():
            for key, row in rows.items():
                if row is None:
                    yield {"_op_type": "delete", "_index": index, "_id": str(key)}
                else:
                    yield {"_op_type": "index", "_index": index, "_id": str(key), "_source": row}

    return write


@dataclass(frozen=True)
class Rows:
    """What the script for documents that are ready is told.

    Attributes:
        source: keyword arguments of `pymysql.connect` for the server that has the rows.
        schema: the table's schema.
        workload: its workload.
        table: the table, and the index.
        url: of Elasticsearch.
    """

    source: dict[str, Any]
    schema: str
    workload: str
    table: str
    url: str


def documents() -> None:
    """Build the documents of a whole table, then only write them."""
    settings = Rows(**logged_settings())
    shape = _SHAPES.get(settings.workload, NARROW)
    connected = pymysql.connect(charset="utf8mb4", **settings.source)
    with connected as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {settings.schema}.`{settings.table}`")
        actions = [
            {"_op_type": "index", "_index": settings.table, "_id": str(row[0]),
             "_source": document(shape, row)}
            for row in cursor
        ]  # fmt: skip
    with Elasticsearch(settings.url, request_timeout=120) as client:
        client.info()
        wait_for_go()
        began = time.perf_counter()
        bulk(client, actions, chunk_size=_CHUNK)
        answer(len(actions), time.perf_counter() - began)


# -- how a script is measured: settings, ready, go, its answer, and waiting to be let go


def logged_settings() -> dict[str, Any]:
    """What it is told, the first line of standard input.

    From now on whatever else is printed goes to standard error: a JVM in this process logs to
    standard output.
    """
    _turns.append(os.dup(1))
    os.dup2(2, 1)
    reported: dict[str, Any] = json.loads(sys.stdin.readline())
    return reported


def wait_for_go() -> None:
    """Say that everything is ready, and wait."""
    _say("ready")
    sys.stdin.readline()


def answer(rows: int, seconds: float) -> None:
    """Say what it took, and stay until what this process used has been noted."""
    _say(json.dumps({"rows": rows, "seconds": seconds}))
    sys.stdin.readline()


def _say(line: str) -> None:
    os.write(_turns[0], f"{line}\n".encode())


if __name__ == "__main__":
    {"changes": changes, "documents": documents}[sys.argv[1]]()
