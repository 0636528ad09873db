"""Statements in records: what they are, and which schema their names without one are in."""

import json
from typing import Any

import pytest

from setl.codec.canal.reading.header import CanalHeaderReader
from setl.codec.debezium.reading.header import DebeziumHeaderReader
from setl.codec.sql.statement import tables_of, tables_without_schema
from setl.errors import DataError, FatalError
from setl.extract.extractor import Extractor
from setl.extract.loopback import MarkIdentity
from setl.model.batch import Batch
from setl.model.entry import EntryKind
from setl.model.leadership import Leadership
from setl.run.measured.progress import Progress
from setl.run.targets.schema_changes import SchemaChangePolicy
from tests.arbiter_in_memory import ManualClock
from tests.unit.formats.canal.records import canal
from tests.unit.systems.kafka.standalone import entries_of

FORMATS = pytest.mark.parametrize("format_", ["debezium", "canal"])
ANY: Any = None


def change(format_, sql, schema, version="3.6.0.Final", **more):
    """A record of a statement, with the schema of the table that it changes."""
    if format_ == "canal":
        message = json.loads(canal("ALTER", None, sql=sql, ddl=True, keys=(), table="", **more))
        return None, json.dumps(message | {"database": schema}).encode()
    source = {"version": version, "connector": "mysql", "ts_ms": 1000, "snapshot": "false"}
    said = {"source": source, "databaseName": schema, "ddl": sql, "tableChanges": []}
    return None, json.dumps({"schema": {}, "payload": said}).encode()


def entry_of(*record):
    _, (entries, error) = entries_of(*record)
    assert error is None
    (entry,) = entries
    return entry


@FORMATS
@pytest.mark.parametrize(
    ("sql", "schema", "tables"),
    [
        ("ALTER TABLE orders ADD x INT", "shop", [("shop", "orders")]),
        ("RENAME TABLE orders TO old", "shop", [("shop", "orders"), ("shop", "old")]),
        ("RENAME TABLE shop.orders TO a.old", "a", [("shop", "orders"), ("a", "old")]),
        # A foreign key's other table is in the schema of the table.
        ("CREATE TABLE a.t (x INT, FOREIGN KEY (x) REFERENCES p (x))", "a", [("a", "t")]),
    ],
)
def test_where_all_names_have_a_schema_or_none_does_it_is_the_tables(format_, sql, schema, tables):
    entry = entry_of(format_, change(format_, sql, schema))
    assert list(tables_of(entry)) == tables
    assert tables_without_schema(entry) == ()


MIXED = [
    # As Debezium 3.6 and Canal write them, whatever schema their session had.
    ("RENAME TABLE orders TO archive.orders_1", "archive", ("orders",)),
    ("ALTER TABLE orders RENAME archive.orders_1", "archive", ("orders",)),
    ("CREATE TABLE archive.y LIKE orders", "archive", ("orders",)),
    ("RENAME TABLE archive.y TO orders", "shop", ("orders",)),
]


@FORMATS
@pytest.mark.parametrize(("sql", "schema", "names"), MIXED)
def test_otherwise_nobody_knows(format_, sql, schema, names):
    entry = entry_of(format_, change(format_, sql, schema))
    assert entry.default_schema == ""
    assert tables_without_schema(entry) == names


@pytest.mark.parametrize(("sql", "schema", "names"), MIXED)
def test_a_relay_of_setl_says_which_schema_the_session_had(sql, schema, names):
    entry = entry_of("debezium", change("debezium", sql, "shop", version="setl-1.0"))
    assert tables_without_schema(entry) == ()
    assert entry.default_schema == "shop"
    changed = [table for table in tables_of(entry) if table[1] == "orders"]
    assert changed == ([] if "LIKE" in sql else [("shop", "orders")])


@pytest.mark.parametrize("named", [True, False])
def test_it_stops_a_pipeline_only_if_a_mapped_table_has_the_name(named):
    class Nowhere:
        def route(self, schema, table):
            return ()

        def shadow(self, schema, table):
            return None

    entry = entry_of("debezium", change("debezium", MIXED[0][0], "archive"))
    extractor = Extractor(Nowhere(), MarkIdentity(1, ""), ANY, maps_name=lambda _: named)
    assert extractor.extract(Batch(1, 1, [entry], ANY, 0, 0)).ddl == ([entry] if named else [])
    progress = Progress(ManualClock())

    def act(choice, target=ANY):
        leading = Leadership("c", "p", "n", 1)
        return SchemaChangePolicy(choice, target, leading, progress).act_on([entry], ANY, 1)

    assert act("ignore") is False
    with pytest.raises(FatalError, match="does not tell which one its session had for orders"):
        act("pass", object())


@FORMATS
@pytest.mark.parametrize(
    "sql",
    ["SAVEPOINT a", "GRANT SELECT ON shop.* TO 'a'", "CREATE USER b", "FLUSH PRIVILEGES", "BEGIN"],
)
def test_what_changes_no_table_is_no_schema_change(format_, sql):
    """Canal calls whatever is no INSERT, UPDATE or DELETE a schema change."""
    assert entry_of(format_, change(format_, sql, "shop")).kind is EntryKind.HEARTBEAT


@pytest.mark.parametrize("sql", ["ROLLBACK", "ROLLBACK TO `a`", "XA ROLLBACK X'31',X'',1"])
def test_what_takes_rows_back_that_are_in_the_topic_is_refused(sql):
    for type_, ddl in (("QUERY", True), ("XAROLLBACK", False)):
        if ddl or sql.startswith("XA"):
            with pytest.raises(DataError, match="rolled back") as raised:
                CanalHeaderReader().read(None, canal(type_, None, sql=sql, ddl=ddl, keys=()))
            assert "verify --repair" in raised.value.hint


def test_a_schema_change_of_a_release_that_writes_no_text_for_snapshot():
    _, value = change("debezium", "ALTER TABLE orders ADD x INT", "shop")
    old = json.loads(value)
    old["payload"]["source"]["snapshot"] = False
    header = DebeziumHeaderReader().read(None, json.dumps(old).encode())
    assert header.kind is EntryKind.DDL
