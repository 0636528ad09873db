"""A MySQL and a MariaDB site in one channel: rows, schema changes, tables that check makes, verify.

Types, keyless tables and what happens to whole pipelines run between the families as well, see
`tests.families`. Comparisons here are plain SELECTs.
"""

import pytest

from setl.bulk.verify_target import VerifySettings
from setl.operate.verify import verify_pipeline
from tests.checking import check_channel
from tests.integration.pipelines import execute, mysql, on_both, one_way, rows, two_way
from tests.mysql_servers import is_mariadb
from tests.waiting import eventually

TABLE = """CREATE TABLE {db}.t (
    id INT PRIMARY KEY, name VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci UNIQUE,
    amount DECIMAL(12,2), at DATETIME(6), seen TIMESTAMP(6) NULL, kind ENUM('a','二手'),
    raw BLOB)"""
ROW = "'naïve 🦊', -1.50, '2026-01-02 03:04:05.678901', '2026-01-02 03:04:05.6', '二手', x'00FF'"


mixed = on_both("mixed", options="CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")


@pytest.fixture
def table(servers, mixed):
    for server in servers:
        execute(server, TABLE.format(db=mixed))
    return f"{mixed}.t"


def same_rows(servers, table):
    a, b = servers
    assert rows(a, table) == rows(b, table)
    return True


def test_both_sites_write(servers, table, position):
    a, b = servers
    file = two_way(a, b, [{"from": table}])
    runs = [position.lead(file, "ab"), position.lead(file, "ba")]
    for i, server in enumerate(servers):
        execute(
            server,
            *(f"INSERT INTO {table} VALUES ({n}, 'n{n}', 1, NULL, NULL, 'a', NULL)"
              for n in range(i, 40, 2)),
            f"INSERT INTO {table} VALUES ({100 + i}, CONCAT('{i}', {ROW.partition(', ')[0]}), "
            f"{ROW.partition(', ')[2]})",
            f"UPDATE {table} SET amount = amount * 3 WHERE id < 20 AND id % 2 = {i}",
            f"UPDATE {table} SET id = id + 1000 WHERE id = {i + 20}",
            f"DELETE FROM {table} WHERE id = {i + 10}",
        )  # fmt: skip
    for running in runs:
        running.applied(20 + 1 + 10 + 1 + 1)
    assert same_rows(servers, table)
    assert len(rows(a, table)) == 40
    assert [r.figures.echoes_replicated for r in runs] == [0, 0]
    eventually(lambda: all(r.figures.rows_loopback > 0 for r in runs), 30)


def test_the_newer_row_stays(servers, table, position):
    a, b = servers
    for server in servers:
        execute(server, f"ALTER TABLE {table} DROP KEY name")
    file = two_way(a, b, [{"from": table, "conflict": {"newest": "at"}}])
    for server, name, at in ((a, "of a", "2026-01-01"), (b, "of b", "2026-01-02")):
        execute(server, f"INSERT INTO {table} (id, name, at) VALUES (1, '{name}', '{at}')")
    runs = [position.lead(file, "ab"), position.lead(file, "ba")]
    for running in runs:
        running.applied(1)
    eventually(lambda: same_rows(servers, table), 60)
    assert [row[1] for row in rows(a, table)] == ["of b"]


def test_schema_changes_pass_between_the_families(servers, table, position):
    a, b = servers
    file = two_way(a, b, [{"from": table}], ddl="pass")
    runs = [position.lead(file, "ab"), position.lead(file, "ba")]
    execute(a, f"INSERT INTO {table} VALUES (1, {ROW})", f"ALTER TABLE {table} ADD c INT DEFAULT 7")
    runs[0].applied(1)
    eventually(lambda: same_rows(servers, table), 60)
    execute(
        b,
        f"ALTER TABLE {table} ADD d DATETIME(6) NULL",
        f"ALTER TABLE {table} MODIFY d DATETIME(6) NULL DEFAULT CURRENT_TIMESTAMP(6)",
        f"INSERT INTO {table} (id, c) VALUES (2, 3)",
    )
    runs[1].applied(1)
    eventually(lambda: same_rows(servers, table), 60)
    document = '{"b": 1.0, "a":1, "a": 2, "c": [1e2]}'
    for server, name in ((a, "e"), (b, "f")):
        execute(
            server,
            f"ALTER TABLE {table} ADD {name} JSON COMMENT 'JSON' AFTER id, ADD INDEX (amount)",
            f"ALTER TABLE {table} MODIFY {name} JSON",
            f"UPDATE {table} SET {name} = '{document}' WHERE id = 2",
        )
        eventually(lambda: len(rows(a, table)[0]) == len(rows(b, table)[0]), 60)
        eventually(lambda: same_rows(servers, table), 60)
    assert len(rows(a, table)[0]) == 11
    stored = next(row[1:3] for row in rows(a, table) if row[0] == 2)
    assert sorted(text == document for text in stored) == [False, True]  # MySQL's own is respelt


@pytest.mark.parametrize("collation", ["utf8mb4_general_ci", "utf8mb4_bin"])
def test_check_makes_a_table_that_takes_the_rows(servers, mixed, position, collation):
    a, b = servers
    table = f"{mixed}.made"
    execute(
        a,
        f"CREATE TABLE {table} (id INT PRIMARY KEY, name VARCHAR(20) COLLATE {collation},"
        " twice INT AS (id * 2) STORED, note VARCHAR(9) DEFAULT 'x''y' COMMENT 'it''s', KEY (name),"
        f" doc JSON) CHARACTER SET utf8mb4 COLLATE {collation}",
    )
    file = one_way(a, mysql(b), [{"from": table}])
    missing = [f for f in check_channel(file) if f.level == "error" and table in f.where]
    execute(b, *(s for f in missing for s in f.statements))
    execute(b, f"ALTER TABLE {table} MODIFY doc JSON")  # MariaDB's is text
    assert [f.what for f in check_channel(file) if f.level == "error"] == []
    running = position.lead(file)
    document = '{"k": [1, 2.5], "n": 12345678901234567890123e-3}'
    execute(a, f"INSERT INTO {table} (id, name, doc) VALUES (1, 'ä', '{document}')")
    running.applied(1)
    columns = "id, name, twice, note"
    assert execute(a, f"SELECT {columns} FROM {table}") == execute(
        b, f"SELECT {columns} FROM {table}"
    )
    parts = f"SELECT JSON_EXTRACT(doc, '$.k[1]'), JSON_EXTRACT(doc, '$.n') FROM {table}"
    (found,) = execute(b, parts)
    written = "12345678901234567890.123"  # of which a MySQL at the source makes a double
    assert [str(part) for part in found] in (["2.5", written], ["2.5", "1.2345678901234567e19"])
    assert found == execute(a, parts)[0] or str(found[1]) == written


def test_verify_compares_across_the_families(servers, table, position, spark):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": table}])
    execute(a, f"INSERT INTO {table} VALUES (1, {ROW}), (2, 'two', 2, NULL, NULL, 'a', NULL)")
    position.lead(file).applied(2)
    settings = VerifySettings(rechecks=0)
    (verdict,) = verify_pipeline(spark, file.pipelines[0], settings=settings)
    assert verdict.equal
    execute(b, f"UPDATE {table} SET amount = 3 WHERE id = 2")
    (verdict,) = verify_pipeline(spark, file.pipelines[0], settings=settings)
    assert not verdict.equal


def test_an_alter_computes_nothing_that_the_families_compute_differently(servers, table, position):
    a, _ = servers
    running = position.lead(one_way(a, mysql(servers[1]), [{"from": table}], ddl="pass"))
    execute(
        a,
        f"INSERT INTO {table} VALUES (1, {ROW})",
        f"ALTER TABLE {table} ADD c INT AS (id * 2 + 1) STORED",
        f"ALTER TABLE {table} ADD e LONGTEXT NOT NULL DEFAULT ('x')",
    )
    eventually(lambda: running.error or same_rows(servers, table), 60)
    assert running.error is None
    execute(a, f"ALTER TABLE {table} ADD d DOUBLE AS (id / 3) STORED")
    assert "d for rows that are there, and MariaDB and MySQL need not agree on /" in str(
        running.ends()
    )


# In both directions; each in the words of one family, so that the other refuses it as it stands.
OWN_WORDS = {
    "mysql": (
        "ALTER DATABASE {db} COLLATE utf8mb4_0900_ai_ci",
        (
            "CREATE TABLE {db}.w (k VARCHAR(20) PRIMARY KEY, c TEXT DEFAULT ('x'),"
            " g INT GENERATED ALWAYS AS (LENGTH(k) + 1) STORED NULL, KEY i (c(9)) INVISIBLE)"
        ),
        "INSERT INTO {db}.w (k, c) VALUES ('a', 'ä'), ('b', 'A'), ('c', NULL)",
        "ALTER TABLE {db}.w ADD t VARCHAR(9) CHARACTER SET utf8mb4, ALGORITHM=INSTANT",
        (
            "ALTER TABLE {db}.w ADD u VARCHAR(9) COLLATE utf8mb4_0900_as_cs NOT NULL DEFAULT 'u',"
            " DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_as_ci"
        ),
        "ALTER TABLE {db}.w MODIFY k VARCHAR(30) NOT NULL",
    ),
    "mariadb": (
        "ALTER DATABASE {db} COLLATE utf8mb4_nopad_bin",
        (
            "CREATE TABLE {db}.w (k VARCHAR(20) PRIMARY KEY, c TEXT DEFAULT 'x',"
            " g INT AS (LENGTH(k) + 1) PERSISTENT, at DATETIME(3) DEFAULT now(),"
            " n INT DEFAULT NEXT VALUE FOR {db}.s, KEY i (c(9)) IGNORED) PAGE_CHECKSUM=1"
        ),
        "INSERT INTO {db}.w (k, c) VALUES ('a', 'ä'), ('A', 'A'), ('c', NULL)",
        "ALTER TABLE {db}.w ADD t VARCHAR(9) CHARACTER SET utf8mb4, ALGORITHM=NOCOPY",
        (
            "ALTER TABLE {db}.w ADD u VARCHAR(9) COLLATE uca1400_as_cs NOT NULL DEFAULT 'u',"
            " DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_uca1400_as_cs"
        ),
        "ALTER TABLE {db}.w MODIFY k VARCHAR(30) NOT NULL, ADD UNIQUE KEY (n)",
    ),
}


def test_a_statement_is_said_in_the_targets_words(servers, mixed, position):
    a, b = servers
    with a.connect() as connection:
        family = "mariadb" if is_mariadb(connection) else "mysql"
    statements = [s.format(db=mixed) for s in OWN_WORDS[family]]
    execute(a, statements[0])
    if family == "mariadb":
        execute(a, f"CREATE SEQUENCE {mixed}.s")
    file = one_way(a, mysql(b), [{"from": f"{mixed}.*"}], ddl="pass")
    (reported,) = (f for f in check_channel(file) if f.code == "default-collation")
    execute(b, *reported.statements)
    said = " | ".join(f.what for f in check_channel(file))
    assert "that names no collation gets" in said
    assert statements[0].split()[-1] in said
    running = position.lead(file)
    execute(a, *statements[1:], f"INSERT INTO {mixed}.w (k, t) VALUES ('B ', 'end')")
    running.applied(4)
    there, here = rows(a, f"{mixed}.w"), rows(b, f"{mixed}.w")
    assert sorted(there, key=repr) == sorted(here, key=repr)
