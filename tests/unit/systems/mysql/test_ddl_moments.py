"""Which statements mean something else in another session, for those without one."""

import pytest

from setl.codec.sql.table_ddl import parse_table_ddl
from setl.systems.mysql.ddl.effects import effects_of

MOMENTS = "the time zone of its moments"


def unclear(text):
    ddl = parse_table_ddl(text, "s")
    assert ddl is not None
    return effects_of(ddl).unclear


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (a INT, b TIMESTAMP DEFAULT '2024-01-01')",
        "CREATE TABLE t (b TIMESTAMP(2) NOT NULL DEFAULT '2024-01-01', a DECIMAL(9,2))",
        "CREATE TABLE t (b TIMESTAMP NULL DEFAULT 20240101000000)",
        "CREATE TABLE t (b TIMESTAMP DEFAULT TIMESTAMP'2024-01-01 00:00:00')",
        "CREATE TABLE t (b TIMESTAMP DEFAULT ('2024-01-01 00:00:00'))",
        "CREATE TABLE t (a INT AS (UNIX_TIMESTAMP(b)), b TIMESTAMP)",
        "ALTER TABLE t ADD b TIMESTAMP DEFAULT '2024-01-01'",
        "ALTER TABLE t ADD (a INT, b TIMESTAMP DEFAULT '2024-01-01')",
        "ALTER TABLE t CHANGE a b TIMESTAMP DEFAULT '2024-01-01'",
        "ALTER TABLE t ALTER b SET DEFAULT '2024-01-01 00:00:00'",
        "ALTER TABLE t ALTER COLUMN b SET DEFAULT 20240101000000",
    ],
)
def test_a_moment_that_is_written_out(text):
    assert unclear(text) == MOMENTS


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (a CHAR(3) DEFAULT 'new', b TIMESTAMP NULL, c CHAR(1) DEFAULT 'x')",
        "CREATE TABLE t (a DECIMAL(9,2) DEFAULT '1.50', b TIMESTAMP DEFAULT CURRENT_TIMESTAMP)",
        "CREATE TABLE t (b TIMESTAMP NULL DEFAULT NULL) DEFAULT CHARSET=utf8mb4 COMMENT='x'",
        "CREATE TABLE t (b TIMESTAMP NOT NULL DEFAULT 0, d DATETIME DEFAULT '2024-01-01')",
        "CREATE TABLE t LIKE u",
        "ALTER TABLE t ADD a CHAR(3) DEFAULT 'new', ADD b TIMESTAMP NULL",
        "ALTER TABLE t ALTER b SET DEFAULT 'new', ALTER c SET DEFAULT 7, ALTER d DROP DEFAULT",
        "DROP TABLE t",
    ],
)
def test_no_moment(text):
    assert unclear(text) == ""


@pytest.mark.parametrize(
    ("expression", "of_session"),
    [
        ("CAST(c AS CHAR(40))", True),
        ("CAST(c AS CHAR)", True),
        ("CONVERT(c, CHAR(40))", True),
        ("CONCAT(CONVERT(c, CHAR), 'x')", True),
        ("CAST(c AS CHAR(40) CHARACTER SET latin1)", False),
        ("CAST(c AS CHAR CHARSET utf8mb4)", False),
        ("CONVERT(c USING latin1)", False),
        ("CAST(c AS BINARY(4))", False),
    ],
)
def test_what_cast_to_char_is_encoded_as(expression, of_session):
    """MySQL writes it into the definition, from the session's connection."""
    wanted = "the character set of CAST and CONVERT to CHAR" if of_session else ""
    for text in (
        f"CREATE TABLE t (c CHAR(9), v CHAR(9) AS ({expression}) STORED, w CHAR)",
        f"ALTER TABLE t ADD v VARCHAR(40) AS ({expression}), ADD w CHAR",
    ):
        assert unclear(text) == wanted


@pytest.mark.parametrize(
    ("column", "stamped"),
    [
        ("TIMESTAMP", True),
        ("TIMESTAMP(3) NOT NULL", True),
        ("TIMESTAMP NOT NULL CHECK (b IS NULL)", True),
        ("TIMESTAMP NULL", False),
        ("TIMESTAMP(6) NULL DEFAULT NULL AFTER a", False),
        ("TIMESTAMP DEFAULT NULL", False),
        ("DATETIME", False),
    ],
)
def test_a_column_that_may_be_filled_with_the_time(column, stamped):
    """With ``explicit_defaults_for_timestamp`` off, only one that takes NULL is not."""
    for clause in ("ADD", "MODIFY", "CHANGE a"):
        ddl = parse_table_ddl(f"ALTER TABLE t {clause} b {column}", "s")
        assert ddl is not None
        assert effects_of(ddl).stamped is stamped
