"""Rows that would come under other ids than the documents that are there."""

import pytest

from setl.errors import ConfigurationError, SetlError
from tests.checking import check_channel
from tests.integration.pipelines import execute, fresh_name, on_a, one_way
from tests.integration.search.test_pipeline_search import Index

TABLE = "CREATE TABLE {db}.t ({columns}, v INT NOT NULL, PRIMARY KEY (k)) CHARACTER SET latin1"


db = on_a("ids")


@pytest.fixture
def documents(elasticsearch, db):
    index = Index(elasticsearch, f"{db}-t")
    return lambda: {id_: document["v"] for id_, document in index.documents().items()}


def channel(server, elasticsearch, db, ddl="ignore", name=None, **more):
    target = {"type": "elasticsearch", "hosts": [elasticsearch.url]}
    mapping = {"from": f"{db}.t", "to": f"{db}-t", **more}
    return one_way(server, target, [mapping], ddl=ddl, name=name)


@pytest.mark.parametrize("ddl", ["ignore", "pass"])
@pytest.mark.parametrize(
    ("columns", "change", "more"),
    [
        ("k DECIMAL(10,2)", "MODIFY k DECIMAL(12,4)", {}),
        ("k VARCHAR(20)", "MODIFY k VARBINARY(20)", {"columns": {"more": "v + 1"}}),
        ("k DATE", "MODIFY k DATETIME", {"key": ["k"]}),
        ("k FLOAT", "MODIFY k DOUBLE", {}),
        ("k BINARY(4)", "MODIFY k BINARY(8)", {}),
        ("k INT, o INT", "DROP PRIMARY KEY, ADD PRIMARY KEY (v)", {}),
    ],
)
def test_rows_do_not_come_under_other_ids_than_their_documents(
    servers, elasticsearch, db, position, documents, ddl, columns, change, more
):
    server, _ = servers
    execute(server, TABLE.format(db=db, columns=columns))
    file = channel(server, elasticsearch, db, ddl, **more)
    insert = f"INSERT INTO {db}.t (k, v) VALUES"
    key = "20260102" if "DATE" in columns else "5"
    execute(server, f"{insert} ({key}, 1)")
    running = position.lead(file)
    running.applied(1)
    before = documents()
    execute(server, f"ALTER TABLE {db}.t {change}", f"UPDATE {db}.t SET v = 2")
    error = running.ends()
    assert isinstance(error, SetlError), error
    assert documents() == before
    (foretold,) = [f for f in check_channel(file) if f.code == "other-ids"]
    assert foretold.level == "error"
    # A passed statement about the key is refused by itself, before any row comes.
    assert foretold.what == error.message or (ddl == "pass" and "PRIMARY KEY" in change)
    assert isinstance(position.lead(file).ends(), type(error))  # nor under another leader


def test_changes_of_a_key_that_leave_its_text_as_it_is_go_on(
    servers, elasticsearch, db, position, documents
):
    server, _ = servers
    columns = "k INT, at DATETIME, name VARCHAR(20), b BINARY(3)"
    table = TABLE.format(db=db, columns=columns).replace("(k))", "(k, at, name, b))")
    execute(server, table, f"INSERT INTO {db}.t VALUES (1, 20260102, 'é', 'a', 1)")
    file = channel(server, elasticsearch, db)
    running = position.lead(file)
    execute(server, f"UPDATE {db}.t SET v = 2")
    running.applied(1)
    execute(
        server,
        f"ALTER TABLE {db}.t MODIFY k BIGINT UNSIGNED, MODIFY at DATETIME(6),"
        " MODIFY name VARCHAR(40) CHARACTER SET utf8mb4, MODIFY b VARBINARY(9)",
        f"UPDATE {db}.t SET v = 3",
    )
    running.applied(2)
    assert not [f for f in check_channel(file) if f.code == "other-ids"]
    assert documents() == {"1,2026-01-02 00:00:00.000000,é,YQAA": 3}


def test_the_hints_lead_out(servers, elasticsearch, db, position, documents):
    server, _ = servers
    execute(server, TABLE.format(db=db, columns="k INT"), f"INSERT INTO {db}.t VALUES (1, 1)")
    name = fresh_name("channel")
    running = position.lead(channel(server, elasticsearch, db, name=name))
    execute(server, f"UPDATE {db}.t SET v = 2")
    running.applied(1)
    execute(server, f"ALTER TABLE {db}.t CHANGE k no BIGINT", f"UPDATE {db}.t SET v = 3")
    error = running.ends()
    assert isinstance(error, ConfigurationError)
    assert "made of k (number)" in error.message
    # A column that was renamed keeps its field.
    running = position.lead(channel(server, elasticsearch, db, name=name, columns={"k": "no"}))
    running.applied(2)
    assert documents() == {"1": 3}
    execute(server, f"DELETE FROM {db}.t")
    running.applied(3)
    running.stop()
    # An index without documents takes any ids.
    running = position.lead(channel(server, elasticsearch, db, name=name))
    execute(server, f"INSERT INTO {db}.t VALUES (2, 2)")
    running.applied(4)
    assert documents() == {"2": 2}
    running.stop()
    error = position.lead(channel(server, elasticsearch, db, name=name, id="t-{no}"))
    execute(server, f"UPDATE {db}.t SET v = 4")
    assert isinstance(error.ends(), ConfigurationError)


def test_tables_of_one_entry_may_have_keys_of_several_types(
    servers, elasticsearch, db, position, documents
):
    server, _ = servers
    for name, kind in (("n", "INT"), ("s", "VARCHAR(9)")):
        execute(server, f"CREATE TABLE {db}.{name} (k {kind} PRIMARY KEY, v INT)")
    target = {"type": "elasticsearch", "hosts": [elasticsearch.url]}
    mapping = {"from": f"{db}.*", "to": f"{db}-t", "id": "{table}-{k}"}
    running = position.lead(one_way(server, target, [mapping]))
    for name in ("n", "s", "n"):
        execute(server, f"INSERT INTO {db}.{name} SELECT COUNT(*), 1 FROM {db}.{name}")
    running.applied(3)
    assert documents() == {"n-0": 1, "s-0": 1, "n-1": 1}
    execute(server, f"ALTER TABLE {db}.s MODIFY k VARBINARY(9)", f"UPDATE {db}.s SET v = 2")
    assert isinstance(running.ends(), ConfigurationError)
