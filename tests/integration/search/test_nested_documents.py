"""Orders with their items as documents, kept right when either side changes."""

import json
import threading
from contextlib import suppress
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pymysql
import pytest

from setl.channel.reading import parse_channel
from setl.errors import ConfigurationError, TransientError
from setl.model.nesting import Documents, NestedTable
from setl.operate.verify import verify_pipeline
from setl.systems.mysql.reading import document_lookup
from setl.systems.mysql.reading.document_lookup import MysqlDocuments
from setl.systems.mysql.reading.tables import opened_tables
from tests.deadlocks import repeated
from tests.integration.pipelines import execute, fresh_name, mysql, on_a, one_way
from tests.loading import endpoint_of, rows_of
from tests.waiting import eventually

TABLES = (
    "CREATE TABLE {db}.orders (id INT PRIMARY KEY, buyer VARCHAR(20), total DECIMAL(10,2))",
    """CREATE TABLE {db}.items (id BIGINT UNSIGNED PRIMARY KEY, order_id INT NULL,
    name VARCHAR(20) CHARACTER SET utf8mb4, price DECIMAL(10,2), added DATETIME(6) NULL,
    KEY (order_id))""",
    """CREATE TABLE {db}.notes (order_id INT, no INT, text VARCHAR(40), secret INT,
    PRIMARY KEY (order_id, no))""",
)
ITEMS = {"field": "items", "on": {"order_id": "id"}}
NOTES = {"field": "notes", "on": {"order_id": "id"}, "exclude": ["order_id", "secret"]}


shop = on_a("shop", *TABLES)


def channel(server, elasticsearch, shop, ddl="ignore", **options):
    nested = [{**ITEMS, "from": f"{shop}.items"}, {**NOTES, "from": f"{shop}.notes"}]
    mapping = {"from": f"{shop}.orders", "to": f"{shop}-orders", "nested": nested, **options}
    target = {"type": "elasticsearch", "hosts": [elasticsearch.url]}
    return one_way(server, target, [mapping], ddl=ddl)


def document(elasticsearch, shop, number) -> Any:
    try:
        with urlopen(f"{elasticsearch.url}/{shop}-orders/_doc/{number}") as answer:
            return json.load(answer)["_source"]
    except HTTPError as error:
        if error.code != 404:
            raise
        return None


def names(found):
    return [item["name"] for item in found["items"]]


def test_documents_follow_orders_and_items(servers, elasticsearch, shop, position, spark):
    a, _ = servers
    execute(
        a,
        f"INSERT INTO {shop}.orders VALUES (9, 'before', 1)",
        f"INSERT INTO {shop}.items VALUES (90, 9, 'from before', 1, NULL)",
    )
    file = channel(a, elasticsearch, shop)
    running = position.lead(file)
    execute(
        a,
        f"INSERT INTO {shop}.orders VALUES (1, 'ann', 10.50), (2, 'bob', 3)",
        f"INSERT INTO {shop}.items VALUES (11, 1, 'tea 🍵', 7.25, '2026-01-02 03:04:05.678901'),"
        " (12, 1, 'cup', 3.25, NULL), (18446744073709551615, 2, 'pen', 3, NULL),"
        " (50, NULL, 'nobody', 1, NULL), (91, 9, 'new', 1, NULL)",
        f"INSERT INTO {shop}.notes VALUES (1, 2, 'second', 1), (1, 1, 'first', 1)",
    )
    running.applied(9)
    assert document(elasticsearch, shop, 1) == {
        "id": 1,
        "buyer": "ann",
        "total": "10.50",
        "items": [
            {
                "id": 11, "order_id": 1, "name": "tea 🍵", "price": "7.25",
                "added": "2026-01-02T03:04:05.678901",
            },
            {"id": 12, "order_id": 1, "name": "cup", "price": "3.25", "added": None},
        ],
        "notes": [{"no": 1, "text": "first"}, {"no": 2, "text": "second"}],
    }  # fmt: skip
    # What was there before the pipeline began is in the document too.
    assert names(document(elasticsearch, shop, 9)) == ["from before", "new"]
    execute(
        a,
        f"UPDATE {shop}.items SET order_id = 2 WHERE id = 12",  # moves
        f"UPDATE {shop}.orders SET id = 3 WHERE id = 9",  # its items stay where they are
        f"DELETE FROM {shop}.notes WHERE order_id = 1 AND no = 1",
        f"UPDATE {shop}.items SET order_id = 3 WHERE order_id = 9",
    )
    running.applied(14)
    assert names(document(elasticsearch, shop, 1)) == ["tea 🍵"]
    assert [note["no"] for note in document(elasticsearch, shop, 1)["notes"]] == [2]
    assert names(document(elasticsearch, shop, 2)) == ["cup", "pen"]
    assert document(elasticsearch, shop, 9) is None
    assert names(document(elasticsearch, shop, 3)) == ["from before", "new"]
    execute(a, f"DELETE FROM {shop}.orders WHERE id = 2", f"DELETE FROM {shop}.items WHERE id = 12")
    running.applied(16)
    assert document(elasticsearch, shop, 2) is None
    (verdict,) = verify_pipeline(spark, file.pipelines[0], None, 20)
    assert verdict.equal, verdict
    with a.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(f"UPDATE {shop}.items SET name = 'unseen' WHERE id = 11")
    (verdict,) = verify_pipeline(spark, file.pipelines[0], None, 20)
    assert (verdict.different, verdict.missing, verdict.extra) == (1, 0, 0)


@pytest.mark.family("mariadb", why="Spark maps rows that are the same by then")
def test_nested_rows_with_expressions_and_where(servers, elasticsearch, shop, position):
    a, _ = servers
    options = {"columns": {"who": "upper(buyer)"}, "where": "total > 0", "exclude": ["buyer"]}
    running = position.lead(channel(a, elasticsearch, shop, **options))
    execute(
        a,
        f"INSERT INTO {shop}.orders VALUES (1, 'ann', 1), (2, 'bob', 0)",
        f"INSERT INTO {shop}.items VALUES (1, 1, 'x', 1, NULL), (2, 2, 'y', 1, NULL)",
    )
    running.applied(4)
    found = document(elasticsearch, shop, 1)
    assert (found["who"], names(found)) == ("ANN", ["x"])
    assert "buyer" not in found
    assert document(elasticsearch, shop, 2) is None
    execute(a, f"UPDATE {shop}.orders SET total = 5 WHERE id = 2")
    running.applied(5)
    assert names(document(elasticsearch, shop, 2)) == ["y"]


def test_an_old_insert_partition_applied_again_does_not_bring_anything_back(
    servers, elasticsearch, shop, position
):
    a, _ = servers
    file = channel(a, elasticsearch, shop)
    execute(
        a,
        f"INSERT INTO {shop}.orders VALUES (1, 'ann', 1), (2, 'bob', 0)",
        f"INSERT INTO {shop}.items VALUES (1, 1, 'x', 1, NULL), (2, 2, 'y', 1, NULL)",
        f"UPDATE {shop}.items SET name = 'z' WHERE id = 1",
        f"DELETE FROM {shop}.orders WHERE id = 2",
    )
    position.lead(file).applied(6)
    # Another pipeline from the same position is what a leader does that lost its checkpoint.
    again = file.model_copy(update={"channel": fresh_name("again")})
    position.lead(again, nid="n2").applied(6)
    assert names(document(elasticsearch, shop, 1)) == ["z"]
    assert document(elasticsearch, shop, 2) is None


def test_many_writers_end_in_equal_documents(servers, elasticsearch, shop, position, spark):
    a, _ = servers
    file = channel(a, elasticsearch, shop)
    position.lead(file)
    orders = ", ".join(f"({n}, 'b{n}', {n})" for n in range(1, 21))
    execute(a, f"INSERT INTO {shop}.orders VALUES {orders}")

    def write(seed):
        with a.connect() as connection:
            for n in range(100):
                number, order = seed * 1000 + n % 30, (n * 7 + seed) % 20 + 1
                statements = [
                    f"REPLACE INTO {shop}.items VALUES ({number}, {order}, '{seed}-{n}', 1, NULL)"
                ]
                if n % 5 == 0:
                    statements.append(f"UPDATE {shop}.orders SET total = {n} WHERE id = {order}")
                if n % 11 == 0:
                    statements.append(f"DELETE FROM {shop}.items WHERE id = {number}")
                for statement in statements:
                    repeated(connection, lambda cursor, sql=statement: cursor.execute(sql))

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    execute(a, f"INSERT INTO {shop}.orders VALUES (99, 'last', 0)")
    eventually(lambda: document(elasticsearch, shop, 99), 60)
    (verdict,) = verify_pipeline(spark, file.pipelines[0], None, 20)
    assert verdict.equal, verdict
    assert verdict.target_rows == 21


def test_a_key_that_is_not_the_orders_own_is_refused(servers, elasticsearch, shop, position):
    a, _ = servers
    nested = [{"field": "items", "from": f"{shop}.items", "on": {"order_id": "total"}}]
    running = position.lead(channel(a, elasticsearch, shop, nested=nested))
    execute(a, f"INSERT INTO {shop}.items VALUES (1, 1, 'x', 1, NULL)")
    error = running.ends()
    assert isinstance(error, ConfigurationError)
    assert "is not the primary key" in error.message


@pytest.mark.parametrize(
    ("own", "other"),
    [
        ("VARCHAR(20) COLLATE utf8mb4_bin", "VARCHAR(20) COLLATE utf8mb4_bin"),
        ("VARCHAR(20) COLLATE utf8mb4_unicode_ci", "VARCHAR(20) COLLATE utf8mb4_unicode_ci"),
        ("VARCHAR(20) COLLATE utf8mb4_unicode_ci", "VARCHAR(20) COLLATE utf8mb4_bin"),
        ("VARCHAR(20) COLLATE utf8mb4_bin", "VARCHAR(20) COLLATE utf8mb4_unicode_ci"),
        ("INT", "VARCHAR(20) COLLATE utf8mb4_bin"),
    ],
)
def test_the_server_says_which_document_a_nested_row_belongs_to(servers, shop, own, other):
    a, _ = servers
    written = ["1", "02", "3.0"] if own == "INT" else ["zoe", "Zoe", "ZOË", "zo\u00eb", "z"]
    with a.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {shop}.people (id {own} PRIMARY KEY) CHARACTER SET utf8mb4")
        cursor.execute(
            f"CREATE TABLE {shop}.pets (no INT PRIMARY KEY, person {other}, KEY (person))"
            " CHARACTER SET utf8mb4"
        )
        for no, text in enumerate(written):
            cursor.execute(f"INSERT IGNORE INTO {shop}.people VALUES (%s)", (text,))
            cursor.execute(f"INSERT INTO {shop}.pets VALUES (%s, %s)", (no, text))
        # So many that they are looked up in two parts; in bytes they lie between Z and z.
        others = [("" if own == "INT" else "a") + str(no) for no in range(1000, 1500)]
        cursor.executemany(f"INSERT INTO {shop}.people VALUES (%s)", [(id_,) for id_ in others])
        cursor.execute(
            f"SELECT p.id, GROUP_CONCAT(no ORDER BY no) FROM {shop}.people p"
            f" LEFT JOIN {shop}.pets ON person = id GROUP BY id"
        )
        expected = {key: nos or "" for key, nos in cursor.fetchall()}
    pets = NestedTable("pets", shop, "pets", (("person", "id"),))
    documents = Documents(shop, "people", (pets,))
    source = MysqlDocuments(endpoint_of(a))
    keys = [(key,) for key in expected]
    found: Any = source.read(documents, keys, source.schema(documents))
    assert {key: ",".join(str(no) for no, _ in rows) for key, rows in found} == expected


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"processor": "a:b"}, "tables[0].processor"),
        ({"nested": [{**ITEMS, "from": "s.*"}]}, "tables[0].nested[0].from"),
        ({"nested": [{**ITEMS, "from": "s.i"}, {**ITEMS, "from": "s.j"}]}, "tables[0].nested[1]"),
        ({"from": "s.*"}, "tables[0].from"),
        ({"source": {"partitions": 2}}, "tables[0].nested"),
    ],
)
def test_what_does_not_go_together(change, path):

    server = {"host": "a", "user": "u"}
    topic = {"type": "kafka", "brokers": ["k:9092"], "topic": "t", "database": server}
    change = dict(change)
    more = change.pop("source", None)
    source = {"type": "mysql", **server} if more is None else {**topic, **more}
    table = {"from": "s.orders", "nested": [{**ITEMS, "from": "s.items"}], **change}
    target = {"type": "elasticsearch", "hosts": ["http://e:9200"]}
    pipeline = {"name": "p", "source": source, "target": target, "tables": [table]}
    with pytest.raises(ConfigurationError) as refused:
        parse_channel({"channel": "c", "pipelines": [pipeline]})
    assert path in str(refused.value)


def test_nested_rows_need_an_index(servers):

    a, b = servers
    table = {"from": "s.orders", "nested": [{**ITEMS, "from": "s.items"}]}
    pipeline = {"name": "p", "source": mysql(a), "target": mysql(b), "tables": [table]}
    with pytest.raises(ConfigurationError, match="only means something for a target of documents"):
        parse_channel({"channel": "c", "pipelines": [pipeline]})


def test_columns_of_nested_rows_that_are_added(servers, elasticsearch, shop, position):
    a, _ = servers
    running = position.lead(channel(a, elasticsearch, shop, ddl="pass"))
    execute(
        a,
        f"INSERT INTO {shop}.orders VALUES (1, 'ann', 1)",
        f"INSERT INTO {shop}.items VALUES (1, 1, 'x', 1, NULL)",
    )
    running.applied(2)
    execute(
        a,
        f"ALTER TABLE {shop}.items ADD COLUMN weight DECIMAL(10,3) NULL",
        f"UPDATE {shop}.items SET weight = 2.5 WHERE id = 1",
    )
    running.applied(3)
    (item,) = document(elasticsearch, shop, 1)["items"]
    assert item["weight"] == "2.500"
    with urlopen(f"{elasticsearch.url}/{shop}-orders/_mapping") as answer:
        mapping = json.load(answer)[f"{shop}-orders"]["mappings"]["properties"]
    assert mapping["items"]["type"] == "nested"
    assert mapping["items"]["properties"]["weight"]["type"] == "double"
    execute(a, f"TRUNCATE TABLE {shop}.items")
    error = running.ends()
    assert "shown in documents" in str(error)


@pytest.mark.parametrize("forgotten", [False, True], ids=["as known", "described again"])
def test_a_document_is_not_read_by_the_columns_of_another_moment(servers, shop, forgotten):
    a, _ = servers
    execute(a, f"INSERT INTO {shop}.orders VALUES (1, 'ann', 10.50)")
    items = NestedTable("items", shop, "items", (("order_id", "id"),))
    documents = Documents(shop, "orders", (items,))
    source = MysqlDocuments(endpoint_of(a))
    schema = source.schema(documents)
    # As many columns as before, in another order.
    execute(a, f"ALTER TABLE {shop}.orders DROP buyer, ADD seller VARCHAR(20) DEFAULT 'bob'")
    if forgotten:
        document_lookup._descriptions.clear()
    with pytest.raises(TransientError, match="just being changed"):
        source.read(documents, [(1,)], schema)
    with opened_tables(endpoint_of(a), logged=True) as tables:
        reader = tables.documents(documents)
    assert reader.schema.names == ("id", "total", "seller", "items")
    assert source.read(documents, [(1,)], reader.schema) == [(1, "10.50", "bob", ())]


def test_a_table_that_is_altered_while_a_document_is_read(servers, shop, monkeypatch):
    a, _ = servers
    execute(a, f"INSERT INTO {shop}.orders VALUES (1, 'ann', 10.50)")
    documents = Documents(
        shop, "orders", (NestedTable("items", shop, "items", (("order_id", "id"),)),)
    )
    source = MysqlDocuments(endpoint_of(a))
    schema = source.schema(documents)
    describe = document_lookup.describe_documents

    def described_and_altered(*given):
        described = describe(*given)
        if described.schema == schema:
            execute(a, f"ALTER TABLE {shop}.orders DROP buyer, ADD seller VARCHAR(20) DEFAULT 'b'")
        return described

    # Whatever is known is out of date at once.
    monkeypatch.setattr(document_lookup, "_DESCRIBED_SECONDS", 0.0)
    monkeypatch.setattr(document_lookup, "describe_documents", described_and_altered)
    document_lookup._descriptions.clear()
    with pytest.raises(TransientError, match="just being changed"):
        source.read(documents, [(1,)], schema)


@pytest.fixture
def own_server(another_server, tmp_path):
    with another_server(tmp_path / "own", "own", server_id=191) as server:
        yield server


def test_a_lookup_whose_connection_has_ended_connects_again_before_it_fails(own_server):
    """After a restart of the source, every Python worker would fail a whole load of its own."""
    execute(
        own_server,
        "CREATE DATABASE shop",
        *(table.format(db="shop") for table in TABLES),
        "INSERT INTO shop.orders VALUES (1, 'ann', 10.50)",
        "INSERT INTO shop.items VALUES (10, 1, 'pen', 1, NULL)",
    )
    items = NestedTable("items", "shop", "items", (("order_id", "id"),))
    documents = Documents("shop", "orders", (items,))
    source = MysqlDocuments(endpoint_of(own_server))
    schema = source.schema(documents)
    (before,) = source.read(documents, [(1,)], schema)
    own_server.kill()
    own_server.start()
    assert source.read(documents, [(1,)], schema) == [before]
    own = "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID()"
    for (number,) in rows_of(own_server, own):
        with suppress(pymysql.MySQLError):  # connections of the server itself stay
            execute(own_server, f"KILL {number}")
    assert source.read(documents, [(1,)], schema) == [before]
    own_server.stop()
    with pytest.raises(TransientError):
        source.read(documents, [(1,)], schema)
    own_server.start()
    assert source.read(documents, [(1,)], schema) == [before]
