"""Scripts that a person would write instead of setl, each in a process of its own.

``python -m tests.bench.peers.plain_script changes`` reads the binlog with `mysql-replication`,
keeps the last image of each key until enough rows have gathered, then writes them: multi-row
upserts and deletes with `pymysql`, or `elasticsearch.helpers.bulk`. It keeps no position, no order
between keys and no old key when a key changes.

``python -m tests.bench.peers.plain_script documents`` writes documents that are ready with
`elasticsearch.helpers.bulk`. No change data at all: it shows what the server takes.

Both are here for their speed. Each reads its settings as a line of JSON.
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

KEY = "id"
_BATCH_ROWS = 10_000  # row changes after which it writes, at the end of a transaction
_CHUNK = 2_000
_SHAPES = {"wide": WIDE, "load": PLAIN}


@dataclass(frozen=True)
class Settings:
    """What a script is given."""

    source: dict[str, Any]  # arguments of `pymysql.connect`
    start: tuple[str, int]  # binlog file and offset
    end: tuple[str, int]
    schema: str
    workload: str
    tables: list[str]  # whose primary key is `KEY`
    target: dict[str, Any]  # as `source`, or the URL of Elasticsearch

    @property
    def writer(self) -> Write:
        return (elasticsearch_writer if "url" in self.target else mysql_writer)(self)


def changes() -> None:
    """Run until the end position is applied."""
    settings = Settings(**read_settings())
    write = settings.writer
    wait_for_go()
    began = time.perf_counter()
    count = run(settings, write)
    answer(count, time.perf_counter() - began)


def run(settings: Settings, write: Write) -> int:
    """Apply everything between start and end; returns the number of row changes."""
    images: Images = {}
    count = pending = 0
    for event in events(settings):
        if isinstance(event, XidEvent):
            if pending >= _BATCH_ROWS:
                write(images)
                images, pending = {}, 0
            continue
        changed: list[Any] = event.rows
        table, gone = images.setdefault(event.table, {}), isinstance(event, DeleteRowsEvent)
        image = "after_values" if isinstance(event, UpdateRowsEvent) else "values"
        for row in changed:
            values = row[image]
            table[values[KEY]] = None if gone else values
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
                cursor.executemany(upsert(name, list(stored[0])),
                                   [tuple(row.values()) for row in stored])  # fmt: skip
            for first in range(0, len(gone), 1000):
                some = gone[first : first + 1000]
                cursor.execute(f"DELETE FROM {name} WHERE `{KEY}` IN %s", (some,))
        connection.commit()

    return write


def upsert(name: str, columns: list[str]) -> str:
    """The statement, as `executemany` takes it to write many rows at once."""
    names = ", ".join(f"`{c}`" for c in columns)
    updates = ", ".join(f"`{c}`=VALUES(`{c}`)" for c in columns if c != KEY)
    return (
        f"INSERT INTO {name} ({names}) VALUES ({', '.join(['%s'] * len(columns))})"
        f" ON DUPLICATE KEY UPDATE {updates}"
    )


def elasticsearch_writer(settings: Settings) -> Write:
    """Writes with `helpers.bulk`: an index action for each last image, or a delete."""
    client = Elasticsearch(settings.target["url"], request_timeout=120)

    def write(images: Images) -> None:
        # A row that came and went within a batch was never there to be deleted.
        bulk(client, actions(images), chunk_size=_CHUNK, ignore_status=404)

    def actions(images: Images) -> Iterator[dict[str, Any]]:
        for index, rows in images.items():
            for key, row in rows.items():
                if row is None:
                    yield {"_op_type": "delete", "_index": index, "_id": str(key)}
                else:
                    yield {"_op_type": "index", "_index": index, "_id": str(key), "_source": row}

    return write


def documents() -> None:
    """Build the documents of a whole table, then only write them."""
    settings = Settings(**read_settings())
    shape, table = _SHAPES.get(settings.workload, NARROW), settings.tables[0]
    connected = pymysql.connect(charset="utf8mb4", **settings.source)
    with connected as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {settings.schema}.`{table}`")
        actions = [
            {"_op_type": "index", "_index": table, "_id": str(row[0]),
             "_source": document(shape, row)}
            for row in cursor
        ]  # fmt: skip
    with Elasticsearch(settings.target["url"], request_timeout=120) as client:
        client.info()
        wait_for_go()
        began = time.perf_counter()
        bulk(client, actions, chunk_size=_CHUNK)
        answer(len(actions), time.perf_counter() - began)


# -- how a script is measured: settings, ready, go, its answer, and waiting to be let go


def read_settings() -> dict[str, Any]:
    """The first line of standard input.

    From now on whatever else is printed goes to standard error: a JVM in this process logs to
    standard output.
    """
    _turns.append(os.dup(1))
    os.dup2(2, 1)
    return json.loads(sys.stdin.readline())


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
