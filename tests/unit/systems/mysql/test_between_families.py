"""What a schema change computes for rows that are there, where the families may differ."""

import pytest

from setl.codec.sql.table_ddl import parse_table_ddl
from setl.systems.mysql.ddl.effects import effects_of
from setl.systems.mysql.ddl.predicates import reason_families_differ


@pytest.mark.parametrize(
    ("column", "doubtful"),
    [
        ("v DOUBLE AS (id / 3) STORED", "/"),
        ("v DOUBLE AS (id / 3)", "/"),
        ("v INT AS (id * 3) STORED", ""),
        ("v INT AS (SOUNDEX(id)) VIRTUAL", ""),
        ("v LONGTEXT CHARACTER SET utf8mb4 DEFAULT ('it''s') INVISIBLE", ""),
        ("v BLOB DEFAULT (X'6100')", ""),
        ("v LONGTEXT DEFAULT ('é')", "longtext"),
        ("v TEXT DEFAULT (_utf8mb4 X'61')", "_utf8mb4"),
        ("v JSON DEFAULT ('{}')", "json"),
        ("v DATE DEFAULT ('2024-1-1')", ""),
    ],
)
def test_what_is_ambiguous(column, doubtful):
    ddl = parse_table_ddl(f"ALTER TABLE t ADD {column}", "d")
    assert ddl is not None
    reason = reason_families_differ(effects_of(ddl), {"id"})
    assert bool(reason) == bool(doubtful)
    assert doubtful in reason
