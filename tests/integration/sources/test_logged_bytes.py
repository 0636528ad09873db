"""MariaDB's own types in documents: a SELECT shows text, and a binlog has bytes."""

import base64
import ipaddress
import uuid

import pytest
from elasticsearch import Elasticsearch

from setl.bulk.verify_target import VerifySettings
from setl.operate.verify import verify_pipeline
from tests.integration.pipelines import execute, fresh_name
from tests.integration.table_loads.test_requested_loads import Asking
from tests.integration.table_loads.test_table_load import loading, wait_until_loaded
from tests.mysql_servers import needs_mariadb
from tests.waiting import eventually

KEYS = {
    "UUID": ["123e4567-e89b-12d3-a456-426655440000", "323e4567-e89b-42d3-a456-426655440000"],
    "INET4": ["10.1.2.3", "0.0.0.0"],
    "INET6": ["2001:db8::1", "::"],
}
ONLY_MARIADB = pytest.mark.family("mariadb", why="MySQL has no such types")


def logged(kind, text):
    data = uuid.UUID(text).bytes if kind == "UUID" else ipaddress.ip_address(text).packed
    return base64.b64encode(data).decode()


@ONLY_MARIADB
@pytest.mark.parametrize("way", ["event", "source", "nested"])
def test_rows_are_the_same_documents_whichever_way_they_come(
    servers, elasticsearch, position, spark, way
):
    """Nested rows are always looked up at the source; so are rows with `read: source`."""
    server, _ = servers
    with server.connect() as connection:
        needs_mariadb(connection, 10, 10, what="UUID and INET4")
    db = fresh_name("logged")
    execute(server, f"CREATE DATABASE {db}")
    tables = {kind: f"{db}.{kind.lower()}" for kind in KEYS}
    indexes = {kind: f"{db}-{kind.lower()}" for kind in KEYS}
    entries = []
    for kind, keys in KEYS.items():
        table = tables[kind]
        execute(
            server,
            f"CREATE TABLE {table} (k {kind} PRIMARY KEY, other {kind}, v INT)",
            f"CREATE TABLE {table}_items (id INT PRIMARY KEY, parent {kind}, KEY (parent))",
            f"INSERT INTO {table} VALUES ('{keys[0]}', '{keys[1]}', 1)",
            f"INSERT INTO {table}_items VALUES (1, '{keys[0]}')",
        )
        nested = {"field": "items", "from": f"{table}_items", "on": {"parent": "k"}}
        more = {"nested": [nested]} if way == "nested" else {"read": way}
        entries.append({"from": table, "to": indexes[kind], **more})
    target = {"type": "elasticsearch", "hosts": [elasticsearch.url]}
    file = loading(server, target, entries)

    def found():
        client.indices.refresh(index=f"{db}-*")
        hits = client.search(index=f"{db}-*", size=100)["hits"]["hits"]
        return sorted((h["_index"], h["_id"], h["_source"]) for h in hits)

    def expected(values):
        documents = []
        for kind, keys in KEYS.items():
            for key, v in zip(keys, values, strict=False):
                of_key = logged(kind, key)
                row = {"k": of_key, "other": logged(kind, keys[1]), "v": v}
                if way == "nested":
                    items = [{"id": 1, "parent": of_key}] if key == keys[0] else []
                    row["items"] = items
                documents.append((indexes[kind], of_key, row))
        return sorted(documents)

    with Elasticsearch(elasticsearch.url) as client:
        asking = Asking(position, file)
        running = asking.running
        wait_until_loaded(running)
        assert found() == expected([1])
        for kind, keys in KEYS.items():
            insert = f"INSERT INTO {tables[kind]} VALUES ('{keys[1]}', '{keys[1]}', 2)"
            execute(server, insert, f"UPDATE {tables[kind]} SET v = 2")
        eventually(lambda: found() == expected([2, 2]), 60)
        once = VerifySettings(rechecks=0)
        verdicts = verify_pipeline(spark, file.pipeline("p"), settings=once)
        assert all(verdict.equal for verdict in verdicts), verdicts
        # As an operator names a row that a document lacks.
        for kind, keys in KEYS.items():
            client.delete(index=indexes[kind], id=logged(kind, keys[0]), refresh=True)
            asking.ask(tables=(tables[kind],), key=("k",), keys=((keys[0],),), reason="resend")
        eventually(lambda: found() == expected([2, 2]), 60)
        assert running.error is None
    execute(server, f"DROP DATABASE {db}")
