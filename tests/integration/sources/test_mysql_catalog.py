"""Reading a real server's catalog."""

from contextlib import closing

import pytest

from setl.model.schema import Kind
from setl.systems.mysql.catalog import list_tables, read_table
from tests.loading import execute, unique


@pytest.fixture
def schema(site_a):
    name = unique("cat")
    execute(site_a, f"CREATE DATABASE {name} COLLATE utf8mb4_general_ci")
    return name


@pytest.fixture
def connection(site_a):
    with closing(site_a.connect()) as opened:
        yield opened


@pytest.mark.family("mariadb", why="MySQL has no type INET6")
def test_columns_and_keys_in_their_order(site_a, connection, schema):
    execute(
        site_a,
        f"""CREATE TABLE {schema}.t (
            id INT UNSIGNED, name VARCHAR(20), price DECIMAL(12,3), ip INET6,
            mail VARCHAR(99) INVISIBLE, twice BIGINT AS (id * 2) STORED INVISIBLE, doc JSON,
            PRIMARY KEY (name, id), UNIQUE a_mail (mail(10)), UNIQUE b_two (price, id),
            KEY not_unique (ip), UNIQUE c_twice (twice))""",
    )
    table = read_table(connection, schema, "t")
    assert table is not None
    assert table.names == ("id", "name", "price", "ip", "mail", "twice", "doc")
    assert [c.kind for c in table.columns] == [
        Kind.INTEGER, Kind.TEXT, Kind.DECIMAL, Kind.TEXT, Kind.TEXT, Kind.INTEGER, Kind.TEXT,
    ]  # fmt: skip
    assert [c.generated for c in table.columns] == [False] * 5 + [True, False]
    assert table.columns[0].unsigned
    assert (table.columns[2].precision, table.columns[2].scale) == (12, 3)
    assert table.key == (1, 0)
    assert table.unique == ((4,), (2, 0), (5,))
    assert table.name == f"{schema}.t"


def test_a_table_without_a_key_and_one_that_is_not_there(site_a, connection, schema):
    execute(site_a, f"CREATE TABLE {schema}.T (x INT)")
    table = read_table(connection, schema, "T")
    assert table is not None
    assert (table.key, table.unique) == ((), ())
    assert read_table(connection, schema, "t") is None
    assert read_table(connection, "no_such_schema", "T") is None


@pytest.mark.family("mariadb", why="MySQL has no sequences and no versioned tables")
def test_tables_without_views_and_system_schemas(site_a, connection, schema):
    execute(
        site_a,
        f"CREATE TABLE {schema}.b (x INT)",
        f"CREATE TABLE {schema}.a (x INT PRIMARY KEY) WITH SYSTEM VERSIONING",
        f"CREATE VIEW {schema}.v AS SELECT 1",
        f"CREATE SEQUENCE {schema}.s",
        "CREATE DATABASE IF NOT EXISTS retl",
        "CREATE TABLE IF NOT EXISTS retl.of_setl (x INT)",
    )
    assert list_tables(connection, schema) == [(schema, "a"), (schema, "b")]
    everything = list_tables(connection)
    assert {(schema, "a"), (schema, "b")} <= set(everything)
    assert {s for s, _ in everything}.isdisjoint({"mysql", "sys", "retl", "information_schema"})
    assert ("retl", "of_setl") in list_tables(connection, "retl")
    execute(site_a, "DROP TABLE retl.of_setl")
