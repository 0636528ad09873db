"""Records the binlog events that `tests.unit.codec.mutated_events` changes at random.

Run it by hand where the corpus is to have something new::

    python -m tests.integration.record_binlog_corpus

It starts a server of each family, has it write one event or more of every kind and column type,
and stores what it sends in ``tests/unit/data/binlog/corpus.xz``.
"""

import sys
import tempfile
from pathlib import Path

from setl.model.position import BinlogPosition
from tests.databases import new_server
from tests.integration.every_type import CHARSETS, TYPES, run
from tests.mysql_servers import compressed_binlog, reset_binlogs
from tests.unit.codec.binlog_corpus import store
from tests.unit.codec.binlog_server import end_of, raw_events

FAMILIES = ("mariadb", "mysql")
# Values of the catalogue that are too long for events that are to be changed thousands of times.
SHORTER = {
    "text": ["'a'", "REPEAT('é', 200)"],
    "mediumtext": ["'m'"],
    "mediumblob": ["REPEAT(x'00ff', 200)"],
    "varchar_long": ["REPEAT('é', 40)"],
    "char_long": ["'x'"],
    "varbinary": ["''", "x'00ff00'"],
}
NOT_OF_MYSQL = ("COMPRESSED", "UUID")
CHARSETS_OF_BOTH = ("latin1", "gbk", "sjis", "ucs2", "utf16", "utf32", "cp1251", "big5")

TRANSACTIONS = [
    "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(300), n BIGINT UNSIGNED, KEY (v(20)))",
    "INSERT INTO t VALUES (1, 'one', 1), (2, NULL, 2), (3, 'three', NULL)",
    "UPDATE t SET v = CONCAT(COALESCE(v, 'x'), '!'), n = 7",
    "UPDATE t SET id = id + 10 WHERE id < 3",
    "DELETE FROM t WHERE id = 3",
    "CREATE TABLE k (a INT, b VARCHAR(40), c DATETIME(3), PRIMARY KEY (b(10), a))",
    "INSERT INTO k VALUES (1, 'first', '2026-01-02 03:04:05.678'), (2, 'second', NULL)",
    "REPLACE INTO k VALUES (1, 'first', NULL)",
    "CREATE TABLE bare (a INT, b TEXT)",
    "INSERT INTO bare VALUES (1, 'a'), (NULL, NULL)",
    "UPDATE bare SET a = 5",
    "CREATE TABLE made (id INT PRIMARY KEY, v INT AS (id + 1), s INT AS (id * 2) STORED)",
    "INSERT INTO made (id) VALUES (1), (2)",
    "UPDATE made SET id = 5 WHERE id = 1",
    "BEGIN",
    "INSERT INTO t VALUES (20, 'a', 1)",
    "SAVEPOINT s1",
    "INSERT INTO k VALUES (20, 'a', NULL)",
    "ROLLBACK TO s1",
    "INSERT INTO t VALUES (21, 'b', 2)",
    "COMMIT",
    "XA START 'one', 'two', 3",
    "INSERT INTO t VALUES (30, 'xa', 1)",
    "XA END 'one', 'two', 3",
    "XA PREPARE 'one', 'two', 3",
    "XA COMMIT 'one', 'two', 3",
    "SET SESSION binlog_row_image = MINIMAL",
    "INSERT INTO t (id) VALUES (40)",
    "UPDATE t SET v = 'minimal' WHERE id = 40",
    "DELETE FROM t WHERE id = 40",
    "SET SESSION binlog_row_image = NOBLOB",
    "CREATE TABLE large (id INT PRIMARY KEY, b BLOB, v INT)",
    "INSERT INTO large VALUES (1, 'blob', 1)",
    "UPDATE large SET v = 2",
    "SET SESSION binlog_row_image = FULL",
    "ALTER TABLE t ADD COLUMN d DECIMAL(10, 2) DEFAULT 1.5, ALGORITHM = INPLACE",
    "ALTER TABLE t MODIFY n VARCHAR(20)",
    "SET @@session.time_zone = '+05:00'",
    "CREATE TABLE z (id INT PRIMARY KEY, t TIMESTAMP NULL)",
    "INSERT INTO z VALUES (1, NOW())",
    "SET @@session.time_zone = '+00:00'",
    "RENAME TABLE z TO y",
    "TRUNCATE TABLE y",
    "DROP TABLE y, bare",
]
OF_MARIADB = [
    "CREATE SEQUENCE q",
    "SELECT NEXTVAL(q)",
    "CREATE TABLE h (id INT PRIMARY KEY, b BLOB, UNIQUE (b))",
    "INSERT INTO h VALUES (1, 'hashed')",
    "CREATE TABLE ver (id INT PRIMARY KEY) WITH SYSTEM VERSIONING",
    "INSERT INTO ver VALUES (1)",
    "SET GLOBAL mysql56_temporal_format = OFF",
    "CREATE TABLE old (id INT PRIMARY KEY, a TIME, b DATETIME, c TIMESTAMP NULL, d DATE)",
    "INSERT INTO old VALUES (1, '12:34:56', '2026-01-02 03:04:05', '2026-01-02 03:04:05', NULL)",
    "SET GLOBAL mysql56_temporal_format = ON",
]
OF_MYSQL = [
    "CREATE TABLE j (id INT PRIMARY KEY, j JSON, k JSON, v VECTOR(2))",
    """INSERT INTO j VALUES
       (1, '{"a": [1, 2.5, "é", null, true, {"b": -1}], "name": "a long one"}', '[]',
        TO_VECTOR('[0.41,0.27]')),
       (2, JSON_ARRAY(CAST(1.5 AS DECIMAL(3,1)), CAST('2026-01-02' AS DATE), NOW(6), 12345678901),
        JSON_OBJECT('k', REPEAT('x', 300)), NULL)""",
    "SET SESSION binlog_row_value_options = PARTIAL_JSON",
    """UPDATE j SET j = JSON_SET(j, '$.a[1]', 7, '$.new', 'v'), k = JSON_ARRAY_APPEND(k, '$', 1)
       WHERE id = 1""",
    "UPDATE j SET j = JSON_REMOVE(j, '$.name') WHERE id = 1",
    "UPDATE j SET k = JSON_REPLACE(k, '$.k', 'short')",
    "SET SESSION binlog_row_value_options = ''",
    "SET SESSION gtid_next = 'AUTOMATIC:atag'",
    "INSERT INTO t (id) VALUES (50)",
    "SET SESSION gtid_next = 'AUTOMATIC'",
    "SET SESSION binlog_rows_query_log_events = ON",
    "INSERT INTO t (id) VALUES (51)",
]


def catalogue(family):
    """Statements that make a table for every few types, with a row for each value."""
    known = [
        (name, definition, SHORTER.get(name, values))
        for name, (definition, values) in TYPES.items()
        if family == "mariadb" or not any(word in definition for word in NOT_OF_MYSQL)
    ]
    known += [
        (f"in_{charset}", f"VARCHAR(20) CHARACTER SET {charset}", [f"'{CHARSETS[charset]}'"])
        for charset in CHARSETS_OF_BOTH
    ]
    for n in range(0, len(known), 6):
        some = known[n : n + 6]
        columns = ", ".join(f"`{name}` {definition}" for name, definition, _ in some)
        yield f"CREATE TABLE types{n} (id INT PRIMARY KEY, {columns})"
        width = max(len(values) for _, _, values in some)
        rows = [
            f"({i}, {', '.join(values[i] if i < len(values) else 'NULL' for _, _, values in some)})"
            for i in range(width)
        ]
        yield f"INSERT INTO types{n} VALUES {', '.join(rows)}"
        yield f"UPDATE types{n} SET id = id + 100 WHERE id < 2"


def write(connection, family):
    """Have a server write the corpus."""
    run(
        connection,
        "SET sql_mode = 'ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00'",
        "CREATE DATABASE d CHARACTER SET utf8mb4",
        "USE d",
        *TRANSACTIONS,
        *(OF_MARIADB if family == "mariadb" else OF_MYSQL),
        *catalogue(family),
        "CREATE TABLE packed (id INT PRIMARY KEY, v VARCHAR(200), t TEXT)",
    )
    with compressed_binlog(connection):
        run(
            connection,
            "INSERT INTO packed VALUES (1, REPEAT('v', 100), REPEAT('text', 90)), (2, 's', NULL)",
            "UPDATE packed SET v = CONCAT(v, v)",
            "DELETE FROM packed WHERE id = 1",
            f"ALTER TABLE packed ADD COLUMN c VARCHAR(10) DEFAULT 'd' COMMENT '{'c' * 200}'",
        )


def main():
    corpus = {}
    for family in FAMILIES:
        with (
            tempfile.TemporaryDirectory() as folder,
            new_server(family, Path(folder) / family, family, 101) as server,
        ):
            with server.connect(autocommit=True) as connection:
                reset_binlogs(connection)
                start = end_of(connection)
                write(connection, family)
                run(connection, "FLUSH BINARY LOGS", "DROP TABLE d.k")
                end = end_of(connection)
            corpus[family] = raw_events(server, BinlogPosition(start.file, 4), end)
    store(corpus)
    for family, events in corpus.items():
        kinds = sorted({event[4] for event, _ in events})
        sys.stdout.write(f"{family}: {len(events)} events of the types {kinds}\n")


if __name__ == "__main__":
    main()
