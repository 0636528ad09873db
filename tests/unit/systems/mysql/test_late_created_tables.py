"""What a schema change did to rows that came before it, where their table was made after it."""

import pytest

from setl.codec.sql.table_ddl import parse_table_ddl
from setl.systems.mysql.ddl.late_created_tables import ExistingColumn, reason_rows_differ

CLOCK = ExistingColumn("datetime", filled=True)


@pytest.mark.parametrize(
    ("clauses", "now", "said"),
    [
        ("ADD c INT", ExistingColumn("int"), ""),
        ("ADD c INT", ExistingColumn("int", filled=True), "no value in c"),
        ("ADD COLUMN c INT NULL DEFAULT NULL FIRST", ExistingColumn("int"), ""),
        ("ADD c INT DEFAULT NULL", ExistingColumn("int", filled=True), "no value in c"),
        ("ADD c INT DEFAULT 7", ExistingColumn("int", filled=True), "a value in c"),
        ("ADD c INT DEFAULT 5", None, "a value in c"),
        ("ADD c INT", None, ""),
        ("ADD c DATETIME DEFAULT NOW()", CLOCK, "a value in c"),
        ("ADD c DATETIME DEFAULT NULL ON UPDATE NOW()", ExistingColumn("datetime"), "no time in c"),
        ("ADD c TIMESTAMP", CLOCK, "no value in c"),  # but a session may mean one by it
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
        ("ALTER c SET DEFAULT 9", ExistingColumn("int", filled=True), ""),
    ],
)
def test_what_rows_from_before_a_change_may_lack(clauses, now, said):
    ddl = parse_table_ddl(f"ALTER TABLE t {clauses}", "s")
    assert ddl is not None
    columns = {"id": ExistingColumn("int")} | ({} if now is None else {"c": now})
    reason = reason_rows_differ(ddl, columns)
    assert said in reason
    assert bool(said) == bool(reason)
