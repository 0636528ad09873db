"""Generated columns have the source's values, whatever session wrote the row (I25)."""

from tests.integration.pipelines import execute, fresh_name, mysql, one_way

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


def make(servers, db, tables):
    for server in servers:
        execute(server, f"CREATE DATABASE {db}")
        for name, definition in tables.items():
            execute(server, LENIENT, f"CREATE TABLE {db}.{name} (id INT PRIMARY KEY, {definition})")


def test_the_values_are_the_sources_whatever_session_wrote_the_row(servers, place):
    a, b = servers
    db = fresh_name("computed")
    make(servers, db, {name: definition for name, (definition, _) in TABLES.items()})
    running = place.lead(one_way(a, mysql(b), [{"from": f"{db}.*"}]))
    count = 0
    for name, (_, writes) in TABLES.items():
        for line in writes.replace("\\\n", "").strip().splitlines():
            settings, _, statement = line.strip().partition(": ")
            with a.connect() as connection, connection.cursor() as cursor:
                cursor.execute(f"SET {settings}")
                count += cursor.execute(statement.format(t=f"{db}.{name}"))
    running.applied(count)
    for name in TABLES:
        assert content(b, f"{db}.{name}") == content(a, f"{db}.{name}"), name
    for server in servers:
        execute(server, f"DROP DATABASE {db}")
