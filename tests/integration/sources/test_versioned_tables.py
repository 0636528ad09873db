"""Tables that keep their history: MariaDB logs it like live rows, which alone are read."""

import pytest

from setl.bulk.verify_target import VerifySettings
from setl.channel.reading import parse_channel
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.errors import ConfigurationError
from setl.model.change import Op
from setl.model.entry import EntryKind
from setl.operate.verify import verify_pipeline
from setl.systems.mysql.binlog.server import BinlogServer
from setl.systems.mysql.catalog import is_versioned
from tests.integration.every_type import sandbox_database, stream
from tests.integration.pipelines import execute, fresh_name, mysql
from tests.integration.table_loads.test_table_load import wait_until_loaded
from tests.loading import endpoint_of
from tests.unit.codec.binlog_server import decoded
from tests.waiting import eventually

pytestmark = pytest.mark.family("mariadb", why="MySQL has no system-versioned tables")

_TIMES = (
    "rs TIMESTAMP(6) GENERATED ALWAYS AS ROW START, re TIMESTAMP(6) GENERATED ALWAYS AS ROW END,"
    " PERIOD FOR SYSTEM_TIME(rs, re)"
)
_OVERLAPS = (
    "id INT, v INT, s DATE DEFAULT '2001-01-01', e DATE DEFAULT '2002-01-01',"
    " PERIOD FOR p(s, e), PRIMARY KEY (id, p WITHOUT OVERLAPS)"
)


@pytest.fixture(scope="module")
def sandbox(site_a):
    with sandbox_database(site_a) as sandbox:
        yield sandbox


_COLUMNS = pytest.mark.parametrize(
    "columns",
    [
        "id INT PRIMARY KEY, v INT",
        "id INT PRIMARY KEY, v INT, " + _TIMES,
        "id INT NOT NULL UNIQUE, v INT",
        "id INT, v INT",
        _OVERLAPS,
    ],
    ids=["hidden", "named", "unique", "keyless", "overlaps"],
)


def is_live(entries):
    """The changes of live rows among entries, each with its kind."""
    found = [rows for _, rows in decoded(BinlogRowCodec(), entries)]
    assert all(list(rows.schema.names[:2]) == ["id", "v"] for rows in found)
    assert not any({"row_end", "re"} & set(rows.schema.names) for rows in found)
    return [(rows.op, *(row and row[:2] for row in pair)) for rows in found for pair in rows.images]


@_COLUMNS
def test_live_rows_are_distinguished_from_the_past(site_a, sandbox, columns):
    connection, schema = sandbox
    table = f"{schema}.living"
    versions = BinlogServer(endpoint_of(site_a)).versions
    replace = "INSERT" if "OVERLAPS" in columns else "REPLACE"  # which the server lacks there
    entries = stream(
        site_a,
        connection,
        f"CREATE OR REPLACE TABLE {table} ({columns}) WITH SYSTEM VERSIONING",
        f"INSERT INTO {table} (id, v) VALUES (1, 1), (2, 2)",
        f"UPDATE {table} SET v = v + 1",
        f"UPDATE {table} SET id = 5 WHERE id = 1",
        f"DELETE FROM {table} WHERE id = 2",
        f"{replace} INTO {table} (id, v) VALUES (7, 7)",
        f"DELETE HISTORY FROM {table}",
        versions=versions,
    )
    assert is_live(entries) == [
        (Op.INSERT, None, (1, 1)),
        (Op.INSERT, None, (2, 2)),
        (Op.UPDATE, (1, 1), (1, 2)),
        (Op.UPDATE, (2, 2), (2, 3)),
        (Op.UPDATE, (1, 2), (5, 2)),
        (Op.DELETE, (2, 3), None),
        (Op.INSERT, None, (7, 7)),
    ]
    if columns.startswith("id INT PRIMARY KEY"):
        replaced = stream(
            site_a, connection, f"REPLACE INTO {table} (id, v) VALUES (7, 8)", versions=versions
        )
        assert is_live(replaced) in (
            [(Op.DELETE, (7, 7), None), (Op.INSERT, None, (7, 8))],
            [(Op.UPDATE, (7, 7), (7, 8))],  # from 11.8 on
        )


@_COLUMNS
@pytest.mark.parametrize(
    "statements",
    [
        ["INSERT INTO {} (id, v) VALUES (1, 1)"],
        ["UPDATE {} SET v = 2"],
        ["DELETE FROM {}"],
    ],
    ids=["insert", "update", "delete"],
)
def test_rows_are_refused_where_the_source_does_not_know(site_a, sandbox, columns, statements):
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
    assert "setl load --replace" in caught.value.hint
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
    entries = stream(
        site_a,
        connection,
        f"CREATE OR REPLACE TABLE {schema}.numbered (id INT, v INT, {times})"
        " WITH SYSTEM VERSIONING",
        f"INSERT INTO {schema}.numbered (id, v) VALUES (7, 7)",
    )
    (statement,) = (entry for entry in entries if entry.kind is EntryKind.STATEMENT)
    assert "numbered" in statement.statement


_KEEP = "SET system_versioning_alter_history = KEEP"
_TABLES = {
    "hidden": "(id INT PRIMARY KEY, v INT, u INT UNIQUE) WITH SYSTEM VERSIONING",
    "named": f"(id INT PRIMARY KEY, v INT, u INT UNIQUE, {_TIMES}) WITH SYSTEM VERSIONING",
    "parts": "(id INT PRIMARY KEY, v INT, u INT UNIQUE) WITH SYSTEM VERSIONING PARTITION BY"
    " SYSTEM_TIME (PARTITION p0 HISTORY, PARTITION pn CURRENT)",
}


def _changes(table):
    return (
        f"INSERT INTO {table} (id, v, u) VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3), (4, 4, 4)",
        f"UPDATE {table} SET v = v + 10 WHERE id < 3",
        f"DELETE FROM {table} WHERE id = 2",
        f"REPLACE INTO {table} (id, v, u) VALUES (4, 40, 2)",
        f"UPDATE {table} SET id = 9 WHERE id = 3",
        f"INSERT INTO {table} (id, v, u) VALUES (9, 0, 3) ON DUPLICATE KEY UPDATE v = 99",
    )


def test_live_rows_arrive_and_the_past_is_the_targets_own(servers, position, spark):
    a, b = servers
    db = fresh_name("ver")
    execute(a, f"CREATE DATABASE {db}")
    try:
        for name, text in _TABLES.items():
            execute(a, f"CREATE TABLE {db}.{name} {text}", *_changes(f"{db}.{name}"))
        source = {**mysql(a), "start": {"load": True}, "heartbeat": 0}
        pipeline = {"name": "p", "source": source, "target": mysql(b), "create": True}
        pipeline |= {"ddl": "pass", "tables": [{"from": f"{db}.*"}]}
        file = parse_channel({"channel": fresh_name("ver"), "pipelines": [pipeline]})
        running = position.lead(file)
        wait_until_loaded(running)
        for name, text in _TABLES.items():
            table, new = f"{db}.{name}", f"{db}.new_{name}"
            execute(a, f"DELETE FROM {table}", *_changes(table), f"DELETE HISTORY FROM {table}")
            execute(a, f"CREATE TABLE {new} {text}", *_changes(new))
            execute(a, _KEEP, f"ALTER TABLE {new} ADD w INT DEFAULT 7", f"UPDATE {new} SET w = id")

        def same():
            assert running.thread.is_alive(), running.figures.error
            tables = execute(a, f"SHOW TABLES IN {db}")
            assert execute(b, f"SHOW TABLES IN {db}") == tables, running.figures.error
            asked = f"SHOW COLUMNS IN {db}.new_parts LIKE 'w'"
            assert execute(b, asked), running.figures.error
            for name in _TABLES:
                for table, columns in ((name, "id, v, u"), (f"new_{name}", "id, v, u, w")):
                    query = f"SELECT {columns} FROM {db}.{table} ORDER BY id"
                    assert execute(b, query) == execute(a, query), (table, running.figures.error)
            return True

        eventually(same, 60, interval=0.3)
        assert "VERSIONING" not in execute(b, f"SHOW CREATE TABLE {db}.named")[0][1]
        history = f"SELECT COUNT(*) FROM {db}.new_named FOR SYSTEM_TIME ALL"
        assert execute(b, history)[0][0] > 3
        execute(a, f"ALTER TABLE {db}.new_hidden DROP SYSTEM VERSIONING")
        execute(a, f"DELETE FROM {db}.new_hidden WHERE id = 9")
        eventually(same, 60, interval=0.3)
        verdicts = verify_pipeline(spark, file.pipelines[0], settings=VerifySettings())
        assert all(verdict.equal for verdict in verdicts), verdicts
    finally:
        for server in servers:
            execute(server, f"DROP DATABASE IF EXISTS {db}")
