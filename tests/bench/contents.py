"""Whether a target holds what the source holds: every row of every table, and every field."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from elasticsearch import Elasticsearch as Client

from setl_embedded import DatabaseServer
from tests.bench.servers import Target
from tests.bench.workloads import SCHEMA, Shape, Workload

_PAGE = 2_000
_SHOWN = 20


def differences(source: DatabaseServer, target: Target, workload: Workload) -> list[str]:
    """What is wrong with the target, in words; empty if nothing is."""
    if target.database is not None:
        return _table_differences(source, target.database, workload)[:_SHOWN]
    with Client(target.url, request_timeout=120) as client:
        found: list[str] = []
        for table in workload.tables:
            found += _index_differences(source, client, table, workload.shape)
        return found[:_SHOWN]


def _table_differences(
    source: DatabaseServer, target: DatabaseServer, workload: Workload
) -> list[str]:
    found: list[str] = []
    with source.connect() as one, target.connect() as two:
        for table in workload.tables:
            for question in ("SELECT COUNT(*) FROM {}", "CHECKSUM TABLE {} EXTENDED"):
                asked = question.format(f"{SCHEMA}.`{table}`")
                answers: list[Any] = []
                for connection in (one, two):
                    with connection.cursor() as cursor:
                        cursor.execute(asked)
                        answers.append(cursor.fetchone()[-1])
                if answers[0] != answers[1]:
                    found.append(f"{asked}: {answers[0]} at the source, {answers[1]} at the target")
    return found


def _index_differences(
    source: DatabaseServer, client: Client, table: str, shape: Shape
) -> list[str]:
    client.indices.refresh(index=table)
    names = [column.name for column in shape.columns]
    found: list[str] = []
    with source.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {SCHEMA}.`{table}` ORDER BY id")
        documents = int(client.count(index=table)["count"])
        if documents != cursor.rowcount:
            return [f"{table}: {documents} documents for {cursor.rowcount} rows"]
        while rows := cursor.fetchmany(_PAGE):
            answer = client.mget(index=table, ids=[str(row[0]) for row in rows])
            for row, document in zip(rows, answer["docs"], strict=True):
                if not document.get("found"):
                    found.append(f"{table}: no document {document['_id']}")
                    continue
                fields = document["_source"]
                wrong = [n for n, value in zip(names, row, strict=True)
                         if not _same(value, fields.get(n))]  # fmt: skip
                if wrong:
                    found.append(f"{table}: document {document['_id']}: {', '.join(wrong)}")
    return found


def _same(value: Any, field: Any) -> bool:
    """A decimal or a time may be rendered in any sensible way."""
    if value is None or field is None:
        return value is field
    if isinstance(value, (Decimal, float)):
        # The embedded server does not keep the last digit of a double.
        return abs(float(value) - float(field)) <= 1e-12 * max(1.0, abs(float(value)))
    if isinstance(value, datetime):
        return value == datetime.fromisoformat(str(field).rstrip("Z")).replace(tzinfo=None)
    return bool(value == field)
