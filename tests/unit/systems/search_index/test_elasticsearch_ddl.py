"""Schema changes of which an index would not have what the source has are refused."""

from contextlib import nullcontext

import pytest

from setl.channel.reading import parse_channel
from setl.channel.routes.routing import Router
from setl.errors import FatalError
from setl.load.sink import SchemaChange
from setl.model.session import StatementSession
from setl.systems.elasticsearch.client import ElasticEndpoint
from setl.systems.search_index import ddl
from setl.systems.search_index.ddl import IndexDdl
from tests.loading import ticket_for
from tests.unit.channel.channels import SEARCH, changed

TABLES = [
    {"from": "shop.orders"},
    {"from": "shop.keyed", "key": ["code"]},
    {"from": "both.*", "to": "both", "id": "{table}-{id}"},
    {"from": "one.*", "to": "one", "id": "{id}"},
    {
        "from": "shop.carts",
        "nested": [{"field": "items", "from": "shop.items", "on": {"cart": "id"}}],
    },
]


class Indices:
    """Indexes that are there, without any field.

    Attributes:
        owners: whose documents the index notes.
    """

    def __init__(self):
        self.owners, self.documents = {}, 1

    def exists(self, _):
        return True

    def refresh(self, _):
        pass

    def count(self, _):
        return {"count": self.documents}

    def scroll(self, *_):
        return iter(())

    def act(self, actions):
        return iter(list(actions))

    def mappings(self, _):
        return {"i": {"mappings": {"dynamic": False, "_meta": {"setl_ids": self.owners}}}}


@pytest.fixture
def indices():
    return Indices()


@pytest.fixture
def wait_for_end(monkeypatch, indices):
    """Does a statement; returns what was done."""
    monkeypatch.setattr(ddl, "make_client", lambda _: nullcontext(indices))

    def does(statement, tables=TABLES, count=1):
        indices.documents = count
        definition = changed("pipelines[0].tables", tables, changed("pipelines[0].target", SEARCH))
        router = Router(parse_channel(definition).pipelines[0])
        changes = IndexDdl(ElasticEndpoint(("http://es:9200",)), router)
        change = SchemaChange("1", statement, StatementSession("shop"), 1, 7)
        return list(changes.apply(ticket_for("to-search"), change))

    return does


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("ALTER TABLE orders DROP PRIMARY KEY, ADD PRIMARY KEY (id, region)", "primary key"),
        ("ALTER TABLE orders ADD n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY", "primary key"),
        ("ALTER TABLE orders ADD (n BIGINT KEY, m INT)", "primary key"),
        ("ALTER TABLE orders DROP INDEX `primary`, ADD UNIQUE KEY (region)", "primary key"),
        ("DROP INDEX `PRIMARY` ON orders", "primary key"),
        ("ALTER TABLE _orders_gho DROP PRIMARY KEY, ADD PRIMARY KEY (id, region)", "primary key"),
        ("ALTER TABLE other EXCHANGE PARTITION p WITH TABLE orders", "moves rows of shop.orders"),
        ("ALTER TABLE other EXCHANGE PARTITION p WITH TABLE items", "moves rows of shop.items"),
        ("DROP DATABASE shop", "tables of shop are mapped"),
        ("DROP DATABASE both", "tables of both are mapped"),
        ("CREATE OR REPLACE TABLE items (id INT PRIMARY KEY)", "nothing rebuilds"),
        ("ALTER IGNORE TABLE orders ADD UNIQUE (region)", "rows that have the same key"),
        ("ALTER IGNORE TABLE both.a ADD UNIQUE (region)", "rows that have the same key"),
        ("ALTER IGNORE TABLE items ADD UNIQUE (cart)", "nothing rebuilds"),
        ("ALTER TABLE orders DISCARD TABLESPACE", "nothing says which"),
        ("ALTER TABLE orders IMPORT PARTITION p TABLESPACE", "nothing says which"),
        ("RENAME TABLE both.a TO both.b", "do not move"),
        ("ALTER TABLE both.a RENAME TO both.b", "do not move"),
    ],
)
def test_what_leaves_documents_behind_is_refused(wait_for_end, statement, why):
    with pytest.raises(FatalError, match=why):
        wait_for_end(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE keyed DROP PRIMARY KEY, ADD PRIMARY KEY (id, region)",
        "ALTER TABLE other DROP PRIMARY KEY, ADD PRIMARY KEY (id, region)",
        "ALTER TABLE items DROP PRIMARY KEY, ADD PRIMARY KEY (id, region)",
        "ALTER TABLE both.a ADD PRIMARY KEY (id)",
        "ALTER TABLE orders ADD c VARCHAR(20) DEFAULT 'PRIMARY', ADD KEY (c)",
        "ALTER TABLE orders ADD `primary` BOOL, MODIFY code CHAR(9) UNIQUE KEY, DROP KEY old",
        "DROP INDEX old ON orders",
        "ALTER IGNORE TABLE orders ADD INDEX (region)",
        "DROP DATABASE elsewhere",
        "RENAME TABLE one.a TO one.b",
    ],
)
def test_what_leaves_none_behind_is_not(wait_for_end, statement):
    wait_for_end(statement)


def test_a_table_without_documents_may_get_its_key(wait_for_end):
    wait_for_end("ALTER TABLE orders ADD PRIMARY KEY (id)", count=0)
    wait_for_end("ALTER IGNORE TABLE orders ADD UNIQUE (region)", count=0)


def test_a_table_that_is_replaced_loses_its_documents(wait_for_end):
    replaced = "CREATE OR REPLACE TABLE orders (id INT PRIMARY KEY, c INT)"
    with pytest.raises(FatalError, match="documents of other tables"):
        wait_for_end(replaced, [*TABLES, {"from": "any.*"}])
    (done,) = wait_for_end(replaced)
    assert done.startswith("0 documents of orders deleted")
    (done,) = wait_for_end("CREATE TABLE orders (id INT PRIMARY KEY)")
    assert done.startswith("nothing to do")


STARS = [
    {"from": "shop.*", "to": "shop-*"},
    {"from": "shop.*", "to": "log-*"},
    {"from": "tenant_[1-8].orders", "to": "orders-*"},
    {"from": "twice_*.*", "to": "twice-*-*"},
    {"from": "both.*", "to": "both", "id": "{table}-{id}"},
]


@pytest.mark.parametrize(
    ("statement", "indexes"),
    [
        ("TRUNCATE t", ["shop-t", "log-t"]),
        ("DROP TABLE a, b", ["shop-a", "log-a", "shop-b", "log-b"]),
        ("CREATE OR REPLACE TABLE T (id INT PRIMARY KEY)", ["shop-t", "log-t"]),
        ("TRUNCATE tenant_3.orders", ["orders-3"]),
        ("TRUNCATE twice_a.b", None),
        ("TRUNCATE both.a", None),
    ],
)
def test_tables_with_an_index_each_are_emptied(wait_for_end, statement, indexes):
    if indexes is None:
        with pytest.raises(FatalError, match="may hold documents of other tables"):
            wait_for_end(statement, STARS)
    else:
        done = wait_for_end(statement, STARS)
        assert [text.split(" deleted")[0] for text in done] == [
            f"0 documents of {index}" for index in indexes
        ]


def test_an_index_that_another_entry_may_name_is_not_emptied(wait_for_end):
    for other in ({"from": "near.*"}, {"from": "near.x_*", "to": "*-t"}):
        with pytest.raises(FatalError, match="may hold documents of other tables"):
            wait_for_end("TRUNCATE t", [*STARS[:1], other])
    assert wait_for_end("TRUNCATE t", [*STARS[:1], {"from": "near.log_*"}])


def test_an_index_in_which_another_pipeline_writes_is_not_emptied(wait_for_end, indices):
    emptied = "TRUNCATE TABLE orders"
    indices.owners = {"shop/to-search shop.orders ->": "id (number)"}
    assert wait_for_end(emptied, TABLES[:1])
    indices.owners["other/p shop.orders -> orders"] = "id (number)"
    with pytest.raises(FatalError, match="documents of other/p, too"):
        wait_for_end(emptied, TABLES[:1])
