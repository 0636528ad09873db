"""What statements about databases say of default collations."""

import pytest

from setl.codec.sql.database_ddl import DEFAULT, DatabaseDdl, parse_database_ddl
from setl.codec.sql.tokens import Quoting


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (
            "ALTER DATABASE a COLLATE utf8mb4_bin",
            DatabaseDdl("ALTER", "a", collation="utf8mb4_bin"),
        ),
        (
            "alter schema `a b` default character set = 'Latin1' default collate=latin1_bin",
            DatabaseDdl("ALTER", "a b", charset="latin1", collation="latin1_bin"),
        ),
        ("ALTER DATABASE CHARSET utf8mb4", DatabaseDdl("ALTER", "now", charset="utf8mb4")),
        ("ALTER DATABASE a CHARACTER SET DEFAULT", DatabaseDdl("ALTER", "a", charset=DEFAULT)),
        ("ALTER DATABASE a READ ONLY = 1", DatabaseDdl("ALTER", "a")),
        ("CREATE DATABASE IF NOT EXISTS a", DatabaseDdl("CREATE", "a", conditional=True)),
        ("CREATE OR REPLACE DATABASE a", DatabaseDdl("CREATE", "a")),
        ("CREATE DATABASE a COMMENT 'COLLATE x'", DatabaseDdl("CREATE", "a")),
        ("DROP DATABASE IF EXISTS a", DatabaseDdl("DROP", "a", conditional=True)),
        ("ALTER TABLE a COLLATE utf8mb4_bin", None),
        ("CREATE TABLE d.`database` (a INT) COLLATE utf8mb4_bin", None),
        ("GRANT ALL ON a.* TO b", None),
        ("", None),
    ],
)
def test_what_is_said(text, read):
    assert parse_database_ddl(text, "now", Quoting()) == read


@pytest.mark.parametrize(
    ("text", "leaves"),
    [
        ("CREATE DATABASE a", False),
        ("CREATE DATABASE IF NOT EXISTS a CHARACTER SET ucs2", True),  # logged, and not carried out
        ("ALTER DATABASE a ENCRYPTION = 'Y'", True),
        ("ALTER DATABASE a CHARSET ucs2", False),
        ("DROP DATABASE a", False),
    ],
)
def test_which_of_them_change_it(text, leaves):
    ddl = parse_database_ddl(text, "", Quoting())
    assert ddl is not None
    assert ddl.leaves_default is leaves
