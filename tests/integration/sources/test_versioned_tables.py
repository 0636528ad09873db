"""Tables that keep their history: MariaDB logs it like live rows, so they are refused."""

import pytest

from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.errors import ConfigurationError, FatalError
from setl.systems.mysql.catalog import is_versioned
from tests.integration.every_type import sandbox_database, stream
from tests.unit.codec.binlog_server import decoded

pytestmark = pytest.mark.family("mariadb", why="MySQL has no system-versioned tables")

_TIMES = (
    "rs TIMESTAMP(6) GENERATED ALWAYS AS ROW START, re TIMESTAMP(6) GENERATED ALWAYS AS ROW END,"
    " PERIOD FOR SYSTEM_TIME(rs, re)"
)


@pytest.fixture(scope="module")
def sandbox(site_a):
    with sandbox_database(site_a) as sandbox:
        yield sandbox


@pytest.mark.parametrize(
    "columns",
    [
        "id INT PRIMARY KEY, v INT",
        "id INT PRIMARY KEY, v INT, " + _TIMES,
        "id INT NOT NULL UNIQUE, v INT",
        "id INT, v INT",
    ],
    ids=["hidden", "named", "unique", "keyless"],
)
@pytest.mark.parametrize(
    "statements",
    [
        ["INSERT INTO {} (id, v) VALUES (1, 1)"],
        ["UPDATE {} SET v = 2"],
        ["DELETE FROM {}"],
    ],
    ids=["insert", "update", "delete"],
)
def test_rows_of_a_versioned_table_are_refused(site_a, sandbox, columns, statements):
    connection, schema = sandbox
    table = f"{schema}.versioned"
    stream(
        site_a,
        connection,
        f"CREATE OR REPLACE TABLE {table} ({columns}) WITH SYSTEM VERSIONING",
        f"INSERT INTO {table} (id, v) VALUES (7, 7)",
    )
    entries = stream(site_a, connection, *(s.format(table) for s in statements))
    with pytest.raises(ConfigurationError, match="system-versioned") as caught:
        decoded(BinlogRowCodec(), entries)
    assert "DROP SYSTEM VERSIONING" in caught.value.hint
    assert is_versioned(connection, schema, "versioned")


@pytest.mark.parametrize(
    "columns",
    [
        "id INT, t TIMESTAMP(6) NOT NULL, s TIMESTAMP(6) NOT NULL, PRIMARY KEY (id, t)",
        "t TIMESTAMP(6) NOT NULL, s TIMESTAMP(6) NOT NULL, id INT",
    ],
)
def test_a_table_that_looks_alike_is_read(site_a, sandbox, columns):
    connection, schema = sandbox
    entries = stream(
        site_a,
        connection,
        f"CREATE OR REPLACE TABLE {schema}.alike ({columns})",
        f"INSERT INTO {schema}.alike (id, t, s) VALUES (1, '2026-01-02', '2026-01-03')",
    )
    assert len(decoded(BinlogRowCodec(), entries)) == 1
    assert not is_versioned(connection, schema, "alike")


def test_a_table_versioned_by_transactions_is_logged_by_statement(site_a, sandbox):
    connection, schema = sandbox
    times = _TIMES.replace("TIMESTAMP(6)", "BIGINT UNSIGNED")
    with pytest.raises(FatalError, match="logged a statement instead of its rows"):
        stream(
            site_a,
            connection,
            f"CREATE OR REPLACE TABLE {schema}.numbered (id INT, v INT, {times})"
            " WITH SYSTEM VERSIONING",
            f"INSERT INTO {schema}.numbered (id, v) VALUES (7, 7)",
        )
