"""What MySQL 9 has and logs in its own ways, carried by a whole pipeline and compared by SELECT."""

import pytest

from tests.integration.pipelines import execute, mysql, on_both, one_way

pytestmark = pytest.mark.family("mysql", why="MariaDB has none of these")

INNER = (
    "JSON_OBJECT('date', CAST('2026-01-02' AS DATE), 'time', CAST('-11:12:13.5' AS TIME(3)),"
    " 'datetime', CAST('2026-01-02 03:04:05.678901' AS DATETIME(6)),"
    " 'decimal', CAST('-12345678901234567890.123456789' AS DECIMAL(40,9)), 'double', 1e300,"
    " 'big', 18446744073709551615, 'small', -9223372036854775808, 'int16', -32768, 'yes', TRUE,"
    " 'null', CAST('null' AS JSON), 'binary', CAST(x'00ff' AS BINARY), 'bit', b'101',"
    " 'year', CAST(2026 AS YEAR), 'long', REPEAT('ä🦊', 200),"
    " 'nested', JSON_ARRAY(1, JSON_OBJECT('', JSON_ARRAY())), 'point', ST_AsGeoJSON(POINT(1, 2)),"
    " 'prices', JSON_ARRAY(CAST(1.10 AS DECIMAL(3,2)), CAST(1.5 AS DECIMAL(3,1)),"
    " CAST(7 AS DECIMAL(5,0)), CAST(1 AS UNSIGNED), 1.5e0, 18446744073709551615))"
)
# The numbers print alike; where there is no other way to tell them apart, MySQL chooses the type.
TYPES = "SELECT {} FROM {{db}}.documents WHERE id = 1".format(
    ", ".join(f"JSON_TYPE(j->'$.prices[{n}]')" for n in range(6))
)
WHOLE, UNSIGNED = "INTEGER", "UNSIGNED INTEGER"
TYPES_AT_SOURCE = ("DECIMAL", "DECIMAL", "DECIMAL", UNSIGNED, "DOUBLE", UNSIGNED)
TYPES_AT_TARGET = ("DECIMAL", "DOUBLE", WHOLE, WHOLE, "DOUBLE", UNSIGNED)

# Table → its definition, and a value for each of three rows' columns but the key.
TABLES = {
    "vectors": ("id INT PRIMARY KEY, a VARCHAR(9) CHARACTER SET latin1, v VECTOR(3), b VARCHAR(9)",
                "a, v, b", ["'ü', TO_VECTOR('[1,2,3]'), 'ß'", "NULL, NULL, 'x'",
                            "'', TO_VECTOR('[0,-0,1e-30]'), NULL"]),
    "documents": ("id INT PRIMARY KEY, j JSON", "j",
                  [INNER, "'[1, 2.50, \"x\", null, true]'", "CAST('\"text\"' AS JSON)"]),
    "indexed": (("id INT PRIMARY KEY, name VARCHAR(20), j JSON, KEY low ((LOWER(name))),"
                " UNIQUE twice ((id * 2)), KEY many ((CAST(j->'$.n' AS UNSIGNED ARRAY)))"),
                "name, j", ["'Ann', '{\"n\": [1, 2]}'", "'BOB', '{\"n\": []}'", "NULL, NULL"]),
    "generated": (("id INT PRIMARY KEY, n INT, v INT AS (n + 1) VIRTUAL, s INT AS (n * 2) STORED,"
                  " h INT DEFAULT 7 INVISIBLE, d INT DEFAULT (3 + 4), u CHAR(36) DEFAULT (UUID())"),
                  "n", ["1", "NULL", "-5"]),
    "parts": (("id INT NOT NULL, y YEAR NOT NULL, n INT, PRIMARY KEY (id, y))"
              " PARTITION BY RANGE (y)"
              " SUBPARTITION BY HASH (id) SUBPARTITIONS 2 (PARTITION p1 VALUES LESS THAN (2020),"
              " PARTITION p2 VALUES LESS THAN MAXVALUE"), "y, n",
              ["2001, 1", "2026, 2", "2019, 3"]),
}  # fmt: skip

SESSIONS = {
    "plain": [],
    "compressed": ["SET SESSION binlog_transaction_compression = ON"],
    "partial JSON": ["SET SESSION binlog_row_value_options = 'PARTIAL_JSON'"],
    "both": [
        "SET SESSION binlog_transaction_compression = ON",
        "SET SESSION binlog_row_value_options = 'PARTIAL_JSON'",
    ],
    "tagged": ["SET SESSION gtid_next = 'AUTOMATIC:a_tag'"],
    "with statements": ["SET SESSION binlog_rows_query_log_events = ON"],
}

CHANGES = [
    "UPDATE {db}.vectors SET v = TO_VECTOR('[9,9,9]'), a = 'é' WHERE id = 2",
    "UPDATE {db}.documents SET j = JSON_SET(j, '$.date', 'x', '$.nested[0]', 5) WHERE id = 1",
    "UPDATE {db}.documents SET j = JSON_REMOVE(j, '$.long') WHERE id = 1",
    (
        "UPDATE {db}.documents SET j = JSON_REPLACE(j, '$[1]', CAST('3.50' AS DECIMAL(5,2)))"
        " WHERE id = 2"
    ),
    "UPDATE {db}.indexed SET name = LOWER(name), id = id + 10 WHERE id < 3",
    "UPDATE {db}.generated SET n = n + 1, h = 8",
    "UPDATE {db}.parts SET y = 2030 WHERE id = 1",
    *(f"DELETE FROM {{db}}.{table} WHERE id = 3" for table in TABLES),
]
CHANGED = 1 + 1 + 1 + 1 + 2 + 3 + 1 + len(TABLES)


def content(server, table):
    """All columns of a table, the invisible ones too, as text that leaves nothing out."""
    schema, _, name = table.partition(".")
    question = (
        "SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS"
        f" WHERE TABLE_SCHEMA = '{schema}' AND TABLE_NAME = '{name}' ORDER BY ORDINAL_POSITION"
    )
    columns = [
        f"CAST(`{column}` AS CHAR)" if kind == "json" else f"HEX(`{column}`)"
        for column, kind in execute(server, question)
    ]
    return execute(server, f"SELECT {', '.join(columns)} FROM {table} ORDER BY id")


db = on_both(
    "features", *(f"CREATE TABLE {{db}}.{table} ({text})" for table, (text, _, _) in TABLES.items())
)


@pytest.mark.parametrize("session", SESSIONS)
def test_what_only_mysql_has_arrives(servers, db, position, session):
    a, b = servers
    running = position.lead(one_way(a, mysql(b), [{"from": f"{db}.*"}]))
    inserts = [
        f"INSERT INTO {db}.{table} (id, {columns}) VALUES ({i}, {values})"
        for table, (_, columns, rows) in TABLES.items()
        for i, values in enumerate(rows, 1)
    ]
    execute(a, *SESSIONS[session], *inserts)
    running.applied(len(inserts))
    for table in TABLES:
        assert content(b, f"{db}.{table}") == content(a, f"{db}.{table}"), table
    assert execute(a, TYPES.format(db=db)) == (TYPES_AT_SOURCE,)
    assert execute(b, TYPES.format(db=db)) == (TYPES_AT_TARGET,)
    execute(a, *SESSIONS[session], *(change.format(db=db) for change in CHANGES))
    running.applied(len(inserts) + CHANGED)
    for table in TABLES:
        found = content(b, f"{db}.{table}")
        assert found == content(a, f"{db}.{table}"), table
        assert len(found) == 2


def test_a_key_that_nobody_sees(servers, db, position):
    a, b = servers
    for server in servers:
        execute(
            server,
            "SET SESSION sql_generate_invisible_primary_key = ON",
            f"CREATE TABLE {db}.t (id INT, v VARCHAR(9))",
        )
    running = position.lead(one_way(a, mysql(b), [{"from": f"{db}.t"}]))
    execute(
        a,
        f"INSERT INTO {db}.t VALUES (1, 'a'), (1, 'a'), (NULL, 'b')",
        f"UPDATE {db}.t SET v = 'c' WHERE my_row_id = 2",
        f"DELETE FROM {db}.t WHERE my_row_id = 3",
    )
    running.applied(5)
    question = f"SELECT my_row_id, id, v FROM {db}.t ORDER BY 1"
    assert execute(b, question) == execute(a, question) == ((1, 1, "a"), (2, 1, "c"))
