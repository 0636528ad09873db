"""No two tables with other rows agree; the servers themselves say what they hold."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from setl.bulk.verify_target import VerifySettings
from setl.errors import ConfigurationError, DataError

TWICE = VerifySettings(rechecks=2, pause=0, rows_per_part=3)


NO_OPTIONS: Mapping[str, Any] = {}


class Case(NamedTuple):
    """A table of both sites; each row is SQL.

    Attributes:
        columns: of the table, with its key.
        source: rows of the source.
        target: rows of the target.
        options: of the mapping.
        merged: how many rows the channel file allows to be one with another.
    """

    columns: str
    source: str
    target: str
    options: Mapping[str, Any] = NO_OPTIONS
    merged: int = 0


# fmt: off
CASES = {
    # Rows that a server distinguishes, and that may look alike on their way.
    "labels": Case("e ENUM('', 'a') PRIMARY KEY, v INT", "(0,1),('',1),('a',1)", "('',1),('a',1)"),
    "one_character": Case(
        "k VARCHAR(9) CHARSET cp932 COLLATE cp932_bin PRIMARY KEY, v INT",
        "(X'81CA',1),(X'EEF9',1),('b',1)",
        "(X'81CA',1),('b',1)",
    ),
    "no_character": Case(
        "k VARCHAR(9) CHARSET big5 COLLATE big5_bin PRIMARY KEY, v INT",
        "(X'A15A',1),(X'A1C3',1),('b',1)",
        "(X'A1C3',1),('b',1)",
    ),
    "no_character_at_the_target": Case(
        "k VARCHAR(9) CHARSET ascii COLLATE ascii_bin PRIMARY KEY, v INT",
        "('b',1)",
        "('b',1),(X'80',1)",
    ),
    "spaces": Case(
        "k VARCHAR(9) PRIMARY KEY, v VARBINARY(9)", "('a ',''),('b',X'00')", "('a',''),('b',X'00')"
    ),
    "commas": Case("id INT PRIMARY KEY, a TEXT, b TEXT", "(1,'a,b','c')", "(1,'a','b,c')"),
    "commas_in_keys": Case(
        "a VARCHAR(9), b VARCHAR(9), PRIMARY KEY (a, b)", "('a\", \"b','c')", "('a','b\", \"c')"
    ),
    "nulls": Case(
        "id INT PRIMARY KEY, a VARCHAR(9)",
        "(1,NULL),(2,NULL),(3,NULL)",
        "(1,'NULL'),(2,'N'),(3,'')",
    ),
    "nulls_of_numbers": Case("id INT PRIMARY KEY, a INT, b INT", "(1,NULL,0)", "(1,0,NULL)"),
    "swapped": Case("id INT PRIMARY KEY, a INT", "(1,5),(2,6)", "(1,6),(2,5)"),
    # Rows without a key of their own.
    "twice": Case("k INT, v INT", "(1,1),(1,1),(2,2)", "(1,1),(2,2)", {"key": ["k"]}, 1),
    "twice_at_both": Case("k INT, v INT", "(1,1),(1,1)", "(1,1),(1,1)", {"key": ["k"]}),
    "cancelled": Case("k INT, v INT", "(1,1),(1,1)", "(1,2),(1,2)", {"key": ["k"]}),
    "null_missing": Case("k INT, v INT", "(NULL,1),(2,2)", "(2,2)", {"key": ["k"]}),
    "null_extra": Case("k INT, v INT", "(2,2)", "(NULL,1),(2,2)", {"key": ["k"]}),
    "null_of_two": Case(
        "k INT, l CHAR(3), v INT", "(1,NULL,1),(1,'a',1)", "(1,'a',1)", {"key": ["k", "l"]}
    ),
    # Rows without any key: they are as many as they are.
    **{
        f"keyless_{name}": Case(columns, source, target)
        for name, columns, source, target in [
            ("one_more", "a INT, b VARCHAR(9)", "(1,'x'),(1,'x'),(1,'x')", "(1,'x'),(1,'x')"),
            ("as_many", "a INT, b INT", "(1,1),(1,1),(2,2)", "(1,1),(2,2),(2,2)"),
            ("cancelled", "a INT, b INT", "(1,1),(1,1)", "(1,2),(1,2)"),
            ("nulls", "a VARCHAR(9), b CHAR(4)", "(NULL,''),(NULL,'')", "(NULL,''),('NULL','')"),
            ("case", "a VARCHAR(9) COLLATE utf8mb4_general_ci", "('a'),('A')", "('a'),('a')"),
            ("space", "a VARCHAR(9), b INT", "('a',1),('a ',1)", "('a',1),('a',1)"),
            ("bytes", "a VARCHAR(9) CHARSET big5", "(X'A15A'),('b')", "(X'A1C3'),('b')"),
            ("zeros", "a DOUBLE, b INT", "(0e0,1),(-0e0,1)", "(0e0,1),(0e0,1)"),
            ("equal", "a DOUBLE, b TEXT", "(-0e0,'x'),(0,NULL),(0,NULL)",
             "(0,NULL),(0,NULL),(-0e0,'x')"),
        ]
    },
    # Keys of every kind: a row that is missing, and one too many, are found again by their keys.
    **{
        f"key_{name}": Case(
            f"k {declared} PRIMARY KEY, v INT", f"({some},1),({one},1)", f"({some},1),({other},1)"
        )
        for name, declared, some, one, other in [
            ("float", "FLOAT", "0.5", "0.1", "-1.1e-7"),
            ("double", "DOUBLE", "0.5", "0.1", "1e-300"),
            ("decimal", "DECIMAL(30,10)", "0.5", "12345678901234567890.0000000001", "0"),
            ("year", "YEAR", "2001", "0", "1999"),
            ("bit", "BIT(9)", "b'1'", "b'100000000'", "b'0'"),
            ("time", "TIME(2)", "'1:0:0'", "'-838:59:59'", "'0:0:0.01'"),
            ("date", "DATE", "'2026-01-01'", "'0000-00-00'", "'2026-02-00'"),
            ("moment", "DATETIME(6)", "'2026-01-01'", "'2026-01-01 0:0:0.000001'", "'0000-00-00'"),
            ("timestamp", "TIMESTAMP(3)", "'2026-01-01'", "'2026-01-01 0:0:0.001'", "0"),
            ("binary", "BINARY(3)", "'a'", "X'00'", "X'FF'"),
            ("varbinary", "VARBINARY(3)", "'a'", "''", "X'00'"),
            ("enum", "ENUM('a','é')", "'a'", "0", "'é'"),
            ("set", "SET('a','b','c')", "'a'", "''", "'a,c'"),
            ("text", "VARCHAR(9) CHARSET latin1", "'a'", "'é'", "''"),
            ("ucs2", "VARCHAR(9) CHARSET ucs2 COLLATE ucs2_bin", "'a'", "'ä'", "'é'"),
        ]
    },
}
# fmt: on


def held(connection, schema, table):
    """What a server holds, in bytes, and the numbers of its labels."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s"
            " AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION",
            (schema, table),
        )
        names = [name for (name,) in cursor.fetchall()]
        values = [f"HEX({name}), HEX({name} + 0), CAST({name} AS CHAR)" for name in names]
        cursor.execute(f"SELECT {', '.join(values)} FROM {table}")
        return Counter(cursor.fetchall())


@pytest.fixture
def loose(pair):
    """Sessions in which anything can be written."""
    pair.both("SET sql_mode='NO_ENGINE_SUBSTITUTION', time_zone='+00:00'")
    return pair


def test_tables_with_other_rows_never_agree(loose):
    mappings = []
    for name, case in CASES.items():
        loose.both(f"CREATE TABLE {name} ({case.columns})")
        loose.run(loose.source, f"INSERT INTO {name} VALUES {case.source}")
        loose.run(loose.target, f"INSERT INTO {name} VALUES {case.target}")
        mappings.append({"from": name, **case.options})
    found = {v.target.partition(".")[2]: v for v in loose.verify(*mappings, settings=TWICE)}
    wrong = {}
    for name, case in CASES.items():
        there, here = (held(c, loose.schema, name) for c in (loose.source, loose.target))
        verdict = found[name]
        equal = there == here and not case.options
        expected: list[Any] = [there.total(), here.total(), equal or case.merged > 0, equal]
        seen = [verdict.source_rows, verdict.target_rows, verdict.agrees, verdict.equal]
        if case.merged:
            expected, seen = [*expected, case.merged], [*seen, verdict.merged]
        if name.startswith("key_"):
            expected += [1, 1, 0]
            seen += [verdict.missing, verdict.extra, verdict.different]
        if seen != expected:
            wrong[name] = seen, expected
    assert not wrong


def test_a_table_that_cannot_be_compared_does_not_keep_the_others_from_it(loose):
    loose.both("CREATE TABLE good (id INT PRIMARY KEY)")
    loose.both("CREATE TABLE bad (k VARCHAR(9) CHARSET ucs2 COLLATE ucs2_bin PRIMARY KEY, v INT)")
    loose.run(loose.source, "CREATE TABLE gone (id INT PRIMARY KEY)")
    loose.run(loose.source, "INSERT INTO bad VALUES (X'D800', 1)")
    loose.run(loose.target, "INSERT INTO bad VALUES (X'D800', 2)")
    loose.both("INSERT INTO good VALUES (1)")
    failed = {}

    def fail(target, error):
        failed[target.partition(".")[2]] = error

    verdicts = loose.verify(failed=fail)
    assert [v.target.partition(".")[2] for v in verdicts if v.equal] == ["good"]
    # To a MariaDB nobody can say such a key as a limit, and MySQL says NULL in its place.
    bad = failed.pop("bad", None)
    assert {name: type(error) for name, error in failed.items()} == {"gone": ConfigurationError}
    if bad is not None:
        assert isinstance(bad, DataError)
        assert "0xD800" in str(bad)
