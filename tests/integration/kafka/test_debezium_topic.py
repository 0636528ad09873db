"""What Debezium wrote to a topic, in MySQL and in an index: as its source had it."""

import json
import re
from functools import partial
from random import Random
from urllib.request import urlopen

import pytest

from setl.errors import DataError
from setl.operate.check import check_channel
from setl.operate.verify import VerifySettings, verify_pipeline
from tests.integration.kafka.record_topics import channel as records_channel
from tests.integration.kafka.record_topics import send
from tests.integration.pipelines import (
    execute,
    fresh_name,
    install_system_tables,
    mysql,
    shown_rows,
)
from tests.mysql_servers import is_mariadb
from tests.unit.formats.debezium.recorded import expected, recorded
from tests.unit.formats.debezium.records import debezium, key
from tests.waiting import eventually

ROWS = ("every", "pairs")


@pytest.fixture(scope="module")
def topic(kafka):
    """Everything that the connector wrote, tombstones and schema changes as well."""
    name = fresh_name("dbz")
    send(kafka.brokers, name, *((r.key, r.value) for r in recorded("typical")))
    return name


@pytest.fixture
def target(site_b):
    install_system_tables(site_b)
    schema = fresh_name("dbz")
    execute(site_b, f"CREATE DATABASE {schema} CHARACTER SET utf8mb4")
    yield schema
    execute(site_b, f"DROP DATABASE {schema}")


channel = partial(records_channel, format_="debezium")


def definition(table, schema, connection):
    """The source's definition of a table, for a target of either family."""
    text = expected()[table]["definition"].replace(f"`{table}`", f"{schema}.{table}", 1)
    if is_mariadb(connection):
        text = re.sub(r" COLLATE[ =]\w+", "", text)
    return text


def test_rows_are_those_that_the_source_had(kafka, topic, site_b, target, position):
    with site_b.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = 'ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION'")
        for table in (*ROWS, "zeros"):
            cursor.execute(definition(table, target, connection))
        file = channel(
            kafka,
            topic,
            mysql(site_b),
            [{"from": f"shop.{table}", "to": f"{target}.{table}"} for table in (*ROWS, "zeros")],
        )
        running = position.lead(file)
        running.applied(1)
        rows = sum(r.value is not None and b'"op":"' in r.value for r in recorded("typical"))
        assert rows > 20
        cut = running.applied(rows - 6)
        assert cut.rows_total <= rows
        mariadb = is_mariadb(connection)

        def same():
            for table in ROWS:
                wanted = expected()[table]
                names, found = shown_rows(cursor, target, table)
                assert names == wanted["columns"]
                assert len(found) == len(wanted["rows"])
                differing = [
                    (name, one, two)
                    for given, written in zip(wanted["rows"], found, strict=True)
                    for name, one, two in zip(names, given, written, strict=True)
                    if one != two and not (mariadb and same_json(one, two))
                ]
                assert differing == []
            return True

        eventually(same, 60)  # the last of them are not counted yet
        running.stop()
        # What the records do not tell, and what they do.
        cursor.execute(f"SELECT CAST(d AS CHAR), CAST(sn AS CHAR) FROM {target}.zeros WHERE id = 1")
        assert cursor.fetchone() == (None, "0000-00-00 00:00:00")


def same_json(one, two):
    """Whether bytes in hexadecimal are the same JSON; a MariaDB stores the text that it gets."""
    try:
        return json.loads(bytes.fromhex(one)) == json.loads(bytes.fromhex(two))
    except (TypeError, ValueError):
        return False


def test_documents_of_records(kafka, elasticsearch, topic, position):
    index = fresh_name("pairs")
    file = channel(
        kafka,
        topic,
        {"type": "elasticsearch", "hosts": [elasticsearch.url]},
        [{"from": "shop.pairs", "to": index, "id": "{a}-{b}"}],
    )
    running = position.lead(file)
    running.applied(7)
    running.stop()
    with urlopen(f"{elasticsearch.url}/{index}/_refresh", data=b""):
        pass
    with urlopen(f"{elasticsearch.url}/{index}/_search?size=100") as answer:
        hits = json.load(answer)["hits"]["hits"]
    found = {hit["_id"]: (hit["_source"]["v"], hit["_source"].get("w")) for hit in hits}
    assert found.keys() == {"x-4294967295", "yy-1"}
    assert found["x-4294967295"] == ("snapshot", None)
    assert found["yy-1"][0] == "one"
    assert float(found["yy-1"][1]) == 1.5


def test_a_table_without_a_key_and_damage_stop_with_a_way_out(
    kafka, topic, site_b, target, position
):
    execute(site_b, f"CREATE TABLE {target}.keyless (v INT, w VARCHAR(10))")
    tables = [{"from": "shop.keyless", "to": f"{target}.keyless"}]
    error = position.lead(channel(kafka, topic, mysql(site_b), tables)).ends()
    assert isinstance(error, DataError) or "key" in str(error)
    assert "key" in str(error)
    damaged = fresh_name("dbz")
    execute(site_b, f"CREATE TABLE {target}.orders (id INT PRIMARY KEY, v BLOB)")
    tables = [{"from": "shop.orders", "to": f"{target}.orders"}]
    send(
        kafka.brokers,
        damaged,
        (key(id=1), debezium("c", after={"id": 1, "v": "YQ=="}, fields=BLOB)),
        (None, b"{"),
        (key(id=2), debezium("c", after={"id": 2, "v": "Yg=="}, fields=BLOB)),
    )
    file = channel(kafka, damaged, mysql(site_b), tables)
    (finding,) = [f for f in check_channel(file) if f.code == "record-unreadable"]
    assert f"{damaged}[0]@1" in finding.what
    inexact = fresh_name("dbz")
    row = {"id": 1, "v": "YQ=="}
    send(kafka.brokers, inexact, (key(id=1), debezium("c", after=row)))
    found = check_channel(channel(kafka, inexact, mysql(site_b), tables))
    (finding,) = [f for f in found if f.code == "inexact-records"]
    assert "the binary v as text" in finding.what
    error = position.lead(file).ends()
    assert f"{damaged}[0]@1" in str(error)
    assert "--to 2`" in error.hint
    assert execute(site_b, f"SELECT * FROM {target}.orders") == ((1, b"a"),)
    past = channel(kafka, damaged, mysql(site_b), tables, start={"offset": 2})
    position.lead(past).applied(1)
    assert execute(site_b, f"SELECT * FROM {target}.orders") == ((1, b"a"), (2, b"b"))


BLOB = {"id": "int32", "v": "bytes"}


def test_a_value_that_the_connector_did_not_see_is_never_written(kafka, site_b, target, position):
    """With ``binlog_row_image=NOBLOB`` some releases write a text of their own in its place."""
    topic = fresh_name("dbz")
    execute(site_b, f"CREATE TABLE {target}.orders (id INT PRIMARY KEY, n INT, v TEXT)")
    fields = {"id": "int32", "n": "int32", "v": "string"}
    row = {"id": 1, "n": 1, "v": "text"}
    unseen = row | {"n": 2, "v": "__debezium_unavailable_value"}
    send(
        kafka.brokers,
        topic,
        (key(id=1), debezium("c", after=row, fields=fields)),
        (key(id=1), debezium("u", before=unseen | {"n": 1}, after=unseen, fields=fields)),
    )
    table = {"from": "shop.orders", "to": f"{target}.orders"}
    error = position.lead(channel(kafka, topic, mysql(site_b), [table])).ends()
    assert isinstance(error, DataError)
    assert "does not say what v of its row holds" in error.message
    found = execute(site_b, f"SELECT * FROM {target}.orders")
    assert found in {(), ((1, 1, "text"),)}
    without = channel(kafka, topic, mysql(site_b), [table | {"exclude": ["v"]}])
    position.lead(without).applied(2)
    assert execute(site_b, f"SELECT id, n FROM {target}.orders") == ((1, 2),)


def test_a_leader_that_dies_among_records_is_followed(kafka, site_b, target, position):
    topic, chance = fresh_name("dbz"), Random(11)
    execute(site_b, f"CREATE TABLE {target}.orders (id INT PRIMARY KEY, v VARCHAR(9) UNIQUE)")
    rows, records = {}, []
    for number in range(4000):
        identity, value = chance.randrange(150), f"v{number}"
        before = rows.pop(identity, None)
        old, new = ({"id": identity, "v": v} for v in (before, value))
        if before is None:
            op, after = "c", new
        else:
            op, after = (("u", new), ("d", None))[chance.random() < 0.3]
        fields = {"id": "int32", "v": "string"}
        image = old if before is not None else None
        records.append((key(id=identity), debezium(op, image, after, fields=fields)))
        if after is None:
            records.append((key(id=identity), None))
        else:
            rows[identity] = value
    send(kafka.brokers, topic, *records)
    file = channel(
        kafka,
        topic,
        mysql(site_b),
        [{"from": "shop.orders", "to": f"{target}.orders"}],
        batch_rows=300,
    )
    reached = position.lead(file, dies_when=lambda f: f.rows_total > 700).dies().rows_total
    assert 0 < reached < 4000
    again = position.lead(file)
    # What was applied and not acknowledged comes again, so that no count says when it is done.
    found = f"SELECT id, v FROM {target}.orders"
    eventually(lambda: dict(execute(site_b, found)) == rows, 60)
    again.stop()


def test_existing_rows_are_loaded_from_the_database(kafka, spark, servers, target, position):
    a, b = servers
    topic, source = fresh_name("dbz"), fresh_name("dbz")
    columns = "(id INT PRIMARY KEY, v VARCHAR(9))"
    execute(
        a,
        f"CREATE DATABASE {source}",
        f"CREATE TABLE {source}.orders {columns}",
        f"INSERT INTO {source}.orders VALUES (1, 'one'), (2, 'two'), (3, 'three')",
    )
    execute(
        b, f"CREATE TABLE {target}.orders {columns}", f"INSERT INTO {target}.orders VALUES (1, 'x')"
    )

    def change(op, before=None, after=None):
        identity = (after or before or {})["id"]
        fields = {"id": "int32", "v": "string"}
        record = debezium(op, before, after, fields=fields, db=source)
        send(kafka.brokers, topic, (key(id=identity), record))

    change("c", after={"id": 1, "v": "one"})  # what the load has as well
    database = {k: v for k, v in mysql(a).items() if k != "type"}
    file = channel(
        kafka,
        topic,
        mysql(b),
        [{"from": f"{source}.orders", "to": f"{target}.orders"}],
        start={"load": True},
        database=database,
    )
    running = position.lead(file)
    found = f"SELECT id, v FROM {target}.orders ORDER BY id"
    eventually(lambda: [i for i, _ in execute(b, found)] == [1, 2, 3], 60)
    execute(
        a,
        f"UPDATE {source}.orders SET v = 'new' WHERE id = 2",
        f"DELETE FROM {source}.orders WHERE id = 3",
    )
    change("u", {"id": 2, "v": "two"}, {"id": 2, "v": "new"})
    change("d", {"id": 3, "v": "three"})
    eventually(lambda: execute(b, found) == ((1, "one"), (2, "new")), 60)
    running.stop()
    (verdict,) = verify_pipeline(spark, file.pipelines[0], settings=VerifySettings(rechecks=0))
    assert verdict.equal, verdict
    execute(a, f"DROP DATABASE {source}")
