"""Documents that are ready, through `elasticsearch.helpers.bulk`, in one process.

As `python -m tests.bench.bulk_script`: it builds the documents of a whole table, and then only
writes them. No change data at all: it is here to tell what the server takes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import pymysql
from elasticsearch import Elasticsearch
from elasticsearch.helpers import bulk

from tests.bench.plain_script import answer, told_settings, wait_for_go
from tests.bench.servers import document
from tests.bench.workloads import NARROW, PLAIN, WIDE

_CHUNK = 2_000
_SHAPES = {"wide": WIDE, "load": PLAIN}


@dataclass(frozen=True)
class Settings:
    """What the script is told.

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


def main() -> None:
    """Run as the module says."""
    settings = Settings(**told_settings())
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


if __name__ == "__main__":
    main()
