"""Tables without a primary key: keyed by a unique key, by columns that are named, or refused."""

from collections import Counter

import pytest

from setl import failpoints
from setl.errors import DataError
from setl.operate.check import check_pipeline
from setl.systems.pipeline_check import PipelineCheck
from tests.integration.pipelines import execute, fresh_name, mysql, one_way, rows
from tests.waiting import eventually


@pytest.fixture
def keyless(servers):
    """Creates a table of some columns on both servers."""
    db = fresh_name("keyless")
    for server in servers:
        execute(server, f"CREATE DATABASE {db}")

    def make(columns, there=None):
        for server, text in zip(servers, (columns, there or columns), strict=True):
            execute(server, f"CREATE TABLE {db}.t ({text})")
        return f"{db}.t"

    yield make
    for server in servers:
        execute(server, f"DROP DATABASE {db}")


def channel(servers, table, **mapping):
    return one_way(servers[0], mysql(servers[1]), [{"from": table, **mapping}])


def said(file, level):
    found = check_pipeline(PipelineCheck(file.pipelines[0]))
    return [f"{f.where}: {f.what}" for f in found if f.level == level and ".t" in f.where]


def test_a_unique_key_without_nullable_columns_is_as_good_as_a_primary_key(servers, keyless, place):
    table = keyless("a INT, b INT NOT NULL, c VARCHAR(9) NOT NULL, UNIQUE (a), UNIQUE bc (c, b)")
    file = channel(servers, table)
    assert said(file, "error") == []
    running = place.lead(file)
    execute(
        servers[0],
        f"INSERT INTO {table} VALUES (1, 1, 'x'), (2, 2, 'x'), (NULL, 3, 'x')",
        f"UPDATE {table} SET a = 5 WHERE b = 1",
        f"UPDATE {table} SET c = 'y' WHERE b = 2",
        f"DELETE FROM {table} WHERE b = 3",
    )
    running.applied(6)
    assert rows(servers[1], table, "b") == ((5, 1, "x"), (2, 2, "y"))


def counted(server, table):
    """A table's rows, and how often each is there, as bytes."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT * FROM {table}")
        return Counter(map(repr, cursor.fetchall()))


def equal(servers, table):
    first, second = (counted(server, table) for server in servers)
    assert first == second
    return first


@pytest.mark.parametrize("columns", ["a INT, b VARCHAR(9)", "a INT UNIQUE, b VARCHAR(9)"])
def test_rows_of_a_table_without_a_key(servers, keyless, place, columns):
    table = keyless(columns)
    file = channel(servers, table)
    assert said(file, "error") == []
    assert "update and each delete reads all of the target's table" in " ".join(
        said(file, "warning")
    )
    running = place.lead(file)
    twice = "NULL, 'x'"
    execute(
        servers[0],
        f"INSERT INTO {table} VALUES ({twice}), ({twice}), ({twice}),"
        " (1, 'a'), (2, NULL), (3, 'A')",
        f"UPDATE {table} SET a = NULL, b = 'A' WHERE a = 1",
        f"DELETE FROM {table} WHERE b = 'x' LIMIT 1",
        f"UPDATE {table} SET b = 'y' WHERE b = 'x' LIMIT 1",
        f"UPDATE {table} SET a = 4 WHERE a = 3",
        f"UPDATE {table} SET a = 3 WHERE a = 2",
        f"UPDATE {table} SET a = 2 WHERE a = 4",
    )
    running.applied(12)
    assert sum(equal(servers, table).values()) == 5
    execute(servers[0], "SET SESSION binlog_row_image = 'MINIMAL'", f"UPDATE {table} SET b = 'z'")
    running.applied(17)
    assert sum(equal(servers, table).values()) == 5


def test_no_row_without_a_key_comes_twice_after_a_crash(
    servers, keyless, place, monkeypatch, tmp_path
):
    """What a load brought is in the target, and its checkpoint is not stored."""
    table = keyless("a INT, b VARCHAR(9)")
    monkeypatch.setattr(failpoints, "_folder", str(tmp_path))
    running = place.lead(channel(servers, table))
    armed, taken = tmp_path / "load.after_job", tmp_path / "load.after_job.taken"
    for _ in range(3):
        armed.write_text("error")
        execute(
            servers[0],
            f"INSERT INTO {table} VALUES (1, 'x'), (1, 'x')",
            f"UPDATE {table} SET b = 'y' WHERE b = 'x' LIMIT 1",
            f"DELETE FROM {table} WHERE b = 'y' LIMIT 1",
        )
        eventually(lambda: taken.exists() or not running.thread.is_alive(), 60)
        assert taken.exists(), running.error
        taken.unlink()
        # Comes with what is loaded again, and changes it.
        execute(servers[0], f"UPDATE {table} SET b = 'z' WHERE b = 'x' LIMIT 1")
    running.applied(15)
    assert equal(servers, table) == Counter(["(1, 'z')"] * 3)


def test_a_stream_that_goes_to_another_place(servers, keyless, place):
    table, name = keyless("a INT, b VARCHAR(9)"), fresh_name("channel")
    tables, both = [{"from": f"{table}*"}], (f"{table}2", f"{table}3")
    for server in servers:
        execute(server, *(f"CREATE TABLE {each} LIKE {table}" for each in both))
    running = place.lead(one_way(servers[0], mysql(servers[1]), tables, name))
    execute(servers[0], *(f"INSERT INTO {each} VALUES (1, 'x')" for each in (table, *both)))
    running.applied(3)
    running.stop()
    file = one_way(servers[0], mysql(servers[1]), tables, name, generation=2, ddl="pass")
    running = place.lead(file)
    # Tables that the stream empties go on.
    execute(
        servers[0],
        f"DROP TABLE {both[0]}",
        f"CREATE TABLE {both[0]} (a INT, b VARCHAR(9))",
        f"TRUNCATE TABLE {both[1]}",
        *(f"INSERT INTO {each} VALUES (2, 'y'), (2, 'y')" for each in both),
        f"DELETE FROM {both[0]} LIMIT 1",
    )
    running.applied(8)
    assert [equal(servers, each)["(2, 'y')"] for each in both] == [1, 2]
    execute(servers[0], f"INSERT INTO {table} VALUES (2, 'y')")
    failure = running.ends()
    assert isinstance(failure, DataError)
    assert "gone to another place" in failure.message
    assert "retl.setl_loaded" in failure.hint
    execute(
        servers[1],
        f"DELETE FROM retl.setl_loaded WHERE pipeline = '{name}/p'"
        f" AND CONCAT(schema_name, '.', table_name) = '{table}'",
    )
    place.lead(file).applied(9)
    assert equal(servers, table) == Counter(["(1, 'x')", "(2, 'y')"])


def test_where_no_key_is_refused(servers, keyless):
    table = keyless("a INT, b VARCHAR(9)")
    for mapping in ({"where": "a > 1"}, {"columns": {"c": "upper(b)"}}, {"read": "source"}):
        assert (
            "so its rows cannot be told apart"
            in said(channel(servers, table, **mapping), "error")[0]
        )
    assert "a load beside the stream" in said(channel(servers, table, load=True), "error")[0]
    check = PipelineCheck(channel(servers, table).pipelines[0], two_way=True)
    assert "two-way" in str([f.what for f in check_pipeline(check) if f.code == "no-key"])


def test_a_load_of_a_table_without_a_key_is_refused(servers, keyless, place):
    table = keyless("a INT, b VARCHAR(9)")
    execute(servers[0], f"INSERT INTO {table} VALUES (1, 'x')")
    failure = place.lead(channel(servers, table, load=True)).ends()
    assert "a load beside the stream cannot tell" in failure.message
    assert counted(servers[1], table) == Counter()


def test_a_row_that_the_target_lacks_stops_the_pipeline(servers, keyless, place):
    table = keyless("a INT, b VARCHAR(9) COLLATE utf8mb4_general_ci")
    file = channel(servers, table)
    running = place.lead(file)
    execute(servers[0], f"INSERT INTO {table} VALUES (1, 'x'), (1, 'x'), (2, 'y')")
    running.applied(3)
    execute(servers[1], f"UPDATE {table} SET b = 'X' WHERE a = 1 LIMIT 1")
    execute(servers[0], f"DELETE FROM {table} WHERE a = 1")
    failure = running.ends()
    assert isinstance(failure, DataError)
    assert "has changed or deleted 2 of a row, and the target has 1 of it" in failure.message
    assert sum(counted(servers[1], table).values()) == 3
    execute(servers[1], f"INSERT INTO {table} VALUES (1, 'x')")  # as the error says
    place.lead(file).applied(5)
    assert counted(servers[1], table) == Counter(["(1, 'X')", "(2, 'y')"])


def test_columns_that_are_named_without_any_index_at_the_target(servers, keyless, place):
    table = keyless("a INT NOT NULL, b INT, note VARCHAR(9)")
    file = channel(servers, table, key=["a", "b"])
    assert said(file, "error") == []
    warnings = " ".join(said(file, "warning"))
    assert "agree in them become one row" in warnings
    assert "b, named under `key`, may be NULL" in warnings
    assert "deleted and written anew" in warnings
    running = place.lead(file)
    execute(
        servers[0],
        f"INSERT INTO {table} VALUES (1, 1, 'x'), (1, 2, 'y'), (2, 1, 'z')",
        f"UPDATE {table} SET note = 'again' WHERE b = 1",
        f"UPDATE {table} SET b = 9 WHERE b = 2",
        f"DELETE FROM {table} WHERE a = 2",
    )
    running.applied(7)
    assert rows(servers[1], table, "b") == ((1, 1, "again"), (1, 9, "y"))
    execute(servers[0], f"INSERT INTO {table} VALUES (1, 1, 'twin')")
    running.applied(8)
    assert rows(servers[1], table, "b") == ((1, 1, "twin"), (1, 9, "y"))
    execute(servers[0], f"INSERT INTO {table} VALUES (3, NULL, 'n')")
    failure = running.ends()
    assert isinstance(failure, DataError)
    assert "null" in failure.message
