"""Pipelines into a search index."""

import json
import urllib.request
from typing import Any
from urllib.error import HTTPError

from setl.errors import DataError
from tests.integration.pipelines import execute, fresh_name, on_a, one_way

ORDERS = """CREATE TABLE {db}.orders (id BIGINT PRIMARY KEY, user_name VARCHAR(40) NULL,
    price DECIMAL(12,2) NULL, quantity INT NULL, status VARCHAR(10) NULL, created DATETIME(3) NULL)
    CHARACTER SET utf8mb4"""
db = on_a("shop", ORDERS, system_tables=True)


class Index:
    """An index and the little of Elasticsearch's API that the tests need."""

    def __init__(self, server, name):
        self.name, self.url = name, f"{server.url}/{name}"

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def document(self, ident) -> Any:
        try:
            return self.call("GET", f"/_doc/{ident}")["_source"]
        except HTTPError as error:
            if error.code != 404:
                raise
            return None

    def documents(self):
        """All documents by their ids, some thousand at most."""
        self.call("POST", "/_refresh")
        hits = self.call("GET", "/_search?size=5000")["hits"]["hits"]
        return {hit["_id"]: hit["_source"] for hit in hits}


def elasticsearch_target(server):
    return {"type": "elasticsearch", "hosts": [server.url]}


def test_documents_follow_their_rows(site_a, elasticsearch, db, position):
    index = Index(elasticsearch, f"{db}-orders")
    mapping = {
        "from": f"{db}.orders",
        "to": f"{db}-orders",
        "columns": {"buyer": "upper(user_name)", "total": "price * quantity"},
        "where": "status <> 'draft'",
    }
    file = one_way(site_a, elasticsearch_target(elasticsearch), [mapping])
    execute(
        site_a,
        f"INSERT INTO {db}.orders VALUES (1, 'ann 🦊', 2.50, 4, 'new', '2026-01-02 03:04:05.678'),"
        " (2, 'bob', 1, 1, 'draft', NULL), (3, 'cy', NULL, 1, 'new', NULL), (4, 'di', 1, 1, 'new',"
        " NULL)",
        f"UPDATE {db}.orders SET user_name = NULL WHERE id = 3",
        f"UPDATE {db}.orders SET id = 40 WHERE id = 4",
    )
    running = position.lead(file)
    running.applied(6)
    first = index.document(1)
    assert first["buyer"] == "ANN 🦊"
    assert float(first["total"]) == 10
    assert first["user_name"] == "ann 🦊"
    assert first["created"].startswith("2026-01-02T03:04:05.678")
    assert index.document(2) is None
    assert index.document(3)["user_name"] is None
    assert index.document(3)["total"] is None
    assert index.document(4) is None
    assert index.document(40)["buyer"] == "DI"
    execute(
        site_a,
        f"UPDATE {db}.orders SET status = 'draft' WHERE id = 1",
        f"UPDATE {db}.orders SET status = 'paid' WHERE id = 2",
        f"DELETE FROM {db}.orders WHERE id = 40",
    )
    running.applied(9)
    assert index.document(1) is None
    assert index.document(2)["buyer"] == "BOB"
    assert index.document(40) is None


def test_updates_that_change_nothing_in_a_document_are_not_sent(
    site_a, elasticsearch, db, position
):
    index = Index(elasticsearch, f"{db}-orders")
    mapping = {
        "from": f"{db}.orders", "to": f"{db}-orders", "include": ["id", "status"],
        "unchanged": "skip",
    }  # fmt: skip
    file = one_way(site_a, elasticsearch_target(elasticsearch), [mapping])
    execute(site_a, f"INSERT INTO {db}.orders (id, status) VALUES (1, 'new'), (2, 'new')")
    running = position.lead(file)
    running.applied(2)
    written = running.figures.upserts
    execute(site_a, f"UPDATE {db}.orders SET quantity = 7, user_name = 'ann'")
    running.applied(4)
    assert running.figures.upserts == written == 2
    execute(site_a, f"UPDATE {db}.orders SET quantity = 8, status = 'paid' WHERE id = 1")
    execute(site_a, f"UPDATE {db}.orders SET id = 20 WHERE id = 2")
    running.applied(6)
    assert index.document(1) == {"id": 1, "status": "paid"}
    assert index.document(2) is None
    assert index.document(20) == {"id": 20, "status": "new"}
    assert running.figures.upserts == 4


def test_a_insert_partition_applied_again_from_its_beginning_changes_nothing(
    site_a, elasticsearch, db, position
):
    index = Index(elasticsearch, f"{db}-again")
    mapping = {"from": f"{db}.orders", "to": f"{db}-again"}
    file = one_way(site_a, elasticsearch_target(elasticsearch), [mapping], batch_rows=1)
    execute(site_a, f"INSERT INTO {db}.orders (id, user_name) VALUES (1, 'old'), (2, 'gone')")
    execute(site_a, f"UPDATE {db}.orders SET user_name = 'new' WHERE id = 1")
    execute(site_a, f"DELETE FROM {db}.orders WHERE id = 2")
    position.lead(file).applied(4)
    # Another pipeline from the same position is what a leader does that lost its checkpoint.
    again = file.model_copy(update={"channel": fresh_name("again")})
    position.lead(again, nid="n2").applied(4)
    assert index.document(1)["user_name"] == "new"
    assert index.document(2) is None


def test_an_expression_that_fails_on_a_value_is_an_error_with_a_name(
    site_a, elasticsearch, db, position
):
    mapping = {"from": f"{db}.orders", "to": f"{db}-bad", "columns": {"x": "quantity / price"}}
    file = one_way(site_a, elasticsearch_target(elasticsearch), [mapping])
    execute(site_a, f"INSERT INTO {db}.orders (id, price, quantity) VALUES (1, 0, 1)")
    error = position.lead(file).ends()
    assert isinstance(error, DataError)
    assert "DIVIDE_BY_ZERO" in str(error)
