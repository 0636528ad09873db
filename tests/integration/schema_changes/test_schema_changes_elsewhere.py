"""Schema changes that reach a search index, or come through a relay and Kafka."""

from urllib.error import HTTPError

from setl.channel.reading import parse_channel
from setl.errors import FatalError
from tests.integration.pipelines import (
    binlog_end,
    execute,
    fresh_name,
    mysql,
    on_both,
    one_way,
    rows,
)
from tests.integration.search.test_pipeline_search import Index
from tests.waiting import eventually

db = on_both("ddl", "CREATE TABLE {db}.t (id INT PRIMARY KEY, a INT, b VARCHAR(40))")


def fields(index):
    """The fields of an index, with their types; none while it is not there."""
    try:
        (described,) = index.call("GET", "/_mapping").values()
    except HTTPError:
        return {}
    return {name: f.get("type") for name, f in described["mappings"].get("properties", {}).items()}


def into_index(servers, elasticsearch, db, **options):
    target = {"type": "elasticsearch", "hosts": [elasticsearch.url]}
    mapping = [{"from": f"{db}.t", "to": f"{db}-t"}]
    return one_way(servers[0], target, options.pop("tables", mapping), ddl="pass", **options)


def test_fields_are_added_and_a_table_that_is_emptied_empties_its_index(
    servers, elasticsearch, db, position
):
    a, _ = servers
    index = Index(elasticsearch, f"{db}-t")
    running = position.lead(into_index(servers, elasticsearch, db))
    execute(a, f"INSERT INTO {db}.t VALUES (1, 1, 'x'), (2, 2, 'y')")
    running.applied(2)
    execute(
        a, f"ALTER TABLE {db}.t ADD c DATETIME NULL, ADD (d BIGINT UNSIGNED, `e f` DECIMAL(9,2))"
    )
    wanted = {"c": "date", "d": "unsigned_long", "e f": "double"}
    eventually(lambda: wanted.items() <= fields(index).items(), 30)
    execute(a, f"ALTER TABLE {db}.t RENAME COLUMN b TO bb")
    execute(a, f"INSERT INTO {db}.t (id, bb) VALUES (3, 'z')")
    running.applied(3)
    assert sorted(index.documents()) == ["1", "2", "3"]
    assert index.document(3)["bb"] == "z"
    execute(a, f"TRUNCATE {db}.t", f"INSERT INTO {db}.t (id) VALUES (2), (4)")
    running.applied(5)
    assert sorted(index.documents()) == ["2", "4"]
    table = f"CREATE TABLE {db}.t (id INT PRIMARY KEY, a INT)"
    execute(a, f"RENAME TABLE {db}.t TO {db}._t_old", table, f"INSERT INTO {db}.t VALUES (7, 7)")
    running.applied(6)
    assert sorted(index.documents()) == ["7"]
    execute(a, f"DROP TABLE {db}.t")
    eventually(lambda: sorted(index.documents()) == [], 30)
    eventually(lambda: running.figures.ddl_replicated == 6, 30)  # counted after it can be seen


def test_a_type_that_the_field_does_not_take_stops_the_pipeline(
    servers, elasticsearch, db, position
):
    a, _ = servers
    running = position.lead(into_index(servers, elasticsearch, db))
    execute(a, f"INSERT INTO {db}.t VALUES (1, 1, 'x')")
    running.applied(1)
    execute(a, f"ALTER TABLE {db}.t MODIFY a BIGINT, MODIFY b TEXT")
    execute(a, f"ALTER TABLE {db}.t MODIFY a VARCHAR(20)")
    error = running.ends()
    assert isinstance(error, FatalError)
    assert "field a of" in str(error)


def test_an_index_of_several_tables_is_not_emptied_for_one(servers, elasticsearch, db, position):
    a, _ = servers
    execute(a, f"CREATE TABLE {db}.u LIKE {db}.t")
    both = [{"from": f"{db}.{t}", "to": f"{db}-both", "id": f"{t}-{{id}}"} for t in "tu"]
    running = position.lead(into_index(servers, elasticsearch, db, tables=both))
    execute(a, f"INSERT INTO {db}.t (id) VALUES (1)", f"INSERT INTO {db}.u (id) VALUES (1)")
    running.applied(2)
    execute(a, f"TRUNCATE {db}.t")
    error = running.ends()
    assert isinstance(error, FatalError)
    assert "other tables" in str(error)
    assert sorted(Index(elasticsearch, f"{db}-both").documents()) == ["t-1", "u-1"]


def test_changes_pass_through_a_relay_and_kafka(servers, kafka, db, position):
    a, b = servers
    topic = {"type": "kafka", "brokers": [kafka.brokers], "topic": fresh_name("relayed")}
    source = {**mysql(a), "start": binlog_end(a), "heartbeat": 0}
    tables = [{"from": f"{db}.*"}]

    def channel(source, target, **more):
        pipeline = {"name": "p", "source": source, "target": target, "tables": tables, **more}
        return parse_channel({"channel": fresh_name("c"), "pipelines": [pipeline]})

    position.lead(channel(source, topic)).runs()
    execute(a, f"INSERT INTO {db}.t VALUES (1, 1, 'x')")
    execute(
        a,
        f"USE {db}",
        "ALTER TABLE t ADD c INT DEFAULT 7 FIRST, DROP COLUMN a",
        "INSERT INTO t (id, c) VALUES (2, 8)",
        "CREATE TABLE `_t_gho` LIKE t",
        "ALTER TABLE `_t_gho` ADD g INT",
        "INSERT INTO `_t_gho` (id, c, b) SELECT id, c, b FROM t",
        "RENAME TABLE t TO `_t_del`, `_t_gho` TO t",
        "DROP TABLE `_t_del`",
        "INSERT INTO t (id, g) VALUES (3, 9)",
        "CREATE TABLE u (id INT PRIMARY KEY)",
        "INSERT INTO u VALUES (1)",
    )
    position.lead(channel({**topic, "start": "earliest"}, mysql(b), ddl="pass"))
    eventually(lambda: execute(b, f"SHOW TABLES FROM {db} LIKE 'u'") and rows(b, f"{db}.u"), 90)
    assert rows(a, f"{db}.t") == rows(b, f"{db}.t")
    assert [r[:2] for r in execute(a, f"SHOW COLUMNS FROM {db}.t")] == [
        r[:2] for r in execute(b, f"SHOW COLUMNS FROM {db}.t")
    ]
