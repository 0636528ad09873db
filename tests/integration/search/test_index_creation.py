"""Indexes that setl creates before the first document."""

import json
import urllib.error
import urllib.request
from typing import Any

from tests.integration.pipelines import execute, fresh_name, on_a
from tests.integration.table_loads.test_table_load import loading, wait_until_loaded
from tests.waiting import eventually

shop = on_a(
    "shop",
    "CREATE TABLE {db}.orders (id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(40),"
    " amount DECIMAL(20,6), at DATETIME(6), kind ENUM('a','b'), raw BLOB, n INT)",
    "CREATE TABLE {db}.items (id INT PRIMARY KEY, order_id BIGINT UNSIGNED, sku CHAR(9),"
    " KEY (order_id))",
    options="CHARACTER SET utf8mb4",
    system_tables=True,
)


def asked(elasticsearch, path, method="GET", body=None) -> Any:
    request = urllib.request.Request(
        f"{elasticsearch.url}/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code


def mapping(elasticsearch, index):
    found = asked(elasticsearch, f"{index}/_mapping")
    assert isinstance(found, dict), found
    (described,) = found.values()
    properties = described["mappings"].get("properties")
    assert properties, "the embedded server shows an index before its fields"
    return properties


def documents(elasticsearch, index):
    asked(elasticsearch, f"{index}/_refresh", "POST")
    hits = asked(elasticsearch, f"{index}/_search?size=100")["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in hits}


def test_an_index_before_the_first_row(site_a, shop, position, elasticsearch):
    made, ready = fresh_name("made"), fresh_name("ready")
    target = {"type": "elasticsearch", "hosts": [elasticsearch.url]}
    table = {
        "from": f"{shop}.orders",
        "columns": {"who": "name", "twice": "n * 2"},
        "nested": [{"from": f"{shop}.items", "field": "items", "on": {"order_id": "id"}}],
    }
    running = position.lead(loading(site_a, target, [{**table, "to": made}], create=True))
    eventually(lambda: mapping(elasticsearch, made), 60)
    text = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 8191}}}
    assert mapping(elasticsearch, made) == {
        "id": {"type": "unsigned_long"},
        "who": text,
        "amount": {"type": "double", "fields": {"exact": {"type": "keyword"}}},
        "at": {"type": "date", "format": "strict_date_optional_time"},
        "kind": {"type": "keyword"},
        "raw": {"type": "binary"},
        "n": {"type": "long"},
        "twice": {"type": "long"},
        "items": {
            "type": "nested",
            "properties": {
                "id": {"type": "long"},
                "order_id": {"type": "unsigned_long"},
                "sku": text,
            },
        },
    }
    settings = asked(elasticsearch, f"{made}/_settings")
    assert settings[made]["settings"]["index"]["gc_deletes"] == "1h"
    wait_until_loaded(running)
    execute(
        site_a,
        f"INSERT INTO {shop}.items VALUES (1, 1, 'x'), (2, 1, 'y'), (3, 2, 'z')",
        f"INSERT INTO {shop}.orders VALUES (1, 'ann', 1.5, '2026-01-02 03:04:05.6', 'a', 'r', 4),"
        " (2, 'bob', NULL, NULL, 'b', NULL, NULL)",
    )
    eventually(lambda: len(documents(elasticsearch, made)) == 2, 60)
    asked(elasticsearch, ready, "PUT", {"mappings": {"properties": mapping(elasticsearch, made)}})
    wait_until_loaded(position.lead(loading(site_a, target, [{**table, "to": ready}])))
    eventually(lambda: documents(elasticsearch, made) == documents(elasticsearch, ready), 60)
    found = documents(elasticsearch, made)
    assert {key: len(document["items"]) for key, document in found.items()} == {"1": 2, "2": 1}


def test_an_index_that_is_there_is_left_alone(site_a, shop, position, elasticsearch):
    index = fresh_name("own")
    own = {"mappings": {"dynamic": False, "properties": {"name": {"type": "keyword"}}}}
    asked(elasticsearch, index, "PUT", own)
    target = {"type": "elasticsearch", "hosts": [elasticsearch.url]}
    table = {"from": f"{shop}.orders", "to": index, "include": ["id", "name"]}
    running = position.lead(loading(site_a, target, [table], create=True))
    wait_until_loaded(running)
    assert mapping(elasticsearch, index) == {"name": {"type": "keyword"}}
