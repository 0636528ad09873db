"""A pipeline into OpenSearch, from the check of its channel to the comparison of its documents.

What all indexes share is tested with Elasticsearch; here is what another client and another way of
reading could break. The server is one in memory that keeps the versions of deleted documents.
"""

import pytest

from setl.bulk.verify_target import VerifySettings
from setl.errors import TargetReplacedError
from setl.load.deadletters.dead_letter import State
from setl.model.document import DocumentForm
from setl.model.schema import Column, Kind
from setl.operate.verify import verify_pipeline
from setl.run.targets import identities
from setl.systems.opensearch.endpoint import OpenSearchEndpoint
from setl.systems.registry import system_of
from setl.systems.search_index.client import make_client
from setl.systems.search_index.index_target import DocumentShape, IndexTarget
from tests.checking import check_channel
from tests.integration.pipelines import execute, on_a, one_way
from tests.waiting import eventually

ORDERS = "id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(40), price DECIMAL(14,4)"
ITEMS = "id INT PRIMARY KEY, order_id BIGINT UNSIGNED, sku VARCHAR(20), KEY (order_id)"
db = on_a(
    "shop",
    f"CREATE TABLE {{db}}.orders ({ORDERS})",
    f"CREATE TABLE {{db}}.items ({ITEMS})",
    "CREATE TABLE {db}.notes (code VARCHAR(20) PRIMARY KEY, n VARCHAR(20))",
    system_tables=True,
)

SETTINGS = VerifySettings(rows_per_part=2, rechecks=1, pause=0.1)


@pytest.fixture
def client(opensearch):
    with make_client(OpenSearchEndpoint((opensearch.url,))) as client:
        yield client


def documents(client, index):
    client.refresh(index, ignore=404)
    if not client.exists(index):
        return {}
    hits = client.search(index, {"size": 1_000})["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in hits}


def unequal(spark, pipeline):
    return {
        (verdict.target, key.key, key.what.name)
        for verdict in verify_pipeline(spark, pipeline, settings=SETTINGS)
        for key in verdict.sample_keys
    }


@pytest.mark.family("mariadb", why="both families into indexes are tested with Elasticsearch")
def test_a_pipeline_into_opensearch(site_a, opensearch, client, db, position, spark, monkeypatch):
    monkeypatch.setattr(identities, "LOOK_SECONDS", 0.0)
    orders, notes = f"{db}-orders", f"{db}-notes"
    # Notes go through an alias to an index that somebody made, with a field that refuses some.
    client.create(
        f"{notes}-1",
        aliases={notes: {}},
        mappings={"properties": {"code": {"type": "keyword"}, "n": {"type": "integer"}}},
        settings={"index": {"gc_deletes": "1h"}},
    )
    nested = [{"field": "items", "from": f"{db}.items", "on": {"order_id": "id"}}]
    file = one_way(
        site_a,
        {"type": "opensearch", "hosts": [opensearch.url]},
        [{"from": f"{db}.orders", "to": orders, "nested": nested},
         {"from": f"{db}.notes", "to": notes}],
        create=True, ddl="pass", faulty_rows="dead_letter",
    )  # fmt: skip
    (pipeline,) = file.pipelines
    found = [finding.what for finding in check_channel(file)]
    assert "OpenSearch 3.8.0 answers" in found
    assert any(what.startswith("setl will create the index") for what in found)
    execute(
        site_a,
        f"INSERT INTO {db}.orders VALUES (18446744073709551615, 'ñ 四', 1.5),"
        " (2, 'b', NULL), (3, 'c', 3)",
        f"INSERT INTO {db}.items VALUES (1, 2, 'x'), (2, 2, 'y'), (3, 3, 'z')",
        f"INSERT INTO {db}.notes VALUES ('k/1', '1'), ('k,2', '2'), ('k 3', 'no number')",
    )
    running = position.lead(file)
    eventually(lambda: len(documents(client, orders)) == 3, 60)
    mapping = client.mappings(orders)[orders]["mappings"]["properties"]
    assert mapping["id"] == {"type": "unsigned_long"}
    assert mapping["items"]["type"] == "nested"
    execute(
        site_a,
        f"UPDATE {db}.orders SET id = 4 WHERE id = 3",
        f"DELETE FROM {db}.items WHERE id = 1",
        f"ALTER TABLE {db}.orders ADD since DATETIME(6)",
        f"INSERT INTO {db}.orders VALUES (5, 'e', NULL, '2026-01-02 03:04:05.000006')",
        f"DELETE FROM {db}.notes WHERE code = 'k,2'",
    )

    def there():  # the documents of one request come one after another
        found = documents(client, orders)
        assert sorted(found) == ["18446744073709551615", "2", "4", "5"]
        assert [item["sku"] for item in found["2"]["items"]] == ["y"]
        return found

    eventually(lambda: sorted(documents(client, notes)) == ["k/1"], 60)
    assert eventually(there, 60)["18446744073709551615"]["price"] == "1.5000"
    assert client.mappings(orders)[orders]["mappings"]["properties"]["since"]["type"] == "date"
    with system_of(pipeline.target).dead_letters() as letters:
        (letter,) = letters.find(f"{file.channel}/p")
        assert letter.state is State.OPEN
        assert "mapper_parsing_exception" in letter.error
    client.request("POST", f"/{orders}/_update/5", {"doc": {"name": "damaged"}})
    client.put(notes, "other", {"code": "other", "n": 1})
    assert unequal(spark, pipeline) == {
        (orders, "5", "DIFFERENT"), (notes, "other", "EXTRA"), (notes, "k 3", "MISSING"),
    }  # fmt: skip
    client.request("DELETE", f"/{orders}")
    execute(site_a, f"INSERT INTO {db}.orders (id, name) VALUES (6, 'f')")
    error = running.ends()
    assert isinstance(error, TargetReplacedError), error
    assert not client.exists(orders)


def test_slices_have_every_document_once(opensearch, client):
    endpoint = OpenSearchEndpoint((opensearch.url,))
    index, count = "sliced", 5_000
    client.create(index, mappings={"properties": {"id": {"type": "long"}}})
    client.bulk(b"".join(
        b'{"index":{"_index":"%s","_id":"%d"}}\n{"id":%d}\n' % (index.encode(), i, i)
        for i in range(count)
    ))  # fmt: skip
    shape = DocumentShape((Column("id", Kind.INTEGER),), (0,), DocumentForm.of_key(1))
    target = IndexTarget(endpoint, index, shape)
    for rows_per_part, parts in ((10_000, 1), (1_500, 4)):
        slices = target.parts(rows_per_part)
        assert len(slices) == parts
        pages = [page for part in slices for page in target.read(part)]
        assert sorted(int(pair.key) for page in pages for pair in page) == list(range(count))
        assert max(map(len, pages)) <= 2_000
    target.close()
