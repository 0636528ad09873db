"""Tables without a primary key: keyed by a unique key, by columns that are named, or refused."""

import pytest

from setl.errors import ConfigurationError, DataError
from setl.operate.check import check_pipeline
from setl.systems.pipeline_check import PipelineCheck
from tests.integration.pipelines import execute, fresh_name, mysql, one_way, rows


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


@pytest.mark.parametrize("columns", ["a INT, b INT", "a INT, b INT, UNIQUE (a)"])
def test_no_key_is_refused_with_the_ways_out(servers, keyless, place, columns):
    table = keyless(columns)
    file = channel(servers, table)
    (error,) = said(file, "error")[:1]
    assert "no primary key, nor a unique one" in error
    running = place.lead(file)
    execute(servers[0], f"INSERT INTO {table} VALUES (1, 1)")
    failure = running.ends()
    assert isinstance(failure, ConfigurationError)
    assert "`key`" in (failure.hint or "")
    assert rows(servers[1], table) == ()


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
