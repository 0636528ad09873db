"""What a schema change computes for rows that are there, where the families may differ."""

import pytest

from setl.codec.sql.table_ddl import parse_table_ddl
from setl.model.session import MODES, StatementSession
from setl.systems.mysql.ddl.effects import effects_of
from setl.systems.mysql.ddl.predicates import reason_families_convert, reason_families_differ


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


@pytest.mark.parametrize(
    ("old", "new", "strict", "loose"),
    [
        ("bigint", "DOUBLE", True, True),
        ("bit", "BIGINT", True, True),
        ("bit", "DOUBLE", False, False),
        ("float", "BIGINT", False, False),
        ("double", "DATETIME", False, False),
        ("tinyint", "SET('a')", False, False),
        ("varchar", "BIGINT", True, False),
        ("varchar", "DATETIME", True, False),
        ("datetime", "YEAR", True, False),
        ("varchar", "JSON", True, True),
        ("decimal", "VARCHAR(40)", True, True),
        ("varbinary", "BLOB", True, True),
    ],
)
def test_which_types_become_alike(old, new, strict, loose):
    ddl = parse_table_ddl(f"ALTER TABLE t CHANGE v w {new}", "d")
    assert ddl is not None
    for mode, alike in (("STRICT_ALL_TABLES", strict), ("ANSI_QUOTES", loose)):
        session = StatementSession(sql_mode=MODES[mode], mariadb=True)
        reason = reason_families_convert(effects_of(ddl), session, {"v": old})
        assert (not reason) == alike, reason
