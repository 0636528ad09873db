"""Clauses of ALTER TABLE of which setl knows what they do to rows."""

import pytest

from setl.codec.sql.table_ddl import parse_table_ddl
from setl.systems.mysql.ddl.predicates import why_unknown

KNOWN = (
    "ADD c INT, DROP d, MODIFY e INT, CHANGE f g INT, ALTER h SET DEFAULT 1, RENAME COLUMN i TO j",
    "ADD UNIQUE KEY u (a, b), DROP PRIMARY KEY, RENAME KEY k TO l, ALTER INDEX m INVISIBLE",
    "ENGINE InnoDB ROW_FORMAT DYNAMIC, AUTO_INCREMENT 5, COMMENT 'x', DEFAULT CHARSET utf8mb4",
    "`odd`=1, strange=yes, CONVERT TO CHARACTER SET utf8mb4, ALGORITHM=INPLACE, LOCK NONE, FORCE",
    "ORDER BY n, id",
    "DROP PARTITION p0, p1",
    "REORGANIZE PARTITION p0, p1 INTO (PARTITION q VALUES LESS THAN (9))",
    "REMOVE PARTITIONING",
    "PARTITION BY HASH (id) PARTITIONS 4",
    "EXCHANGE PARTITION p WITH TABLE u WITHOUT VALIDATION",
    "ADD SYSTEM VERSIONING, ADD PERIOD FOR p (a, b), DROP SYSTEM VERSIONING",
    "DISCARD PARTITION p0, p1 TABLESPACE",
    "RENAME TO s.u, DISABLE KEYS, ENABLE KEYS, SECONDARY_LOAD, WITHOUT VALIDATION",
    "RENAME u",
    "",
)


@pytest.mark.parametrize("clauses", KNOWN)
def test_clauses_that_servers_have(clauses):
    ddl = parse_table_ddl(f"ALTER TABLE s.t {clauses}", "s")
    assert ddl is not None
    assert why_unknown(ddl) == ""


@pytest.mark.parametrize("clauses", ["SHUFFLE ROWS", "ADD c INT, SHUFFLE ROWS", "`SHUFFLE` ROWS"])
def test_clauses_that_nobody_knows_yet(clauses):
    ddl = parse_table_ddl(f"ALTER TABLE s.t {clauses}", "s")
    assert ddl is not None
    assert "SHUFFLE` does to rows" in why_unknown(ddl) or "SHUFFLE does" in why_unknown(ddl)
