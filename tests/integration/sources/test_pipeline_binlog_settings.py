"""Pipelines whose source writes its binlog in another way than setl asks for."""

import re
from typing import Any, cast

import pytest

from setl.channel.reading import parse_channel
from setl.errors import DataError, FatalError
from setl.extract.statements import Reach
from setl.systems.mysql.endpoint import mysql_endpoint
from setl.systems.mysql.preflight.statement_effects import reach_of
from setl.systems.mysql.server import Server
from setl.systems.registry import system_of
from setl_embedded import MySql
from tests.integration.pipelines import (
    binlog_end,
    execute,
    fresh_name,
    install_system_tables,
    mysql,
    on_a,
    one_way,
    rows,
)
from tests.mysql_servers import logs_no_generated


def by_session(server, setting, *statements):
    """Run statements in a session with a setting of its own."""
    return execute(server, f"SET SESSION {setting}", *statements)


def test_minimal_images_of_updates_and_deletes(servers, db, position):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": f"{db}.orders"}])
    execute(
        a,
        f"INSERT INTO {db}.orders (id, email, name, amount) VALUES"
        " (1, 'a', 'ann', 1), (2, 'b', 'bob', 2), (3, 'c', 'cy', 3), (4, 'd', 'di', 4)",
    )
    running = position.lead(file)
    running.applied(4)
    by_session(
        a,
        "binlog_row_image = MINIMAL",
        f"UPDATE {db}.orders SET name = 'bo' WHERE id = 2",
        f"UPDATE {db}.orders SET amount = amount + 1, email = NULL WHERE id IN (2, 3)",
        f"DELETE FROM {db}.orders WHERE id = 1",
        f"UPDATE {db}.orders SET email = 'a' WHERE id = 4",
    )
    execute(a, f"UPDATE {db}.orders SET kind = 'a' WHERE id = 4")
    running.applied(10)
    assert rows(b, f"{db}.orders") == rows(a, f"{db}.orders")


@pytest.fixture
def strict(servers, db):
    """A table whose columns must all be given, on both servers."""
    table = f"{db}.strict"
    for server in servers:
        execute(
            server,
            f"CREATE TABLE {table} (id INT PRIMARY KEY, a INT NOT NULL, b VARCHAR(5) NOT NULL,"
            " c INT NULL UNIQUE, at DATETIME(3) NULL)",
        )
    return table


def test_minimal_images_of_columns_without_a_default(servers, strict, position):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": strict}])
    execute(
        a,
        f"INSERT INTO {strict} (id, a, b, c) VALUES (1, 1, 'a', 1), (2, 2, 'b', 2), (3, 3, 'c', 3)",
    )
    running = position.lead(file)
    running.applied(3)
    by_session(
        a, "binlog_row_image = MINIMAL",
        f"UPDATE {strict} SET b = 'B' WHERE id = 2", f"UPDATE {strict} SET a = a + 5, c = NULL",
    )  # fmt: skip
    running.applied(7)
    assert rows(b, strict) == rows(a, strict)
    execute(
        b,  # whose clock says nothing about the source's rows
        f"ALTER TABLE {strict} MODIFY at DATETIME(3) NULL ON UPDATE CURRENT_TIMESTAMP(3)",
    )
    by_session(a, "binlog_row_image = MINIMAL", f"UPDATE {strict} SET b = 'C' WHERE id = 3")
    running.applied(8)
    assert rows(b, strict) == rows(a, strict)


@pytest.mark.parametrize("target", ["INT", "INT AS (a * 2) STORED"])
def test_minimal_images_without_generated_columns(servers, db, position, target):
    """MariaDB 11.8 leaves them out, and the target's plain column would keep its old value."""
    a, b = servers
    table = f"{db}.computed"
    definition = "CREATE TABLE {} (id INT PRIMARY KEY, a INT, g {}, b INT)"
    execute(a, definition.format(table, "INT AS (a * 2) STORED"))
    execute(b, definition.format(table, target))
    running = position.lead(one_way(a, mysql(b), [{"from": table}]))
    execute(a, f"INSERT INTO {table} (id, a, b) VALUES (1, 1, 1), (2, 2, 2)")
    running.applied(2)
    by_session(a, "binlog_row_image = MINIMAL", f"UPDATE {table} SET a = 5, b = 6 WHERE id = 1")
    with a.connect() as connection:
        stops = logs_no_generated(connection) and target == "INT"
    if stops:
        error = running.ends()
        assert isinstance(error, DataError)
        assert "does not say what g of its row" in error.message
        assert "read: source" in error.hint
        assert rows(b, table) == ((1, 1, 2, 1), (2, 2, 4, 2))
        return
    running.applied(3)
    assert rows(b, table) == rows(a, table)


def test_a_minimal_update_of_a_row_that_the_target_lacks_names_the_row(servers, strict, position):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": strict}])
    execute(a, f"INSERT INTO {strict} (id, a, b, c) VALUES (1, 1, 'a', 1), (2, 2, 'b', 2)")
    running = position.lead(file)
    running.applied(2)
    execute(b, f"DELETE FROM {strict} WHERE id = 2")
    by_session(a, "binlog_row_image = MINIMAL", f"UPDATE {strict} SET b = 'B'")
    error = running.ends()
    assert isinstance(error, DataError)
    assert "the target lacks this row" in error.message
    assert (error.where["table"], error.where["key"]) == (strict, "2")
    assert "binlog_row_image" in error.hint
    assert rows(b, strict) == ((1, 1, "a", 1, None),)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {} (id, email) VALUES (9, 'x')",
        pytest.param(
            "REPLACE INTO {} (id, email) VALUES (1, 'x')",
            marks=pytest.mark.family("mariadb", why="MySQL's images of it leave nothing out"),
        ),
        "UPDATE {} SET id = 100 WHERE id = 1",
    ],
)
def test_minimal_images_that_do_not_say_it_all_stop_the_pipeline(servers, db, position, statement):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": f"{db}.orders"}])
    execute(a, f"INSERT INTO {db}.orders (id, email, name) VALUES (1, 'a', 'ann')")
    running = position.lead(file)
    running.applied(1)
    before = rows(b, f"{db}.orders")
    by_session(a, "binlog_row_image = MINIMAL", statement.format(f"{db}.orders"))
    error = running.ends()
    assert isinstance(error, DataError)
    assert "binlog_row_image" in error.hint
    assert error.where["table"].endswith("orders")
    assert rows(b, f"{db}.orders") == before


def test_minimal_images_for_an_index_stop_the_pipeline(servers, elasticsearch, db, position):
    a, _ = servers
    target = {"type": "elasticsearch", "hosts": [elasticsearch.url]}
    file = one_way(
        a, target, [{"from": f"{db}.orders", "to": f"{db}-orders", "include": ["id", "name"]}]
    )
    execute(a, f"INSERT INTO {db}.orders (id, name) VALUES (1, 'ann'), (2, 'bob')")
    running = position.lead(file)
    running.applied(2)
    by_session(a, "binlog_row_image = MINIMAL", f"DELETE FROM {db}.orders WHERE id = 1")
    running.applied(3)
    by_session(a, "binlog_row_image = MINIMAL", f"UPDATE {db}.orders SET name = 'x'")
    error = running.ends()
    assert isinstance(error, DataError)
    assert "would lose the others" in error.message
    assert "binlog_row_image" in error.hint


@pytest.mark.parametrize("form", ["STATEMENT", "MIXED"])
def test_a_session_that_logs_statements_stops_the_pipeline(servers, db, position, form):
    """The hint that the error names leads to the next transaction, and not into this one."""
    a, b = servers
    file = one_way(a, mysql(b), [{"from": f"{db}.orders"}])
    running = position.lead(file)
    by_session(
        a,
        f"binlog_format = {form}",
        "BEGIN",
        f"INSERT INTO {db}.orders (id) VALUES (7)",
        f"INSERT INTO {db}.orders (id) VALUES (8)",
        "COMMIT",
    )
    error = running.ends()
    assert isinstance(error, FatalError)
    assert "logged a statement instead of its rows" in error.message
    assert "binlog_format='ROW'" in error.hint
    assert rows(b, f"{db}.orders") == ()

    pipeline = file.pipelines[0]
    source: Any = system_of(pipeline.source)
    end = binlog_end(a)
    execute(a, f"INSERT INTO {db}.orders (id) VALUES (9)", "FLUSH BINARY LOGS")
    named = source.parse_start_point(re.findall(r"--to ([^`]+)`", error.hint)[0])
    behind = source.find_position(pipeline, file.channel, "n1", named)
    assert (behind.file, behind.offset) == (end["file"], end["offset"])


beside = on_a(
    "beside",
    "CREATE TABLE {db}.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(99)) ENGINE=InnoDB",
    "CREATE TABLE {db}.u (id INT PRIMARY KEY, v VARCHAR(99)) ENGINE=MyISAM",
)
"""A database of the source that no pipeline maps."""


@pytest.mark.parametrize("form", ["STATEMENT", "MIXED"])
def test_statements_of_tables_that_are_not_mapped_pass(
    servers, db, beside, position, form, tmp_path
):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": f"{db}.orders"}], ddl="stop")
    running = position.lead(file)
    loaded = tmp_path / "loaded.csv"
    loaded.write_text("7\tseven\n8\teight\n")
    with a.connect(local_infile=True, autocommit=True) as connection:
        execute(a, "SET GLOBAL local_infile = 1")
        cursor = connection.cursor()
        for statement in (
            f"SET SESSION binlog_format = {form}",
            f"USE {beside}",
            "SET @x = 'user variable'",
            "INSERT INTO t (v) VALUES (@x), (RAND()), (NOW())",
            "INSERT INTO u VALUES (1, 'no transactions'), (2, 'x')",
            f"REPLACE INTO t SELECT id, CONCAT(name, COUNT(*)) FROM {db}.orders GROUP BY id, name",
            "BEGIN", "UPDATE t JOIN u ON t.id = u.id SET t.v = u.v", "SAVEPOINT s",
            "DELETE t FROM t JOIN u USING (id)", "ROLLBACK TO s", "COMMIT",
            f"LOAD DATA LOCAL INFILE '{loaded}' INTO TABLE u",
            "CREATE TABLE copied AS SELECT * FROM t",
            f"CREATE TEMPORARY TABLE {db}.passing AS SELECT * FROM t",
            "CREATE TEMPORARY TABLE mine (id INT)",
            "INSERT INTO mine SELECT id FROM t",
            "INSERT INTO t (v) SELECT id FROM mine",
            "DROP TEMPORARY TABLE mine",
            "CREATE TEMPORARY TABLE t (id INT)", "INSERT INTO t VALUES (5)", "DELETE FROM t",
            "DROP TEMPORARY TABLE t",
            "BEGIN", "INSERT INTO u VALUES (9, 'stays')", "INSERT INTO t VALUES (9, 'goes')",
            "ROLLBACK",
            # What else is made there is nobody's schema change.
            "CREATE VIEW seen AS SELECT * FROM t",
            "CREATE PROCEDURE p() SELECT 1",
            f"CREATE DATABASE {beside}_2",
            f"DROP DATABASE {beside}_2",
        ):  # fmt: skip
            cursor.execute(statement)
    execute(a, f"INSERT INTO {db}.orders (id) VALUES (9)")
    figures = running.applied(1)
    assert rows(b, f"{db}.orders") == rows(a, f"{db}.orders")
    assert figures.statements_skipped >= (8 if form == "STATEMENT" else 1)
    assert set(figures.statements_by_schema) == {beside}
    assert figures.ddl_ignored == 0


def test_what_a_statement_may_touch_beside_its_table_stops(servers, db, beside):
    """Each as the server itself tells it, to an account that sees all and to one that does not."""
    a, _ = servers
    execute(
        a,
        f"USE {beside}",
        "CREATE TABLE parent (id INT PRIMARY KEY)",
        "CREATE TABLE child (id INT PRIMARY KEY, CONSTRAINT FOREIGN KEY (id) REFERENCES parent (id)"
        " ON DELETE CASCADE)",
        "CREATE TABLE grandchild (id INT PRIMARY KEY, CONSTRAINT FOREIGN KEY (id)"
        " REFERENCES child (id) ON DELETE CASCADE ON UPDATE CASCADE)",
        "CREATE TABLE beside_it (id INT PRIMARY KEY, CONSTRAINT FOREIGN KEY (id)"
        " REFERENCES parent (id))",
        "CREATE TABLE merged (id INT PRIMARY KEY, v VARCHAR(99)) ENGINE=MERGE UNION=(u)"
        " INSERT_METHOD=LAST",
        f"CREATE VIEW looking AS SELECT * FROM {db}.orders",
        "CREATE FUNCTION f() RETURNS INT DETERMINISTIC MODIFIES SQL DATA"
        f" BEGIN DELETE FROM {db}.orders; RETURN 1; END",
        "CREATE VIEW calling AS SELECT f() AS x",
        "CREATE VIEW behind AS SELECT calling.x FROM calling",
        "CREATE VIEW plain AS SELECT COUNT(*) AS x FROM looking",
        f"CREATE TRIGGER x BEFORE INSERT ON u FOR EACH ROW INSERT INTO {db}.orders (id) VALUES (1)",
        f"CREATE TABLE {db}.child (id INT PRIMARY KEY, CONSTRAINT FOREIGN KEY (id) REFERENCES"
        f" {beside}.parent (id) ON DELETE CASCADE)",
        f"CREATE USER '{beside}'@'%' IDENTIFIED BY 'secret'",
        f"GRANT SELECT ON {db}.* TO '{beside}'@'%'",
    )

    def said(table, by=None, **how):
        with Server.opened(mysql_endpoint(cast("Any", parsed(by or a)))) as server:
            schema, _, name = table.rpartition(".")
            return reach_of(server, (schema or beside, name), **how)

    def parsed(server):
        return parse_channel(
            {"channel": "c", "pipelines": [{"name": "p", "source": server, "target": mysql(a),
             "tables": [{"from": "x.y", "to": "z.y"}]}]}
        ).pipelines[0].source  # fmt: skip

    everything = mysql(a)
    assert said("t", everything) == Reach()
    assert said("u", everything).reason == "has the trigger x"
    assert said("looking", everything).reason == "is a view"
    assert said("merged", everything).reason.startswith("is a MERGE table")
    children = {(beside, "child"), (beside, "grandchild"), (db, "child")}
    assert set(said("parent", everything).tables) == children
    assert "not there any more" in said("gone", everything).reason
    for view in ("calling", "behind"):
        assert f"calls {beside}.f" in said(view, everything, writes=False).reason
    for table in ("plain", "looking", "u"):
        assert said(table, everything, writes=False) == Reach()
    little = {**everything, "user": beside, "password": "secret"}
    assert "is not shown to the account" in said("t", little).reason
    assert said("mysql.rds_heartbeat2", little) == Reach()
    assert said(f"{db}.orders", little, writes=False) == Reach()
    hint = said("t", little).hint
    assert hint.startswith("GRANT SELECT, TRIGGER ON")
    execute(a, hint)
    assert said("t", little) == Reach()
    # MariaDB logs no action of a foreign key, so a mapped table that has one is refused there.
    assert not isinstance(a, MySql) or (db, "child") in said("parent", little).tables
    execute(a, f"DROP TABLE {db}.child", f"DROP USER '{beside}'@'%'")


@pytest.fixture
def folding(another_server, tmp_path):
    option = "--lower-case-table-names=1"
    with another_server(tmp_path / "c", "site-c", server_id=103, options=(option,)) as server:
        install_system_tables(server)
        yield server


@pytest.mark.family("mariadb", why="MySQL has to be installed with it, which takes long")
def test_schema_changes_of_a_server_that_folds_names(folding, servers, position):
    """Its rows name shop.orders, whatever name a statement has for it."""
    a, b = folding, servers[1]
    db = fresh_name("shop")
    for server in (a, b):
        execute(server, f"CREATE DATABASE {db}", f"CREATE TABLE {db}.orders (id INT PRIMARY KEY)")
    running = position.lead(one_way(a, mysql(b), [{"from": f"{db}.orders"}], ddl="pass"))
    name = f"{db.upper()}.Orders"
    execute(
        a,
        f"INSERT INTO {name} VALUES (1), (2)",
        f"TRUNCATE TABLE {name}",
        f"ALTER TABLE {name} ADD COLUMN more INT NOT NULL DEFAULT 5",
        f"INSERT INTO {name} VALUES (3, 4)",
    )
    running.applied(3)
    assert rows(b, f"{db}.orders") == rows(a, f"{db}.orders") == ((3, 4),)
    execute(b, f"DROP DATABASE {db}")
