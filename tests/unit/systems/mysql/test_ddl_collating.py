"""Which collation is written out, and where."""

import pytest

from setl.model.session import StatementSession
from setl.systems.mysql.ddl.collating import collated, with_default

MYSQL = StatementSession("d", 0, mariadb=False, utf8mb4=255)
GIVEN = " COLLATE utf8mb4_0900_ai_ci"


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (a CHAR(3)) DEFAULT CHARSET=utf8mb4| COMMENT='CHARSET utf8mb4'",
        "CREATE TABLE t (a CHAR(3) CHARACTER SET utf8mb4| NOT NULL, b INT) CHARACTER SET utf8mb4|",
        "CREATE TABLE t (a CHAR(3) CHARSET 'utf8mb4'|, b CHAR(3) COLLATE utf8mb4_bin)",
        "CREATE TABLE t (a CHAR(3) CHARACTER SET utf8mb4 NOT NULL COLLATE utf8mb4_bin)",
        "CREATE TABLE t (a CHAR(3)) COLLATE=utf8mb4_bin CHARSET=utf8mb4",
        "CREATE TABLE t (a CHAR(3) COLLATE utf8mb4_bin) DEFAULT CHARACTER SET = utf8mb4|",
        "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4|, ADD x INT",
        "ALTER TABLE t ADD a INT AS (CAST(b AS CHAR(3) CHARACTER SET utf8mb4))",
        "ALTER TABLE t ADD utf8mb4 CHAR(3) CHARACTER SET latin1",
    ],
)
def test_where_a_collation_is_written(text):
    assert collated(text.replace("|", ""), MYSQL) == text.replace("|", GIVEN)


@pytest.mark.parametrize(
    ("session", "name"),
    [
        (StatementSession("d", 0, mariadb=False, utf8mb4=45), "utf8mb4_general_ci"),
        (StatementSession("d", 0, mariadb=True), "utf8mb4_general_ci"),
        (StatementSession("d", 0, mariadb=True, collations=((45, 2304),)), "utf8mb4_uca1400_ai_ci"),
        (StatementSession("d"), ""),
    ],
)
def test_what_the_session_takes(session, name):
    text = "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4"
    assert collated(text, session) == (f"{text} COLLATE {name}" if name else text)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (a CHAR(3), b INT CHECK (a LIKE 'x' OR (b > (1))))| ENGINE=InnoDB",
        "CREATE TABLE t (a CHAR(3) COLLATE latin1_bin)| PARTITION BY KEY (a) PARTITIONS 2",
        "CREATE TABLE t (a CHAR(3)) CHARSET=latin1",
        "CREATE TABLE t (a CHAR(3)) DEFAULT COLLATE = utf8mb4_bin",
        "CREATE TABLE t LIKE u",
        "CREATE TABLE t (LIKE u)",
    ],
)
def test_where_the_collation_of_the_schema_is_written(text):
    known = with_default(text.replace("|", ""), MYSQL, "latin1_bin")
    assert known == text.replace("|", " COLLATE latin1_bin")
