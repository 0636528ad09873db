"""Ids and routing of documents, and which tables share an index, through whole pipelines."""

import pytest
from elasticsearch import Elasticsearch

from setl.operate.verify import verify_pipeline
from tests.integration.pipelines import execute, fresh_name, on_a, one_way

ORDERS = """CREATE TABLE {db}.{table} (
    shop INT, id INT, city VARCHAR(20) NULL, amount DECIMAL(10,2), PRIMARY KEY (shop, id))"""


TABLES = [ORDERS.replace("{table}", table) for table in ("orders", "part_1", "part_2")]
db = on_a("docs", *TABLES, system_tables=True)


@pytest.fixture
def client(elasticsearch):
    with Elasticsearch(elasticsearch.url) as client:
        yield client


def documents(client, index):
    client.indices.refresh(index=index)
    hits = client.search(index=index, size=1000)["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in hits}


def pipeline(server, search, *tables):
    return one_way(server, {"type": "elasticsearch", "hosts": [search.url]}, list(tables))


def verified(spark, file):
    """How many rows each table has in its target; nothing may differ."""
    verdicts = verify_pipeline(spark, file.pipelines[0])
    assert [v for v in verdicts if v.missing or v.extra or v.different] == []
    return sorted(v.target_rows for v in verdicts)


@pytest.mark.parametrize(
    "more",
    [{}, {"columns": {"twice": "amount * 2"}, "where": "amount > 0"}],
    ids=["plain", "expressions"],
)
def test_ids_and_routing_follow_the_row(site_a, elasticsearch, client, db, position, more):
    # The embedded server has one document for each id, whatever its routing, and tells the routing
    # only to who gets a document with it: no search does, so `setl verify` cannot be tried here.
    index = fresh_name("orders")

    def found(id_, city):
        routed = {"routing": city} if city else {}
        (answer,) = client.mget(index=index, docs=[{"_id": id_, **routed}])["docs"]
        if not answer["found"]:
            return None
        assert answer.get("_routing") == city
        assert answer["_source"]["city"] == city
        return answer["_source"]

    mapping = {"from": f"{db}.orders", "to": index, "id": "{table}:{shop}-{id}", "routing": "city"}
    file = pipeline(site_a, elasticsearch, {**mapping, **more})
    execute(
        site_a,
        f"INSERT INTO {db}.orders VALUES (1, 1, 'x', 1), (1, 2, 'y', 2), (1, 3, NULL, 3),"
        " (2, 1, 'x', 4)",
    )
    running = position.lead(file)
    running.applied(4, timeout=180)
    assert sorted(documents(client, index)) == [
        "orders:1-1", "orders:1-2", "orders:1-3", "orders:2-1"
    ]  # fmt: skip
    assert found("orders:1-1", "x")
    assert found("orders:1-3", None)
    execute(
        site_a,
        f"UPDATE {db}.orders SET city = 'z' WHERE shop = 1 AND id = 1",
        f"UPDATE {db}.orders SET shop = 9 WHERE shop = 1 AND id = 2",
        f"UPDATE {db}.orders SET city = NULL WHERE shop = 2",
        f"DELETE FROM {db}.orders WHERE id = 3",
    )
    running.applied(8)
    assert sorted(documents(client, index)) == ["orders:1-1", "orders:2-1", "orders:9-2"]
    assert found("orders:1-1", "z")
    assert found("orders:9-2", "y")
    assert found("orders:2-1", None)
    execute(site_a, f"UPDATE {db}.orders SET amount = NULL WHERE shop = 2")
    running.applied(9)
    if more:
        # `where` is not true any more; the delete has to name the routing, too.
        assert found("orders:2-1", None) is None
    else:
        document = found("orders:2-1", None)
        assert document is not None
        assert document["amount"] is None


def test_several_tables_in_one_index_keep_their_documents(
    site_a, elasticsearch, client, db, position, spark
):
    index = fresh_name("all")
    shared = {"to": index, "id": "{table}/{shop}/{id}"}
    file = pipeline(
        site_a, elasticsearch, {"from": f"{db}.part_*", **shared},
        {"from": f"{db}.orders", "to": index, "id": "order-{shop}-{id}"},
    )  # fmt: skip
    tables = ("part_1", "part_2", "orders")
    # In one transaction, so that they meet in one load.
    with site_a.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"INSERT INTO {db}.{table} VALUES (1, 1, '{table}', 1), (1, 2, 'y', 2)")
        connection.commit()
    running = position.lead(file)
    running.applied(6)
    found = documents(client, index)
    assert {key: doc["city"] for key, doc in found.items() if key.endswith("1")} == {
        "part_1/1/1": "part_1", "part_2/1/1": "part_2", "order-1-1": "orders",
    }  # fmt: skip
    execute(site_a, f"DELETE FROM {db}.part_1 WHERE id = 1")
    running.applied(7)
    assert sorted(documents(client, index)) == [
        "order-1-1", "order-1-2", "part_1/1/2", "part_2/1/1", "part_2/1/2",
    ]  # fmt: skip
    assert verified(spark, file) == [1, 2, 2]


def test_one_table_in_several_indexes(site_a, elasticsearch, client, db, position, spark):
    first, second = fresh_name("first"), fresh_name("second")
    file = pipeline(
        site_a, elasticsearch, {"from": f"{db}.orders", "to": first},
        {"from": f"{db}.orders", "to": second, "id": "{id}@{shop}", "exclude": ["amount"],
         "where": "city is not null"},
    )  # fmt: skip
    execute(site_a, f"INSERT INTO {db}.orders VALUES (1, 1, 'x', 1), (1, 2, NULL, 2)")
    running = position.lead(file)
    running.applied(4, timeout=180)
    assert sorted(documents(client, first)) == ["1,1", "1,2"]
    assert documents(client, second) == {"1@1": {"shop": 1, "id": 1, "city": "x"}}
    execute(site_a, f"UPDATE {db}.orders SET city = NULL")
    running.applied(6)
    assert documents(client, second) == {}
    assert verified(spark, file) == [0, 2]


def test_shards_of_one_logical_table_may_partition_their_ids(
    site_a, elasticsearch, client, db, position, spark
):
    index = fresh_name("whole")
    mapping = {"from": f"{db}.part_*", "to": index, "id": "{shop}-{id}"}
    file = pipeline(site_a, elasticsearch, mapping)
    execute(
        site_a,
        f"INSERT INTO {db}.part_1 VALUES (1, 1, 'x', 1)",
        f"INSERT INTO {db}.part_2 VALUES (2, 1, 'y', 1)",
    )
    position.lead(file).applied(2)
    assert sorted(documents(client, index)) == ["1-1", "2-1"]
    assert verified(spark, file) == [2]
