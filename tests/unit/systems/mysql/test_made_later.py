"""What a schema change did to rows that came before it, where their table was made after it."""

import pytest

from setl.codec.sql.table_ddl import parse_table_ddl
from setl.systems.mysql.ddl.made_later import HeldColumn, doubt_of_rows_before

CLOCK = HeldColumn("datetime", "CURRENT_TIMESTAMP", constant=False)


@pytest.mark.parametrize(
    ("clauses", "now", "said"),
    [
        ("ADD c INT", HeldColumn("int"), ""),
        ("ADD c INT", HeldColumn("int", "7"), "another value in c"),
        ("ADD COLUMN c INT NULL DEFAULT NULL FIRST", HeldColumn("int"), ""),
        ("ADD c INT DEFAULT 7", HeldColumn("int", "7"), ""),
        ("ADD (c INT DEFAULT '7' COMMENT 'x')", HeldColumn("int", "7"), ""),
        ("ADD c DECIMAL(5,2) DEFAULT -1.5", HeldColumn("decimal", "-1.50"), ""),
        ("ADD c DECIMAL(5,2) DEFAULT - 1.5", HeldColumn("decimal", "-1.50"), "another value in c"),
        ("ADD c BOOL NOT NULL DEFAULT TRUE", HeldColumn("tinyint", "1"), ""),
        ("ADD c INT DEFAULT 5", HeldColumn("int", "7"), "another value in c"),
        ("ADD c INT DEFAULT 5", HeldColumn("int"), "another value in c"),
        ("ADD c INT DEFAULT 5", None, "a value in c"),
        ("ADD c INT", None, ""),
        ("ADD C VARCHAR(9) DEFAULT 'it''s'", HeldColumn("varchar", "it's"), ""),
        ("ADD c VARCHAR(9) DEFAULT 'a' 'b'", HeldColumn("varchar", "a"), "another value in c"),
        ("ADD c VARCHAR(9) DEFAULT '\\n'", HeldColumn("varchar", "\\n"), "another value in c"),
        ("ADD c DATETIME DEFAULT NOW()", CLOCK, "another value in c"),
        ("ADD c DATETIME DEFAULT CURRENT_TIMESTAMP", CLOCK, "another value in c"),
        ("ADD c DATETIME DEFAULT NULL ON UPDATE NOW()", HeldColumn("datetime"), "no time in c"),
        ("ADD c TIMESTAMP", CLOCK, "another value in c"),  # which a session may mean by it
        ("ADD c CHAR(9) DEFAULT (CAST(1 AS CHAR))", HeldColumn("char", "1"), "another value in c"),
        ("ADD c INT AS (a + 1)", HeldColumn("int", computed=True), ""),
        ("ADD c INT AS (a + 1) STORED", None, ""),
        ("ADD c INT AS (a + 1)", HeldColumn("int"), "computed values of c"),
        ("ADD c INT AUTO_INCREMENT UNIQUE", HeldColumn("int"), "it numbered rows"),
        ("ADD UNIQUE (c), DROP INDEX k, COMMENT 'c'", HeldColumn("int"), ""),
        ("DROP c", None, ""),
        ("DROP c", HeldColumn("int"), "c is another column"),
        ("RENAME COLUMN c TO d, RENAME COLUMN d TO c", HeldColumn("int"), "c is another column"),
        ("CHANGE c d BIGINT", HeldColumn("int"), "c is another column"),
        ("MODIFY c VARCHAR(99)", HeldColumn("varchar"), ""),
        ("MODIFY c DATETIME", HeldColumn("datetime"), "converted values of c"),
        ("MODIFY c VARCHAR(30)", CLOCK, "converted values of c"),
        ("MODIFY c DOUBLE", HeldColumn("double"), "converted values of c"),
        ("DROP PARTITION p", HeldColumn("int"), "it removed rows"),
        ("TRUNCATE PARTITION p", HeldColumn("int"), "it removed rows"),
        ("REORGANIZE PARTITION p INTO (PARTITION q VALUES IN (1))", HeldColumn("int"), ""),
        ("ALTER c SET DEFAULT 9", HeldColumn("int", "9"), ""),
    ],
)
def test_what_rows_from_before_a_change_may_lack(clauses, now, said):
    ddl = parse_table_ddl(f"ALTER TABLE t {clauses}", "s")
    assert ddl is not None
    columns = {"id": HeldColumn("int")} | ({} if now is None else {"c": now})
    doubt = doubt_of_rows_before(ddl, columns)
    assert said in doubt
    assert bool(said) == bool(doubt)
