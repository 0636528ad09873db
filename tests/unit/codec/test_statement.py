import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.codec.statement import StatementKind, parse_statement

DDL = StatementKind.DDL
OTHER = StatementKind.OTHER


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("BEGIN", StatementKind.BEGIN),
        ("start transaction", StatementKind.BEGIN),
        ("COMMIT", StatementKind.COMMIT),
        ("ROLLBACK", StatementKind.ROLLBACK),
        ("/* c */ rollback", StatementKind.ROLLBACK),
        ("XA START X'61',X'',1", StatementKind.XA_START),
        ("XA END X'61'", StatementKind.XA_END),
        ("xa commit 'a'", StatementKind.XA_COMMIT),
        ("XA ROLLBACK 'a'", StatementKind.XA_ROLLBACK),
        ("INSERT INTO t VALUES (1)", StatementKind.ROWS),
        ("-- why\nUPDATE t SET a = 1", StatementKind.ROWS),
        ("# why\n delete from t", StatementKind.ROWS),
        ("REPLACE t SELECT 1", StatementKind.ROWS),
        ("LOAD DATA INFILE 'x' INTO TABLE t", StatementKind.ROWS),
        ("WITH x AS (SELECT 1) UPDATE t SET a = 1", StatementKind.ROWS),
        ("GRANT SELECT ON *.* TO a", OTHER),
        ("CREATE USER a", OTHER),
        ("CREATE OR REPLACE ROLE a", OTHER),
        ("DROP TEMPORARY TABLE t", OTHER),
        ("CREATE TEMPORARY TABLE t (a INT)", OTHER),
        ("FLUSH TABLES", OTHER),
        ("ANALYZE TABLE t", OTHER),
        ("# Dum", OTHER),
        ("", OTHER),
        ("/* only a comment */", OTHER),
        ("CREATE VIEW v AS SELECT 1", DDL),
        ("DROP TRIGGER x", DDL),
        ("SET STATEMENT max_statement_time=1 FOR ALTER TABLE t ADD a INT", DDL),
        ("SET STATEMENT a=1 FOR INSERT INTO t VALUES (1)", StatementKind.ROWS),
        ("SET PASSWORD = 'x'", OTHER),
    ],
)
def test_kinds(text, kind):
    assert parse_statement(text, "d").kind is kind


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("CREATE TABLE t (a INT)", [("d", "t")]),
        ("create table if not exists `x`.`t``y`(id int)", [("x", "t`y")]),
        ("CREATE OR REPLACE TABLE x.t LIKE y", [("x", "t")]),
        ('CREATE TABLE "q"."t" (a INT)', [("q", "t")]),
        ("CREATE /*!50003 TABLE */ t (a INT)", [("d", "t")]),
        ("/* setl: x */ ALTER TABLE t ADD c INT COMMENT 'it''s -- x'", [("d", "t")]),
        ("ALTER ONLINE IGNORE TABLE x . t ADD c INT", [("x", "t")]),
        ("ALTER TABLE IF EXISTS t ENGINE=InnoDB", [("d", "t")]),
        ("ALTER TABLE t ADD `rename` INT, RENAME TO q.z", [("d", "t"), ("q", "z")]),
        ("ALTER TABLE t RENAME z", [("d", "t"), ("d", "z")]),
        ("ALTER TABLE t RENAME COLUMN a TO b, RENAME KEY x TO y", [("d", "t")]),
        ("RENAME TABLE a TO b, x.c TO d", [("d", "a"), ("d", "b"), ("x", "c"), ("d", "d")]),
        (
            "DROP TABLE IF EXISTS `a`,`b.c` , x.d /* generated */",
            [("d", "a"), ("d", "b.c"), ("x", "d")],
        ),
        ("DROP TABLE a RESTRICT", [("d", "a")]),
        ("TRUNCATE t", [("d", "t")]),
        ("TRUNCATE TABLE x.t", [("x", "t")]),
        ("CREATE UNIQUE INDEX i USING BTREE ON x.t (a)", [("x", "t")]),
        ("DROP INDEX `on` ON t", [("d", "t")]),
        ("CREATE DATABASE IF NOT EXISTS `x`", [("x", "")]),
        ("DROP SCHEMA x", [("x", "")]),
        ("ALTER DATABASE CHARACTER SET utf8mb4", [("d", "")]),
        ("ALTER DATABASE x CHARACTER SET utf8mb4", [("x", "")]),
        ("CREATE TABLE größe表 (a INT)", [("d", "größe表")]),
        ("CREATE TABLE t -- note\n (a INT)", [("d", "t")]),
        ("CREATE PROCEDURE p() SELECT 1", []),
    ],
)
def test_tables_of_ddl(text, tables):
    assert parse_statement(text, "d") == (DDL, tuple(tables), "")


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("SAVEPOINT `Sp``1`", StatementKind.SAVEPOINT, "sp`1"),
        ("ROLLBACK TO a", StatementKind.ROLLBACK_TO_SAVEPOINT, "a"),
        ("ROLLBACK TO SAVEPOINT `A`", StatementKind.ROLLBACK_TO_SAVEPOINT, "a"),
    ],
)
def test_savepoints(text, kind, name):
    assert parse_statement(text, "d") == (kind, (), name)


@given(
    st.text(max_size=60),
    st.sampled_from(["", "ALTER TABLE ", "DROP TABLE ", "/*", "RENAME TABLE "]),
)
def test_any_text_is_some_statement(text, start):
    parse_statement(start + text, "d")
