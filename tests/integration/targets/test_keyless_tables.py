"""Tables without a primary key: keyed by a unique key, by columns that are named, or refused."""

import random
import threading
from collections import Counter
from contextlib import contextmanager

import pytest

from arbiter.values import PipelineId
from setl import failpoints
from setl.errors import DataError
from setl.model.load_request import LoadRequest, RequestState
from setl.operate.check import check_pipeline
from setl.run.table_loads.requests import StoredLoadRequests
from setl.systems.pipeline_check import PipelineCheck
from tests.held_points import held
from tests.integration.pipelines import execute, fresh_name, mysql, one_way, rows
from tests.integration.table_loads.test_table_load import loading, wait_until_loaded
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


def beating(file):
    """The file with heartbeats, which move the checkpoint where nobody writes."""
    (pipeline,) = file.pipelines
    source = pipeline.source.model_copy(update={"heartbeat": 0.2})
    return file.model_copy(update={"pipelines": [pipeline.model_copy(update={"source": source})]})


def said(file, level):
    found = check_pipeline(PipelineCheck(file.pipelines[0]))
    return [f"{f.where}: {f.what}" for f in found if f.level == level and ".t" in f.where]


def test_a_unique_key_without_nullable_columns_is_as_good_as_a_primary_key(
    servers, keyless, position
):
    table = keyless("a INT, b INT NOT NULL, c VARCHAR(9) NOT NULL, UNIQUE (a), UNIQUE bc (c, b)")
    file = channel(servers, table)
    assert said(file, "error") == []
    running = position.lead(file)
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
def test_rows_of_a_table_without_a_key(servers, keyless, position, columns):
    table = keyless(columns)
    file = channel(servers, table)
    assert said(file, "error") == []
    assert "update and each delete reads all of the target's table" in " ".join(
        said(file, "warning")
    )
    running = position.lead(file)
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
    servers, keyless, position, monkeypatch, tmp_path
):
    """What a load brought is in the target, and its checkpoint is not stored."""
    table = keyless("a INT, b VARCHAR(9)")
    monkeypatch.setattr(failpoints, "_folder", str(tmp_path))
    running = position.lead(channel(servers, table))
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


def test_a_stream_that_goes_to_another_position(servers, keyless, position):
    table, name = keyless("a INT, b VARCHAR(9)"), fresh_name("channel")
    tables, both = [{"from": f"{table}*"}], (f"{table}2", f"{table}3")
    for server in servers:
        execute(server, *(f"CREATE TABLE {each} LIKE {table}" for each in both))
    running = position.lead(one_way(servers[0], mysql(servers[1]), tables, name))
    execute(servers[0], *(f"INSERT INTO {each} VALUES (1, 'x')" for each in (table, *both)))
    running.applied(3)
    running.stop()
    file = beating(one_way(servers[0], mysql(servers[1]), tables, name, generation=2, ddl="pass"))
    running = position.lead(file)
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
    assert "gone to another position" in failure.message
    assert f"`setl load {name}/p --table {table} --no-wait`" in failure.hint
    asked(position, file, tables=(table,))  # as the error says
    assert in_step(servers, table, position.lead(file)) == Counter(["(1, 'x')", "(2, 'y')"])


def test_where_no_key_is_refused(servers, keyless):
    table = keyless("a INT, b VARCHAR(9)")
    for mapping in ({"where": "a > 1"}, {"columns": {"c": "upper(b)"}}, {"read": "source"}):
        assert (
            "so its rows cannot be distinguished"
            in said(channel(servers, table, **mapping), "error")[0]
        )
    check = PipelineCheck(channel(servers, table).pipelines[0], two_way=True)
    assert "two-way" in str([f.what for f in check_pipeline(check) if f.code == "no-key"])


def asked(position, file, **what):
    """Ask for a load; the request as it is kept."""
    requests = StoredLoadRequests(position.arbiter, PipelineId(file.channel, "p"))
    return requests.add(LoadRequest(**what)).id


def answered(position, file, ident, running):
    """Wait until a request is answered."""
    requests = StoredLoadRequests(position.arbiter, PipelineId(file.channel, "p"))

    def ended():
        assert running.thread.is_alive(), running.error
        (found,) = [request for request in requests.all() if request.id == ident]
        assert found.ended
        return found

    return eventually(ended, 90)


@contextmanager
def written(server, table):
    """Rows come, change and go all the time; of each there are several."""
    over, failed, times = threading.Event(), [], [0]

    def write():
        draw = random.Random(1)
        try:
            with server.connect() as connection, connection.cursor() as cursor:
                while not over.wait(0.002):
                    a, b = draw.randrange(4), draw.choice(["x", "y"])
                    cursor.execute(
                        draw.choice(
                            [
                                f"INSERT INTO {table} VALUES ({a}, '{b}'), ({a}, '{b}')",
                                f"INSERT INTO {table} VALUES ({a}, NULL)",
                                f"UPDATE {table} SET b = '{b}' WHERE a = {a} LIMIT 1",
                                f"DELETE FROM {table} WHERE a = {a} LIMIT 1",
                            ]
                        )
                    )
                    times[0] += 1
        except Exception as error:  # noqa: BLE001 - told by the test
            failed.append(error)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(60)
    assert not failed, failed
    assert times[0] > 20


def in_step(servers, table, running):
    def the_same():
        assert running.thread.is_alive(), running.error
        return equal(servers, table)

    return eventually(the_same, 60, interval=0.3)


def test_a_load_while_all_is_changed_and_leaders_die(
    servers, keyless, position, monkeypatch, tmp_path
):
    table = keyless("a INT, b VARCHAR(9)")
    execute(
        servers[0],
        f"INSERT INTO {table} VALUES (1, NULL), {', '.join(['(2, NULL)'] * 3000)}",
    )
    execute(servers[1], f"INSERT INTO {table} VALUES (9, 'of before'), (2, 'x')")
    file = loading(servers[0], mysql(servers[1]), [{"from": table}])
    assert said(file, "error") == []
    monkeypatch.setattr(failpoints, "_folder", str(tmp_path))
    points = ("tables.before_job", "tables.after_job", "tables.loaded")  # in tasks: a drill
    with written(servers[0], table):
        for point in points:
            (tmp_path / point).write_text("error")
        running = position.lead(file)
        for point in points:
            taken = tmp_path / f"{point}.taken"
            eventually(lambda taken=taken: taken.exists() or not running.thread.is_alive(), 60)
            assert taken.exists(), running.error
        wait_until_loaded(running)
    in_step(servers, table, running)
    execute(servers[1], f"INSERT INTO {table} VALUES (1, 'extra')", f"DELETE FROM {table} LIMIT 3")
    with written(servers[0], table):
        again = asked(position, file, tables=(table,))
        running.run.look_at_loads()
        assert answered(position, file, again, running).state is RequestState.DONE
    in_step(servers, table, running)
    some = asked(position, file, tables=(table,), where="a = 1")
    running.run.look_at_loads()
    assert (
        "has no key, so no row of it can be sent" in answered(position, file, some, running).answer
    )


def test_a_load_waits_for_who_has_written_the_table(servers, keyless, position):
    """What is in the binlog of a prepared transaction is not in the table yet."""
    table = keyless("a INT, b VARCHAR(9)")
    execute(servers[0], f"INSERT INTO {table} VALUES (1, 'x')")
    name = fresh_name("xa")
    with servers[0].connect() as one, one.cursor() as cursor:
        cursor.execute(f"XA START '{name}'")
        cursor.execute(f"INSERT INTO {table} VALUES (2, 'y'), (2, 'y')")
        cursor.execute(f"XA END '{name}'")
        cursor.execute(f"XA PREPARE '{name}'")
    file = loading(servers[0], mysql(servers[1]), [{"from": table}])
    running = position.lead(file).runs()
    execute(servers[0], f"CREATE TABLE {table}_2 (a INT PRIMARY KEY)")
    sleeps_until_locked(servers[0], table)
    assert counted(servers[1], table) == Counter()
    execute(servers[0], f"XA COMMIT '{name}'")
    wait_until_loaded(running)
    execute(servers[0], f"INSERT INTO {table} VALUES (3, 'z')")
    in_step(servers, table, running)


def test_who_may_not_lock_the_table(servers, keyless, position):
    table, user = keyless("a INT, b VARCHAR(9)"), fresh_name("u")
    execute(servers[0], f"INSERT INTO {table} VALUES (1, 'x'), (1, 'x')")
    for statement in (
        f"CREATE USER {user}@'%' IDENTIFIED BY 'pw'",
        f"GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}@'%'",
        f"GRANT INSERT, UPDATE ON retl.xdual TO {user}@'%'",
    ):
        execute(servers[0], statement)
    file = loading(servers[0], mysql(servers[1]), [{"from": table}])
    (pipeline,) = file.pipelines
    source = pipeline.source.model_copy(update={"user": user, "password": "pw"})
    file = file.model_copy(update={"pipelines": [pipeline.model_copy(update={"source": source})]})
    (found,) = [
        f for f in check_pipeline(PipelineCheck(file.pipelines[0])) if f.code == "keyless-load"
    ]
    assert "lacks LOCK TABLES" in found.what
    failure = position.lead(file).ends()
    assert "the account may not do that" in failure.message
    execute(servers[0], *(text.rstrip(";") for text in found.hint))
    running = position.lead(file)
    wait_until_loaded(running)
    in_step(servers, table, running)
    execute(servers[0], f"DROP USER {user}@'%'")


def sleeps_until_locked(server, table):
    def waits():
        found = execute(server, "SHOW FULL PROCESSLIST")
        assert any(str(row[7]).startswith("LOCK TABLES") for row in found), found

    eventually(lambda: waits() is None, 60, interval=0.05)


def test_a_load_and_a_schema_change_that_the_stream_has_not_reached(servers, keyless, position):
    """The table is emptied, and a column is reloaded, between the stream and what is read."""
    table = keyless("a INT, b VARCHAR(9)")
    execute(servers[0], f"INSERT INTO {table} VALUES (1, 'x'), (1, 'x')")
    file = loading(servers[0], mysql(servers[1]), [{"from": table}], ddl="pass")
    with held("tables.before_job") as there:
        running = position.lead(file)
        assert there.wait(60)
        execute(
            servers[0],
            f"TRUNCATE TABLE {table}",
            f"INSERT INTO {table} VALUES (2, 'y'), (2, 'y')",
            f"ALTER TABLE {table} DROP COLUMN b",
            f"ALTER TABLE {table} ADD COLUMN b VARCHAR(9) DEFAULT 'new'",
            f"UPDATE {table} SET b = 'z' LIMIT 1",
        )
    wait_until_loaded(running)
    execute(servers[0], f"INSERT INTO {table} VALUES (3, 'last')")
    assert sum(in_step(servers, table, running).values()) == 3


def test_whose_rows_a_load_would_remove(servers, keyless, position):
    table = keyless("a INT, b VARCHAR(9)")
    other = f"{table}_other"
    for server in servers:
        execute(server, f"CREATE TABLE {other} LIKE {table}")
    execute(servers[0], f"INSERT INTO {table} VALUES (1, 'x')")
    tables = [{"from": table}, {"from": other, "to": table}]
    failure = position.lead(loading(servers[0], mysql(servers[1]), tables)).ends()
    assert "rows of other tables go to" in failure.message
    execute(
        servers[1],
        "INSERT INTO retl.setl_loaded VALUES"
        f" ('else/where', SUBSTRING_INDEX('{table}', '.', 1), 't', 1)",
    )
    failure = position.lead(loading(servers[0], mysql(servers[1]), tables[:1])).ends()
    assert "the pipeline else/where writes the table, too" in failure.message
    execute(servers[1], "DELETE FROM retl.setl_loaded WHERE pipeline = 'else/where'")


def test_a_row_that_the_target_lacks_stops_the_pipeline(servers, keyless, position):
    table = keyless("a INT, b VARCHAR(9) COLLATE utf8mb4_general_ci")
    file = channel(servers, table)
    running = position.lead(file)
    execute(servers[0], f"INSERT INTO {table} VALUES (1, 'x'), (1, 'x'), (2, 'y')")
    running.applied(3)
    execute(servers[1], f"UPDATE {table} SET b = 'X' WHERE a = 1 LIMIT 1")
    execute(servers[0], f"DELETE FROM {table} WHERE a = 1")
    failure = running.ends()
    assert isinstance(failure, DataError)
    assert "has changed or deleted 2 of a row, and the target has 1 of it" in failure.message
    assert sum(counted(servers[1], table).values()) == 3
    execute(servers[1], f"INSERT INTO {table} VALUES (1, 'x')")  # as the error says
    running = position.lead(file)
    running.applied(5)
    assert counted(servers[1], table) == Counter(["(1, 'X')", "(2, 'y')"])
    execute(servers[0], f"INSERT INTO {table} VALUES (1, 'z')", f"DELETE FROM {table} WHERE a = 2")
    running.applied(7)
    execute(servers[1], f"DELETE FROM {table}")
    execute(servers[0], f"UPDATE {table} SET a = 3")
    assert "Load the table" in running.ends().hint
    asked(position, file, tables=(table,))
    running = position.lead(file)
    in_step(servers, table, running)


def test_columns_that_are_named_without_any_index_at_the_target(servers, keyless, position):
    table = keyless("a INT NOT NULL, b INT, note VARCHAR(9)")
    file = channel(servers, table, key=["a", "b"])
    assert said(file, "error") == []
    warnings = " ".join(said(file, "warning"))
    assert "agree in them become one row" in warnings
    assert "b, named under `key`, may be NULL" in warnings
    assert "row is deleted and inserted" in warnings
    running = position.lead(file)
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
