"""What a schema change did to rows that came before it, where their table was made after it."""

import pytest

from setl.codec.sql.table_ddl import parse_table_ddl
from setl.systems.mysql.ddl.late_created_tables import ExistingColumn, reason_rows_differ

CLOCK = ExistingColumn("datetime", "CURRENT_TIMESTAMP", constant=False)


@pytest.mark.parametrize(
    ("clauses", "now", "said"),
    [
        ("ADD c INT", ExistingColumn("int"), ""),
        ("ADD c INT", ExistingColumn("int", "7"), "another value in c"),
        ("ADD COLUMN c INT NULL DEFAULT NULL FIRST", ExistingColumn("int"), ""),
        ("ADD c INT DEFAULT 7", ExistingColumn("int", "7"), ""),
        ("ADD (c INT DEFAULT '7' COMMENT 'x')", ExistingColumn("int", "7"), ""),
        ("ADD c DECIMAL(5,2) DEFAULT -1.5", ExistingColumn("decimal", "-1.50"), ""),
        (
            "ADD c DECIMAL(5,2) DEFAULT - 1.5",
            ExistingColumn("decimal", "-1.50"),
            "another value in c",
        ),
        ("ADD c BOOL NOT NULL DEFAULT TRUE", ExistingColumn("tinyint", "1"), ""),
        ("ADD c INT DEFAULT 5", ExistingColumn("int", "7"), "another value in c"),
        ("ADD c INT DEFAULT 5", ExistingColumn("int"), "another value in c"),
        ("ADD c INT DEFAULT 5", None, "a value in c"),
        ("ADD c INT", None, ""),
        ("ADD C VARCHAR(9) DEFAULT 'it''s'", ExistingColumn("varchar", "it's"), ""),
        ("ADD c VARCHAR(9) DEFAULT 'a' 'b'", ExistingColumn("varchar", "a"), "another value in c"),
        ("ADD c VARCHAR(9) DEFAULT '\\n'", ExistingColumn("varchar", "\\n"), "another value in c"),
        ("ADD c DATETIME DEFAULT NOW()", CLOCK, "another value in c"),
        ("ADD c DATETIME DEFAULT CURRENT_TIMESTAMP", CLOCK, "another value in c"),
        ("ADD c DATETIME DEFAULT NULL ON UPDATE NOW()", ExistingColumn("datetime"), "no time in c"),
        ("ADD c TIMESTAMP", CLOCK, "another value in c"),  # which a session may mean by it
        (
            "ADD c CHAR(9) DEFAULT (CAST(1 AS CHAR))",
            ExistingColumn("char", "1"),
            "another value in c",
        ),
        ("ADD c INT AS (a + 1)", ExistingColumn("int", computed=True), ""),
        ("ADD c INT AS (a + 1) STORED", None, ""),
        ("ADD c INT AS (a + 1)", ExistingColumn("int"), "computed values of c"),
        ("ADD c INT AUTO_INCREMENT UNIQUE", ExistingColumn("int"), "it numbered rows"),
        ("ADD UNIQUE (c), DROP INDEX k, COMMENT 'c'", ExistingColumn("int"), ""),
        ("DROP c", None, ""),
        ("DROP c", ExistingColumn("int"), "c is another column"),
        (
            "RENAME COLUMN c TO d, RENAME COLUMN d TO c",
            ExistingColumn("int"),
            "c is another column",
        ),
        ("CHANGE c d BIGINT", ExistingColumn("int"), "c is another column"),
        ("MODIFY c VARCHAR(99)", ExistingColumn("varchar"), ""),
        ("MODIFY c DATETIME", ExistingColumn("datetime"), "converted values of c"),
        ("MODIFY c VARCHAR(30)", CLOCK, "converted values of c"),
        ("MODIFY c DOUBLE", ExistingColumn("double"), "converted values of c"),
        ("DROP PARTITION p", ExistingColumn("int"), "it removed rows"),
        ("TRUNCATE PARTITION p", ExistingColumn("int"), "it removed rows"),
        ("REORGANIZE PARTITION p INTO (PARTITION q VALUES IN (1))", ExistingColumn("int"), ""),
        ("ALTER c SET DEFAULT 9", ExistingColumn("int", "9"), ""),
    ],
)
def test_what_rows_from_before_a_change_may_lack(clauses, now, said):
    ddl = parse_table_ddl(f"ALTER TABLE t {clauses}", "s")
    assert ddl is not None
    columns = {"id": ExistingColumn("int")} | ({} if now is None else {"c": now})
    reason = reason_rows_differ(ddl, columns)
    assert said in reason
    assert bool(said) == bool(reason)
