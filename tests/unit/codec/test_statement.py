import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.codec.sql.statement import StatementKind, parse_statement
from setl.codec.sql.tokens import Quoting, literal_text

DDL = StatementKind.DDL
OTHER = StatementKind.HARMLESS


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
        ("CREATE MASKING POLICY m (c) CASE WHEN CURRENT_USER_IN('a') THEN c ELSE '' END", OTHER),
        ("DROP MASKING POLICY IF EXISTS m", OTHER),
        ("GRANT SELECT ON *.* TO a", OTHER),
        ("CREATE USER a", OTHER),
        ("CREATE OR REPLACE ROLE a", OTHER),
        ("DROP TEMPORARY TABLE t", StatementKind.ROWS),
        ("CREATE TEMPORARY TABLE t (a INT)", StatementKind.ROWS),
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
        ("SET DEFAULT ROLE r TO u", OTHER),
        ("SELECT `s`.`f`(1)", StatementKind.ROWS),
        ("DO `s`.`f`(1)", StatementKind.ROWS),
        ("(SELECT f())", StatementKind.ROWS),
        ("VALUES (f(1))", StatementKind.ROWS),
        ("TABLE t", StatementKind.ROWS),
        ("EXPLAIN ANALYZE SELECT f(1)", StatementKind.ROWS),
        ("ANALYZE FORMAT=JSON UPDATE t SET a = 1", StatementKind.ROWS),
        ("ANALYZE NO_WRITE_TO_BINLOG TABLE t", OTHER),
        ("/*" + "x" * 5000 + "*/ INSERT INTO t VALUES (1)", StatementKind.ROWS),
        ("/*" + "x" * 5000 + "*/ ALTER TABLE t ADD c INT", DDL),
        ("--\n-- Dump\n--\nINSERT INTO t VALUES (1)", StatementKind.ROWS),
        ("--\u00a0x\nINSERT INTO t VALUES (1)", StatementKind.UNKNOWN),
        ("# x\r\n--\tx\nDELETE FROM t", StatementKind.ROWS),
        ("/*!99999 SELECT */ /*!50003 INSERT*/ INTO t SET a=1", StatementKind.ROWS),
        ("/* 99999 x */ /*M!100000 DELETE FROM t */", StatementKind.ROWS),
        ("SET @a = 1", StatementKind.UNKNOWN),
        ("SET GLOBAL a = 1", StatementKind.UNKNOWN),
        ("SET STATEMENT a = SUBSTRING('x' FROM 1 FOR 2) FOR DELETE FROM t", StatementKind.ROWS),
        ("BEGIN NOT ATOMIC DELETE FROM t; END", StatementKind.UNKNOWN),
        ("BEGIN WORK", StatementKind.BEGIN),
        ("COMMIT AND NO CHAIN", StatementKind.COMMIT),
        ("START REPLICA", StatementKind.UNKNOWN),
        ("MERGE INTO t USING u", StatementKind.UNKNOWN),
        ("IMPORT TABLE FROM 'a.sdi'", StatementKind.UNKNOWN),
        ("CREATE EXTERNAL TABLE t (a INT)", StatementKind.UNKNOWN),
        ("label: BEGIN DELETE FROM t; END", StatementKind.UNKNOWN),
        ("CREATE TABLE t (a INT) SELECT 1", StatementKind.ROWS),
        ("CREATE TABLE t AS VALUES ROW(1)", StatementKind.ROWS),
        ("CREATE TABLE t TABLE u", StatementKind.ROWS),
        ("CREATE TABLE t (a INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (1))", DDL),
        ("CREATE TEMPORARY TABLE t SELECT f(1)", StatementKind.ROWS),
        ("CREATE OR REPLACE TEMPORARY TABLE t (a INT)", StatementKind.ROWS),
        ("DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `t`", StatementKind.ROWS),
        ("CREATE DEFINER=`a`@`b` TRIGGER x BEFORE INSERT ON t FOR EACH ROW DELETE FROM t", DDL),
        ("CREATE ALGORITHM=UNDEFINED DEFINER=`r`@`%` SQL SECURITY DEFINER VIEW v AS SELECT 1", DDL),
        ("CREATE OR REPLACE SEQUENCE s", DDL),
        ("CREATE AGGREGATE FUNCTION f RETURNS INT SONAME 'x'", DDL),
        ("CREATE SPATIAL REFERENCE SYSTEM 1 NAME 'a'", DDL),
        ("CREATE LOGFILE GROUP g ADD UNDOFILE 'x'", DDL),
        ("ALTER INSTANCE ROTATE INNODB MASTER KEY", OTHER),
        ("RENAME USER a TO b", OTHER),
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
        ("RENAME TABLE a WAIT 5 TO b, c NOWAIT TO d", [("d", n) for n in "abcd"]),
        (
            "RENAME TABLE " + ", ".join(f"s.old_{i:050d} TO s.new_{i:050d}" for i in range(80)),
            [("s", f"{n}_{i:050d}") for i in range(80) for n in ("old", "new")],
        ),
        (
            "DROP TABLE " + "`s`.`x`," * 900 + "`shop`.`orders`",
            [*[("s", "x")] * 900, ("shop", "orders")],
        ),
        ("ALTER TABLE a EXCHANGE PARTITION p WITH TABLE x.b", [("d", "a"), ("x", "b")]),
        ("ALTER TABLE a CONVERT PARTITION p TO TABLE b", [("d", "a"), ("d", "b")]),
        ("ALTER TABLE t COMMENT 'it\\'s', RENAME TO z", [("d", "t"), ("d", "z")]),
        ("TRUNCATE offline", [("d", "offline")]),
        ("DROP TABLES IF EXISTS a, b", [("d", "a"), ("d", "b")]),
        ("CREATE TABLE t (a INT DEFAULT (2*/* x */3)) /* LIKE u */", [("d", "t")]),
        ("SET STATEMENT sql_mode='', a='FOR' FOR DROP TABLE t", [("d", "t")]),
        ("DROP DATABASE `default`", [("default", "")]),
        ("RENAME TABLE a TO .b, x.c TO . `d`", [("d", "a"), ("d", "b"), ("x", "c"), ("d", "d")]),
        ("CREATE TABLE IF NOT EXISTS .a LIKE .b", [("d", "a")]),
        ("CREATE OR REPLACE TABLE .a (x.a.id INT, .b INT)", [("d", "a")]),
        ("ALTER TABLE a RENAME .z", [("d", "a"), ("d", "z")]),
        ("ALTER TABLE x.a RENAME = .z", [("x", "a"), ("d", "z")]),
        ("ALTER TABLE .a EXCHANGE PARTITION p WITH TABLE .b", [("d", "a"), ("d", "b")]),
        ("DROP TABLE .a, x.b", [("d", "a"), ("x", "b")]),
        ("TRUNCATE .a", [("d", "a")]),
        ("CREATE INDEX i ON .a (b)", [("d", "a")]),
    ],
)
def test_tables_of_ddl(text, tables):
    assert parse_statement(text, "d") == (DDL, tuple(tables), "")


@pytest.mark.parametrize(
    "text",
    [
        "RENAME TABLE a TO ,x.t",
        "DROP TABLE a, ! x.t",
        "DROP TABLE a x.t",
        "TRUNCATE TABLE 'a' x.t",
        "ALTER TABLE ! x.t ADD b INT",
        "ALTER TABLE a RENAME TO ! x.t",
        "CREATE INDEX i OVER x.t (a)",
        "DROP TABLE a, ! X.T",
    ],
)
def test_where_names_are_not_found_anything_may_be_one(text):
    kind, tables, _ = parse_statement(text, "d")
    assert kind is DDL
    assert {("x", "t"), ("d", "t")} <= set(tables)
    assert {schema for schema, _ in tables} <= {"d", "x", "X"}


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("SAVEPOINT `Sp``1`", StatementKind.SAVEPOINT, "sp`1"),
        ("ROLLBACK TO a", StatementKind.ROLLBACK_TO_SAVEPOINT, "a"),
        ("ROLLBACK WORK TO SAVEPOINT a", StatementKind.ROLLBACK_TO_SAVEPOINT, "a"),
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


def test_a_comment_that_only_mariadb_executes():
    mysql = Quoting(mysql=True)
    assert parse_statement("/*M!100000 DELETE FROM t */", "d", mysql).kind is OTHER
    assert parse_statement("TRUNCATE /*M! a */ b", "d", mysql).tables == (("d", "b"),)
    text = "ALTER TABLE t ADD a INT /*!80023 INVISIBLE */ /*M!1 x */ COMMENT '/*! x */' /* y */"
    assert (
        literal_text(text, mysql).split()
        == text.replace("/*!80023", "").replace("INVISIBLE */ /*M!1 x */", "INVISIBLE").split()
    )
    assert "x" in literal_text(text).partition("COMMENT")[0].split()
    assert len(literal_text(text)) == len(text)


def test_megabytes_of_text_are_no_work_for_the_first_words():
    text = "INSERT INTO t VALUES ('" + "\\'x''" * 1_000_000 + "')"
    assert parse_statement(text, "d").kind is StatementKind.ROWS
    assert parse_statement("CREATE" + text[6:], "d").kind is StatementKind.UNKNOWN
