"""What a server gives every new session changes nothing of what is read or written."""

from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from setl.systems.mysql.catalog import read_table
from setl.systems.mysql.connection import connect, is_mariadb
from setl.systems.mysql.reading.table_reader import TableReader
from setl.systems.mysql.values.conditions import Condition
from setl.systems.mysql.values.row_text import VALUES
from tests.integration.pipelines import execute, on_a
from tests.loading import endpoint_of

ALL = Condition("TRUE", ())


schema = on_a(
    "settings",
    "CREATE TABLE {db}.t (id INT PRIMARY KEY, a INT, b INT)",
    "INSERT INTO {db}.t VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)",
)


@contextmanager
def reported(server, name, value):
    """A server that gives new sessions this value."""
    ((before,),) = execute(server, f"SELECT @@GLOBAL.{name}")
    execute(server, f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        default = isinstance(before, str) and before in {"DEFAULT", ""}
        execute(server, f"SET GLOBAL {name} = {'DEFAULT' if default else repr(before)}")


def keys_of(server, schema, table="t"):
    endpoint = endpoint_of(server)
    with closing(connect(endpoint)) as connection:
        described = read_table(connection, schema, table)
    assert described is not None
    reader = TableReader(endpoint, described)
    columns = described.columns
    return described.names, [row[0] for rows in reader.read(columns, ALL) for row in rows]


@pytest.mark.parametrize(("name", "value"), [("sql_select_limit", 2), ("max_join_size", 1)])
def test_a_table_is_read_with_all_columns_and_rows(site_a, schema, name, value):
    with reported(site_a, name, value):
        assert keys_of(site_a, schema) == (("id", "a", "b"), [1, 2, 3])


def test_numbers_are_read_with_all_their_digits(site_a, schema):
    value = 4.94883412249289e-15
    execute(
        site_a,
        f"CREATE TABLE {schema}.n (id DOUBLE, d DOUBLE UNSIGNED)",
        f"INSERT INTO {schema}.n VALUES ({value!r}, {value!r})",
    )
    with reported(site_a, "sql_buffer_result", 1):
        endpoint = endpoint_of(site_a)
        with closing(connect(endpoint)) as connection:
            described = read_table(connection, schema, "n")
        assert described is not None
        reader = TableReader(endpoint, described)
        (rows,) = reader.read(described.columns, ALL)
        (texts,) = reader.rendered(VALUES, described.columns, ALL)
    assert rows == [(value, value)]
    ((one, other),) = [text.decode().strip("()").replace("'", "").split(",") for text in texts]
    assert (float(one), float(other)) == (value, value)


def test_rows_that_are_not_committed_are_not_read(site_a, schema):
    with closing(connect(endpoint_of(site_a))) as connection:
        name = "tx_isolation" if is_mariadb(connection) else "transaction_isolation"
    with closing(site_a.connect(autocommit=False)) as client, client.cursor() as cursor:
        cursor.execute(f"INSERT INTO {schema}.t VALUES (4, 4, 4)")
        with reported(site_a, name, "'READ-UNCOMMITTED'"):
            assert keys_of(site_a, schema)[1] == [1, 2, 3]


def test_a_read_may_take_longer_than_statements_of_others(site_a, schema):
    endpoint = endpoint_of(site_a)
    with closing(connect(endpoint)) as connection:
        described = read_table(connection, schema, "t")
        mariadb = is_mariadb(connection)
    assert described is not None
    slow = Condition("SLEEP(0.5) = 0", ())
    limit = ("max_statement_time", 1) if mariadb else ("max_execution_time", 1000)
    with reported(site_a, *limit):
        read = TableReader(endpoint, described).read(described.columns, slow)
        assert [row[0] for rows in read for row in rows] == [1, 2, 3]


@pytest.mark.family("mariadb", why="MySQL has no system-versioned tables")
def test_a_versioned_table_is_read_as_it_is_now(site_a, schema):
    execute(site_a, f"ALTER TABLE {schema}.t ADD SYSTEM VERSIONING")
    with reported(site_a, "system_versioning_asof", "'2001-01-01 00:00:00'"):
        assert keys_of(site_a, schema)[1] == [1, 2, 3]


@pytest.mark.family("mysql", why="MariaDB makes no keys of its own that show")
def test_a_key_that_the_server_made_is_a_column(site_a, schema):
    execute(
        site_a,
        "SET SESSION sql_generate_invisible_primary_key = ON",
        f"CREATE TABLE {schema}.g (a INT)",
    )
    with reported(site_a, "show_gipk_in_create_table_and_information_schema", "OFF"):
        assert keys_of(site_a, schema, "g")[0] == ("my_row_id", "a")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("completion_type", "'CHAIN'"),
        ("completion_type", "'RELEASE'"),
        ("autocommit", 0),
        ("sql_safe_updates", 1),
    ],
)
def test_what_is_written_stays(site_a, schema, name, value):
    with reported(site_a, name, value):
        with closing(connect(endpoint_of(site_a))) as connection, connection.cursor() as cursor:
            connection.begin()
            cursor.execute(f"INSERT INTO {schema}.t VALUES (4, 4, 4)")
            connection.commit()
            cursor.execute(f"INSERT INTO {schema}.t VALUES (5, 5, 5)")
            cursor.execute(f"UPDATE {schema}.t SET a = 0 WHERE b > 3")
        assert execute(site_a, f"SELECT id FROM {schema}.t WHERE a = 0") == ((4,), (5,))


def test_a_transaction_that_a_server_begins_for_each_connection_is_left(site_a, schema):
    # The server does nothing for accounts that may do everything.
    account = f"'{schema}'@'%'"
    execute(
        site_a, f"CREATE USER {account} IDENTIFIED BY 'x'", f"GRANT ALL ON {schema}.* TO {account}"
    )
    endpoint = replace(endpoint_of(site_a), user=schema, password="x")
    try:
        with (
            reported(site_a, "init_connect", "'START TRANSACTION'"),
            closing(connect(endpoint)) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(f"INSERT INTO {schema}.t VALUES (4, 4, 4)")
        assert len(execute(site_a, f"SELECT id FROM {schema}.t")) == 4
    finally:
        execute(site_a, f"DROP USER {account}")
