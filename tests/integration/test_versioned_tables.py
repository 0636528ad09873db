"""System-versioned tables of MariaDB are refused, by `check` and while rows are read."""

import pytest

from setl.codec.binlog.rows import BinlogRowCodec
from setl.errors import ConfigurationError
from setl.model.entry import EntryKind
from tests.integration.every_type import sandbox_database, stream
from tests.unit.codec.binlog_server import decoded

pytestmark = pytest.mark.family("mariadb", why="MySQL has no system-versioned tables")

PERIOD = (
    "began TIMESTAMP(6) GENERATED ALWAYS AS ROW START,"
    " ended TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (began, ended)"
)
VERSIONED = {
    "hidden": "id INT PRIMARY KEY, v INT",
    "hidden without a key": "id INT NOT NULL, v INT",
    "times": f"id INT PRIMARY KEY, v INT, {PERIOD}",
    "times without a key": f"{PERIOD}, id INT NOT NULL, v INT",
}
CHANGES = {
    "an insert": ["INSERT INTO {table} (id, v) VALUES (3, 3)"],
    "an update": ["UPDATE {table} SET v = v + 1 WHERE id = 1"],
    "a delete": ["DELETE FROM {table} WHERE id = 2"],
}


@pytest.fixture(scope="module")
def sandbox(site_a):
    with sandbox_database(site_a) as sandbox:
        yield sandbox


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", VERSIONED)
def test_the_first_rows_of_a_versioned_table_are_refused(site_a, sandbox, name, change):
    connection, schema = sandbox
    table = f"{schema}.`{name} {change}`"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} ({VERSIONED[name]}) WITH SYSTEM VERSIONING")
        cursor.execute(f"INSERT INTO {table} (id, v) VALUES (1, 1), (2, 2)")
    statements = [statement.format(table=table) for statement in CHANGES[change]]
    entries = stream(site_a, connection, *statements)
    first = next(e for e in entries if e.kind is EntryKind.ROWS)
    codec = BinlogRowCodec()
    with pytest.raises(ConfigurationError, match="system-versioned") as raised:
        codec.decode(first.payload, first.context)
    assert raised.value.where["table"] == f"{name} {change}"
    assert codec.scanner(first.context, lambda schema: (0,)) is None


def test_tables_that_look_alike_are_read(site_a, sandbox):
    connection, schema = sandbox
    table = f"{schema}.plain"
    entries = stream(
        site_a,
        connection,
        f"CREATE TABLE {table} (id INT, row_start TIMESTAMP(6) NOT NULL,"
        " row_end TIMESTAMP(6) NOT NULL, PRIMARY KEY (id, row_end))",
        f"INSERT INTO {table} VALUES (1, NOW(6), NOW(6)), (2, NOW(6), '2030-01-01')",
        f"UPDATE {table} SET row_end = NOW(6) WHERE id = 2",
    )
    assert len(decoded(BinlogRowCodec(), entries)) == 2
