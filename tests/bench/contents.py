"""Checks that a competitor's target holds what the source holds, whatever it claims itself."""

from __future__ import annotations

from typing import Any

from elasticsearch import Elasticsearch as Client

from setl_embedded import MariaDb
from tests.bench.servers import Target
from tests.bench.workloads import COLUMNS, SCHEMA, Workload

_PAGE = 2_000


def differences(source: MariaDb, target: Target, workload: Workload) -> list[str]:
    """What is wrong with the target, in words; empty if nothing is."""
    if target.elasticsearch is None:
        return _table_differences(source, target.mysql, workload)
    with Client(target.elasticsearch.url, request_timeout=120) as client:
        return _index_differences(source, client, workload)


def _table_differences(source: MariaDb, target: MariaDb, workload: Workload) -> list[str]:
    found: list[str] = []
    for question in ("SELECT COUNT(*) FROM {}", "CHECKSUM TABLE {} EXTENDED"):
        asked = question.format(f"{SCHEMA}.`{workload.table}`")
        there, here = _last(source, asked), _last(target, asked)
        if there != here:
            found.append(f"{asked}: {there} at the source, {here} at the target")
    return found


def _last(server: MariaDb, question: str) -> Any:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(question)
        row = cursor.fetchone()
        return row[-1] if row else None


def _index_differences(source: MariaDb, client: Client, workload: Workload) -> list[str]:
    """Compares field by field; a decimal or time may be rendered in any sensible way."""
    client.indices.refresh(index=workload.table)
    count = int(client.count(index=workload.table)["count"])
    if count != workload.rows:
        return [f"{count} documents for {workload.rows} rows"]
    found: list[str] = []
    with source.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {SCHEMA}.`{workload.table}` ORDER BY id")
        while rows := cursor.fetchmany(_PAGE):
            ids = [str(row[0]) for row in rows]
            answer = client.mget(index=workload.table, ids=ids)
            for row, document in zip(rows, answer["docs"], strict=True):
                if not document.get("found"):
                    found.append(f"no document {document['_id']}")
                elif wrong := _wrong_fields(row, document["_source"]):
                    found.append(f"document {document['_id']}: {', '.join(wrong)}")
    return found[:20]


def _wrong_fields(row: tuple[Any, ...], document: dict[str, Any]) -> list[str]:
    return [
        name
        for name, value in zip(COLUMNS, row, strict=True)
        if not _same(name, value, document.get(name))
    ]


def _same(name: str, value: Any, field: Any) -> bool:
    if value is None or field is None:
        return value is field
    if name in {"price", "score"}:
        # The embedded server does not keep the last digit of a double.
        return abs(float(value) - float(field)) <= 1e-12 * max(1.0, abs(float(value)))
    if name == "created":
        shown = str(field).replace("T", " ").rstrip("Z")
        return shown.partition(".")[0] == f"{value:%Y-%m-%d %H:%M:%S}" and (
            float(f"0{shown[19:]}" if shown[19:] else 0) == value.microsecond / 1e6
        )
    return bool(value == field)
