"""Pipelines whose source writes its binlog in another way than setl asks for."""

import re

import pytest

from setl.errors import ConfigurationError, DataError, FatalError
from setl.systems.registry import system_of
from tests.integration.pipelines import (
    binlog_end,
    execute,
    fresh_name,
    install_system_tables,
    mysql,
    one_way,
    rows,
)
from tests.mysql_servers import compressed_binlog


def by_session(server, setting, *statements):
    """Run statements in a session with a setting of its own."""
    return execute(server, f"SET SESSION {setting}", *statements)


def test_a_compressed_binlog(servers, db, place):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": f"{db}.orders"}])
    with a.connect() as connection, compressed_binlog(connection):
        values = ", ".join(f"({i}, 'name of {i}')" for i in range(3000))
        execute(
            a,
            f"INSERT INTO {db}.orders (id, name) VALUES {values}",
            f"UPDATE {db}.orders SET payload = x'00ff', amount = id / 8 WHERE id % 2",
            f"UPDATE {db}.orders SET id = id + 10000 WHERE id < 10",
            f"DELETE FROM {db}.orders WHERE id % 7 = 0",
        )
        running = place.lead(file)
        written = 3000 + 1500 + 10 + 428
        running.applied(written)
        execute(a, f"INSERT INTO {db}.orders (id, name) VALUES (-1, 'the last')")
        running.applied(written + 1)
        running.stop()
    assert rows(b, f"{db}.orders") == rows(a, f"{db}.orders")


def test_minimal_images_of_updates_and_deletes(servers, db, place):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": f"{db}.orders"}])
    execute(
        a,
        f"INSERT INTO {db}.orders (id, email, name, amount) VALUES"
        " (1, 'a', 'ann', 1), (2, 'b', 'bob', 2), (3, 'c', 'cy', 3), (4, 'd', 'di', 4)",
    )
    running = place.lead(file)
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


def test_minimal_images_of_columns_without_a_default(servers, strict, place):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": strict}])
    execute(
        a,
        f"INSERT INTO {strict} (id, a, b, c) VALUES (1, 1, 'a', 1), (2, 2, 'b', 2), (3, 3, 'c', 3)",
    )
    running = place.lead(file)
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


def test_a_minimal_update_of_a_row_that_the_target_lacks_names_the_row(servers, strict, place):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": strict}])
    execute(a, f"INSERT INTO {strict} (id, a, b, c) VALUES (1, 1, 'a', 1), (2, 2, 'b', 2)")
    running = place.lead(file)
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
def test_minimal_images_that_do_not_say_it_all_stop_the_pipeline(servers, db, place, statement):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": f"{db}.orders"}])
    execute(a, f"INSERT INTO {db}.orders (id, email, name) VALUES (1, 'a', 'ann')")
    running = place.lead(file)
    running.applied(1)
    before = rows(b, f"{db}.orders")
    by_session(a, "binlog_row_image = MINIMAL", statement.format(f"{db}.orders"))
    error = running.ends()
    assert isinstance(error, DataError)
    assert "binlog_row_image" in error.hint
    assert error.where["table"].endswith("orders")
    assert rows(b, f"{db}.orders") == before


def test_minimal_images_for_an_index_stop_the_pipeline(servers, elasticsearch, db, place):
    a, _ = servers
    target = {"type": "elasticsearch", "hosts": [elasticsearch.url]}
    file = one_way(
        a, target, [{"from": f"{db}.orders", "to": f"{db}-orders", "include": ["id", "name"]}]
    )
    execute(a, f"INSERT INTO {db}.orders (id, name) VALUES (1, 'ann'), (2, 'bob')")
    running = place.lead(file)
    running.applied(2)
    by_session(a, "binlog_row_image = MINIMAL", f"DELETE FROM {db}.orders WHERE id = 1")
    running.applied(3)
    by_session(a, "binlog_row_image = MINIMAL", f"UPDATE {db}.orders SET name = 'x'")
    error = running.ends()
    assert isinstance(error, DataError)
    assert "would lose the others" in error.message
    assert "binlog_row_image" in error.hint


@pytest.mark.parametrize("form", ["STATEMENT", "MIXED"])
def test_a_session_that_logs_statements_stops_the_pipeline(servers, db, place, form):
    """The way out that the error names leads to the next transaction, and not into this one."""
    a, b = servers
    file = one_way(a, mysql(b), [{"from": f"{db}.orders"}])
    running = place.lead(file)
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
    source = system_of(pipeline.source)

    def found(text):
        named = source.parse_place(text)
        return source.find_place(pipeline, file.channel, "n1", named)

    with pytest.raises(ConfigurationError, match="inside a transaction") as inside:
        found(re.findall(r"--to ([^`]+)`", error.hint)[0])
    behind = re.findall(r"begins at ([^;]+);", inside.value.hint)[0]
    end = binlog_end(a)
    assert behind == f"{end['file']}:{end['offset']}"  # nothing has come since
    execute(a, f"INSERT INTO {db}.orders (id) VALUES (9)", "FLUSH BINARY LOGS")
    with pytest.raises(ConfigurationError, match="inside a transaction") as inside:
        found(re.findall(r"--to ([^`]+)`", error.hint)[0])
    assert f"begins at {behind};" in inside.value.hint
    assert str(found(behind)) == behind


@pytest.fixture
def folding(another_server, tmp_path):
    option = "--lower-case-table-names=1"
    with another_server(tmp_path / "c", "site-c", server_id=103, options=(option,)) as server:
        install_system_tables(server)
        yield server


@pytest.mark.family("mariadb", why="MySQL has to be installed with it, which takes long")
def test_schema_changes_of_a_server_that_folds_names(folding, servers, place):
    """Its rows name shop.orders, whatever name a statement has for it."""
    a, b = folding, servers[1]
    db = fresh_name("shop")
    for server in (a, b):
        execute(server, f"CREATE DATABASE {db}", f"CREATE TABLE {db}.orders (id INT PRIMARY KEY)")
    running = place.lead(one_way(a, mysql(b), [{"from": f"{db}.orders"}], ddl="pass"))
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
