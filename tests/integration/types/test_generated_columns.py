"""Generated columns have the source's values, whatever session wrote the row (I25)."""

import pytest

from setl.channel.reading import parse_channel
from setl.clock import SystemClock
from setl.errors import DataError
from setl.load.deadletters.storing import Faults
from setl.model.change import TargetChanges
from setl.systems.mysql.load.targets import Targets
from setl.systems.mysql.sink.unlogged_columns import logged_columns_only
from tests.integration.pipelines import execute, fresh_name, mysql, one_way
from tests.integration.types.test_types_mysql import has_loaded
from tests.mysql_servers import logs_no_generated
from tests.waiting import eventually

LENIENT = "SET sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION'"

# Table → its columns besides `id`, and what sessions write there: settings, then a statement.
TABLES = {
    "days": (
        """created TIMESTAMP(3) NULL, n INT, day DATE AS (DATE(created)) STORED,
        shown VARCHAR(40) AS (HOUR(created)) STORED, KEY (day)""",
        """
        time_zone = '+08:00': INSERT INTO {t} (id, created, n) VALUES\
            (1, '2026-01-01 01:00:00', 1), (2, '2026-06-01 12:00:00.5', 2), (3, NULL, 3)
        time_zone = '-05:00': INSERT INTO {t} (id, created) VALUES (4, '2026-01-01 22:00:00'),\
            (5, '1970-01-01 00:00:01'), (6, '2038-01-18 22:14:07')
        time_zone = '+05:45': UPDATE {t} SET n = 7 WHERE id IN (1, 4)
        time_zone = '+00:00': UPDATE {t} SET created = '2026-03-03 23:59:59' WHERE id = 2
        time_zone = '+08:00': UPDATE {t} SET id = 30 WHERE id = 3
        time_zone = '+08:00': DELETE FROM {t} WHERE id = 5
        """,
    ),
    # In UTC both are of the year 2025.
    "unique_years": (
        """ts TIMESTAMP NULL, h DATETIME AS (ts) STORED, y INT AS (YEAR(ts)) STORED, UNIQUE (y)""",
        """
        time_zone = '+08:00': INSERT INTO {t} (id, ts) VALUES (1, '2026-01-01 01:00:00'),\
            (2, '2025-06-01 00:00:00')
        time_zone = '+08:00': UPDATE {t} SET ts = '2024-01-01 01:00:00' WHERE id = 2
        """,
    ),
    "moments": (
        """ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, again TIMESTAMP AS (ts) STORED,
        d DATETIME NULL""",
        """
        time_zone = '+09:30': INSERT INTO {t} (id, ts, d) VALUES\
            (1, '2026-01-01 01:00:00', '2026-01-01 01:00:00')
        """,
    ),
    "checked": (
        """ts TIMESTAMP NULL, CHECK (HOUR(ts) >= 8)""",
        """
        time_zone = '+08:00': INSERT INTO {t} (id, ts) VALUES (1, '2026-01-01 09:00:00')
        time_zone = '-05:00': INSERT INTO {t} (id, ts) VALUES (2, '2026-01-01 23:30:00')
        """,
    ),
    "cut": (
        """a VARCHAR(10), c VARCHAR(3) AS (a) STORED, v VARCHAR(2) AS (a) VIRTUAL, n INT,
        t TINYINT AS (n) STORED""",
        """
        sql_mode = '': INSERT INTO {t} (id, a, n) VALUES (1, 'abcdef', 1), (2, 'x', 1000),\
            (3, NULL, NULL), (4, 'abc', -1000)
        sql_mode = '': UPDATE {t} SET a = 'bcdefg' WHERE id = 2
        """,
    ),
    "both": (
        """ts TIMESTAMP NULL, s VARCHAR(10) AS (ts) STORED, z INT AS (100 / n) STORED, n INT""",
        """
        time_zone = '+08:00', sql_mode = '': INSERT INTO {t} (id, ts, n) VALUES\
            (1, '2026-01-01 01:00:00', 3), (2, '2026-02-01 01:00:00', 0)
        """,
    ),
}


def content(server, table):
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT * FROM {table} ORDER BY id")
        return cursor.fetchall()


def contents(server, db):
    return [content(server, f"{db}.{name}") for name in TABLES]


def make(servers, db, tables):
    for server in servers:
        execute(server, f"CREATE DATABASE {db}")
        for name, definition in tables.items():
            execute(server, LENIENT, f"CREATE TABLE {db}.{name} (id INT PRIMARY KEY, {definition})")


def write(server, db):
    """Let each session write; returns how many rows were changed."""
    count = 0
    for name, (_, writes) in TABLES.items():
        for line in writes.replace("\\\n", "").strip().splitlines():
            settings, _, statement = line.strip().partition(": ")
            with server.connect() as connection, connection.cursor() as cursor:
                cursor.execute(f"SET {settings}")
                count += cursor.execute(statement.format(t=f"{db}.{name}"))
    return count


@pytest.fixture
def fresh_db(servers):
    name = fresh_name("computed")
    make(servers, name, {table: definition for table, (definition, _) in TABLES.items()})
    yield name
    for server in servers:
        execute(server, f"DROP DATABASE {name}")


def same(servers, db):
    a, b = servers
    for name in TABLES:
        assert content(b, f"{db}.{name}") == content(a, f"{db}.{name}"), name


def test_the_values_are_the_sources_whatever_session_wrote_the_row(servers, position, fresh_db):
    a, b = servers
    with a.connect() as connection:
        unlogged = logs_no_generated(connection)
    if unlogged:
        running = position.lead(one_way(a, mysql(b), [{"from": f"{fresh_db}.days"}]))
        write(a, fresh_db)
        assert "computes depends on the time zone of the session" in running.ends().message
        return
    running = position.lead(one_way(a, mysql(b), [{"from": f"{fresh_db}.*"}]))
    running.applied(write(a, fresh_db))
    same(servers, fresh_db)


def test_the_values_of_rows_that_are_loaded_or_read_at_the_source(servers, position, fresh_db):
    a, b = servers
    write(a, fresh_db)
    source = {**mysql(a), "start": {"load": True}, "heartbeat": 0.2}
    tables = [{"from": f"{fresh_db}.*", "read": "source"}]
    pipeline = {"name": "p", "source": source, "target": mysql(b), "tables": tables}
    running = position.lead(parse_channel({"channel": fresh_name("c"), "pipelines": [pipeline]}))
    eventually(lambda: has_loaded(running), 180, message="the tables are loaded")
    same(servers, fresh_db)
    with a.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '-08:00', sql_mode = ''")
        cursor.execute(f"UPDATE {fresh_db}.days SET created = '2027-07-07 23:00:00' WHERE id < 5")
        cursor.execute(f"UPDATE {fresh_db}.cut SET a = 'uvwxyz', n = 500")
    eventually(lambda: contents(b, fresh_db) == contents(a, fresh_db), 60)


@pytest.mark.parametrize(
    ("table", "refused"), [("days", "day, shown"), ("moments", "again"), ("cut", "")]
)
def test_rows_without_their_generated_columns(servers, fresh_db, table, refused):
    """As MariaDB 11.8 logs them: the target computes them, if it is the same for every session."""
    _, b = servers
    with b.connect() as connection:
        targets = Targets(SystemClock())
        described = targets.described(connection, (fresh_db, table))
        plain = tuple(c for c in described.columns if not c.generated)
        unlogged = tuple(c.name for c in described.columns if c.generated)
        change = TargetChanges(
            (fresh_db, table), plain, (0,), [(1, *[None] * (len(plain) - 1))], unlogged=unlogged
        )
        if not refused:
            assert logged_columns_only(targets, connection, [change], Faults((), 0)) == [change]
            return
        with pytest.raises(DataError, match=f"does not say what {refused} of its row") as caught:
            logged_columns_only(targets, connection, [change], Faults((), 0))
        assert "depends on the time zone" in caught.value.message
        assert "read: source" in caught.value.hint
