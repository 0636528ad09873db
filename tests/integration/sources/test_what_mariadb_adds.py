"""What MariaDB alone logs: columns that it hides, sequences, and tables that are gone."""

import pymysql
import pytest

from setl.errors import CollisionError
from setl.operate.check import check_pipeline
from setl.systems.pipeline_check import PipelineCheck
from tests.integration.pipelines import execute, mysql, on_both, one_way, rows
from tests.waiting import eventually

pytestmark = pytest.mark.family("mariadb", why="MySQL has none of it")


db = on_both("added")


def both(servers, *statements):
    for server in servers:
        execute(server, *statements)


def test_unique_keys_over_long_values(servers, db, position):
    a, b = servers
    both(
        servers,
        f"CREATE TABLE {db}.t (id INT PRIMARY KEY, b BLOB UNIQUE, c INT, x TEXT UNIQUE)",
        f"CREATE TABLE {db}.u (b TEXT NOT NULL UNIQUE, c INT UNIQUE NOT NULL, d VARCHAR(9))",
    )
    file = one_way(a, mysql(b), [{"from": f"{db}.*"}])
    assert [f for f in check_pipeline(PipelineCheck(file.pipelines[0])) if f.level == "error"] == []
    running = position.lead(file)
    execute(
        a,
        f"INSERT INTO {db}.t VALUES (1, 'one', 1, 'x'), (2, NULL, 2, NULL), (3, '', 3, '')",
        f"INSERT INTO {db}.u VALUES ('a', 1, 'b')",
        f"UPDATE {db}.t SET b = 'changed', c = c + 1 WHERE id = 1",
        f"UPDATE {db}.t SET id = 9 WHERE id = 2",
        f"DELETE FROM {db}.t WHERE id = 3",
        f"UPDATE {db}.u SET b = 'z'",
        "SET SESSION binlog_row_image = 'MINIMAL'",
        f"UPDATE {db}.t SET x = 'y' WHERE id = 9",
    )
    running.applied(9)
    both(servers, f"ALTER TABLE {db}.t ADD COLUMN late INT")
    execute(a, f"UPDATE {db}.t SET late = id")
    running.applied(11)
    for table in ("t", "u"):
        want = execute(a, f"SELECT * FROM {db}.{table} ORDER BY c")
        assert execute(b, f"SELECT * FROM {db}.{table} ORDER BY c") == want
        assert want


def test_a_column_that_somebody_calls_so(servers, db):
    a, b = servers
    both(servers, f"CREATE TABLE {db}.t (id INT PRIMARY KEY, DB_ROW_HASH_1 BIGINT)")
    found = check_pipeline(PipelineCheck(one_way(a, mysql(b), [{"from": f"{db}.*"}]).pipelines[0]))
    assert [f.what for f in found if f.level == "error"] == [
        "a column has the name DB_ROW_HASH_1, which MariaDB gives to columns that it hides"
    ]


def test_keys_that_are_years_of_two_digits(servers, db):
    a, b = servers
    both(servers, f"CREATE TABLE {db}.t (y YEAR(2) PRIMARY KEY, other YEAR(2))")
    found = check_pipeline(PipelineCheck(one_way(a, mysql(b), [{"from": f"{db}.*"}]).pipelines[0]))
    assert [f.code for f in found if f.level == "error"] == ["key-year-2"]


def test_times_of_mariadb_5_3(servers, db, position):
    a, b = servers
    execute(a, "SET GLOBAL mysql56_temporal_format = OFF")
    try:
        both(
            servers,
            f"CREATE TABLE {db}.t (id INT PRIMARY KEY, a TIMESTAMP NULL, b DATETIME, c TIME)",
            f"CREATE TABLE {db}.u (id INT PRIMARY KEY, a TIMESTAMP(6) NULL, c TIME)",
        )
    finally:
        execute(a, "SET GLOBAL mysql56_temporal_format = ON")
    tables = [{"from": f"{db}.*"}]
    (error,) = (
        f
        for f in check_pipeline(PipelineCheck(one_way(a, mysql(b), tables).pipelines[0]))
        if f.level == "error"
    )
    assert error.code == "old-times"
    assert "a timestamp(6) /* mariadb-5.3 */" in error.what
    running = position.lead(one_way(a, mysql(b), tables))
    at = "'2001-02-03 13:18:08'"
    execute(
        a,
        "SET time_zone = '+00:00'",
        f"INSERT INTO {db}.t VALUES (1, {at}, {at}, '-1:02:03'), (2, NULL, NULL, NULL)",
    )
    running.applied(2)
    rows_of_t = "SELECT id, UNIX_TIMESTAMP(a), b, c FROM {}.t ORDER BY id"
    assert execute(b, rows_of_t.format(db)) == execute(a, rows_of_t.format(db))
    execute(a, f"INSERT INTO {db}.u (id, a) VALUES (1, {at}), (2, {at}), (3, {at})")
    assert "column a is a TIMESTAMP(6) in MariaDB's format of 5.3" in str(running.ends())
    assert execute(b, f"SELECT * FROM {db}.u") == ()


def test_sequences_under_a_wildcard(servers, db, position):
    a, b = servers
    both(
        servers,
        f"CREATE SEQUENCE {db}.q",
        f"CREATE TABLE {db}.t (id INT PRIMARY KEY DEFAULT NEXTVAL({db}.q), v INT)",
        # Its columns are a sequence's, but it has a key.
        f"CREATE TABLE {db}.like_one (next_not_cached_value BIGINT PRIMARY KEY,"
        " minimum_value BIGINT, maximum_value BIGINT, start_value BIGINT, increment BIGINT,"
        " cache_size BIGINT, cycle_option TINYINT, cycle_count BIGINT)",
    )
    file = one_way(a, mysql(b), [{"from": f"{db}.*"}])
    assert [f for f in check_pipeline(PipelineCheck(file.pipelines[0])) if f.level == "error"] == []
    running = position.lead(file)
    execute(
        a,
        f"INSERT INTO {db}.t (v) VALUES (1), (2)",
        f"SELECT NEXTVAL({db}.q)",
        f"SELECT SETVAL({db}.q, 5000)",
        "START TRANSACTION",
        f"INSERT INTO {db}.t (v) VALUES (3)",
        f"INSERT INTO {db}.like_one VALUES (1, 2, 3, 4, 5, 6, 7, 8)",
        "COMMIT",
        f"ALTER SEQUENCE {db}.q RESTART 9000",
        f"INSERT INTO {db}.t (v) VALUES (4)",
    )
    running.applied(5)
    for table in ("t", "like_one"):
        want = execute(a, f"SELECT * FROM {db}.{table} ORDER BY 1")
        assert execute(b, f"SELECT * FROM {db}.{table} ORDER BY 1") == want
        assert want
    # It is not there at the target.
    execute(a, f"CREATE TABLE {db}.copy AS SELECT * FROM {db}.q")
    assert f"{db}.copy" in str(running.ends())


def test_sequences_and_views_that_get_another_name(servers, db, position):
    """RENAME, ALTER and DROP TABLE take them for tables."""
    a, b = servers
    both(servers, f"CREATE TABLE {db}.t (id INT PRIMARY KEY)")
    running = position.lead(one_way(a, mysql(b), [{"from": f"{db}.*"}], ddl="pass"))
    execute(
        a,
        f"CREATE SEQUENCE {db}.q",
        f"CREATE VIEW {db}.v AS SELECT * FROM {db}.t",
        f"RENAME TABLE {db}.q TO {db}.between_, {db}.t TO {db}.u, {db}.between_ TO {db}.r",
        f"ALTER TABLE {db}.r ENGINE = Aria, RENAME {db}.s",
        f"RENAME TABLE {db}.v TO {db}.w",
        f"DROP TABLE {db}.s",
        f"INSERT INTO {db}.u VALUES (1)",
    )
    running.applied(1)
    assert execute(b, f"SHOW TABLES FROM {db}") == (("u",),)


def test_keys_without_overlaps(servers, db, position):
    a, b = servers
    columns = "id INT, s DATE, e DATE, v INT"
    for name, there in (("t", "(id, s, e)"), ("o", "(id, x WITHOUT OVERLAPS)")):
        for server, key in ((a, "(id, x WITHOUT OVERLAPS)"), (b, there)):
            execute(
                server,
                f"CREATE TABLE {db}.{name} ({columns}, PERIOD FOR x (s, e), PRIMARY KEY {key})",
            )
    file = one_way(a, mysql(b), [{"from": f"{db}.*"}])
    assert [f for f in check_pipeline(PipelineCheck(file.pipelines[0])) if f.level == "error"] == []
    running = position.lead(file)
    for name in ("t", "o"):
        execute(
            a,
            f"INSERT INTO {db}.{name} VALUES (1, '2020-01-01', '2020-02-01', 1),"
            " (1, '2020-02-01', '2020-03-01', 2)",
            f"UPDATE {db}.{name} SET e = '2020-01-20', v = 3 WHERE v = 1",
            f"DELETE FROM {db}.{name} FOR PORTION OF x FROM '2020-02-10' TO '2020-02-15'",
        )
    running.applied(10)
    # In one load, one row gives its days to another, and takes others.
    execute(
        a,
        "SET @until = '2020-01-05'",
        "START TRANSACTION",
        f"UPDATE {db}.o SET e = @until WHERE v = 3",
        f"UPDATE {db}.o SET s = @until WHERE v = 2 AND e = '2020-02-10'",
        f"UPDATE {db}.o SET v = v + 10",
        "COMMIT",
    )
    running.applied(15)
    for name in ("t", "o"):
        assert rows(b, f"{db}.{name}", "v, s") == rows(a, f"{db}.{name}", "v, s")
    # The target has a row that the source has not: the load refuses, and removes nothing.
    execute(b, f"INSERT INTO {db}.o VALUES (9, '2020-01-01', '2020-12-01', 9)")
    execute(a, f"INSERT INTO {db}.o VALUES (9, '2020-05-01', '2020-06-01', 1)")
    assert isinstance(running.ends(), CollisionError)
    assert len(rows(b, f"{db}.o", "v, s")) == 4
    execute(b, f"DROP TABLE {db}.o")
    (missing,) = [f for f in check_pipeline(PipelineCheck(file.pipelines[0])) if f.level == "error"]
    assert "WITHOUT OVERLAPS" in str(missing.hint)


def test_a_table_that_a_failed_create_or_replace_dropped(servers, db, position):
    a, b = servers
    both(servers, *(f"CREATE TABLE {db}.{name} (id INT PRIMARY KEY)" for name in ("t", "other")))
    running = position.lead(one_way(a, mysql(b), [{"from": f"{db}.*"}], ddl="pass"))
    again = "(PRIMARY KEY (id)) SELECT 1 AS id UNION ALL SELECT 1"
    with pytest.raises(pymysql.IntegrityError, match="Duplicate entry"):
        execute(a, f"INSERT INTO {db}.t VALUES (1)", f"CREATE OR REPLACE TABLE {db}.t {again}")
    execute(a, f"INSERT INTO {db}.other VALUES (1)")
    running.applied(2)
    tables = f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{db}'"
    assert execute(a, tables) == execute(b, tables) == (("other",),)


def test_columns_that_both_servers_compute(servers, db, position):
    """Younger releases do not log them with updates, whatever binlog_row_image says."""
    a, b = servers
    columns = "id INT PRIMARY KEY, a INT, v INT AS (a + 1), s INT AS (a * 2) STORED, b TEXT"
    both(servers, f"CREATE TABLE {db}.t ({columns}, UNIQUE KEY u (s))")
    execute(a, f"CREATE TABLE {db}.u ({columns})")
    execute(b, f"CREATE TABLE {db}.u (id INT PRIMARY KEY, a INT)")
    tables = [{"from": f"{db}.t"}, {"from": f"{db}.u", "exclude": ["v", "s", "b"]}]
    file = one_way(a, mysql(b), tables)
    found = check_pipeline(PipelineCheck(file.pipelines[0]))
    assert [f for f in found if f.level == "error" or f.code == "generated-columns"] == []
    running = position.lead(file)
    execute(
        a,
        f"INSERT INTO {db}.t (id, a, b) VALUES (1, 1, 'x'), (2, 2, 'y'), (3, 3, 'z')",
        f"UPDATE {db}.t SET id = 5, a = 7 WHERE id = 1",
        f"UPDATE {db}.t SET a = 1 WHERE id = 2",  # the unique value moves
        f"REPLACE INTO {db}.t (id, a) VALUES (3, 2)",
        f"INSERT INTO {db}.u (id, a, b) VALUES (1, 1, 'x'), (2, 2, 'y')",
    )
    running.applied(8)
    execute(
        a,
        f"UPDATE {db}.t SET a = a + 10 ORDER BY id DESC",
        f"DELETE FROM {db}.t WHERE s = 24",
        "SET SESSION binlog_row_image = 'NOBLOB'",
        f"UPDATE {db}.u SET a = 9 WHERE id = 1",
        f"UPDATE {db}.u SET id = 4 WHERE id = 2",
    )
    # Tables are written by tasks of their own, in no order.
    eventually(lambda: rows(b, f"{db}.u") == ((1, 9), (4, 2)), 60)
    eventually(lambda: rows(b, f"{db}.t") == rows(a, f"{db}.t") != (), 60)


def test_columns_that_the_source_alone_computes(servers, db, position):
    a, b = servers
    execute(a, f"CREATE TABLE {db}.t (id INT PRIMARY KEY, a INT, s TEXT AS (REPEAT(a, 2)) STORED)")
    execute(b, f"CREATE TABLE {db}.t (id INT PRIMARY KEY, a INT, s TEXT)")
    running = position.lead(one_way(a, mysql(b), [{"from": f"{db}.t"}]))
    execute(
        a,
        "SET SESSION binlog_row_image = 'NOBLOB'",
        f"INSERT INTO {db}.t (id, a) VALUES (1, 1)",
        f"UPDATE {db}.t SET id = 5, a = 7 WHERE id = 1",
    )

    def right():
        """The row is there, or the pipeline has stopped for want of a value."""
        if not running.thread.is_alive():
            assert "does not say what s of its row holds" in str(running.error)
            return True
        return rows(b, f"{db}.t") == rows(a, f"{db}.t") != ()

    eventually(right, 60)
    assert rows(b, f"{db}.t") in (rows(a, f"{db}.t"), ((1, 1, "11"),), ())
