"""Which collation is written out, and where."""

from typing import Any, cast

import pytest

from setl.model.session import StatementSession
from setl.systems.mysql.ddl.collating import (
    collated,
    default_collations,
    names_default,
    reason_backslash_changes,
    reason_charsets_differ,
    with_default,
    with_named_default,
)

MYSQL = StatementSession("d", 0, mariadb=False, utf8mb4=255)
GIVEN = " COLLATE utf8mb4_0900_ai_ci"


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (a CHAR(3)) DEFAULT CHARSET=utf8mb4| COMMENT='CHARSET utf8mb4'",
        "CREATE TABLE t (a CHAR(3) CHARACTER SET utf8mb4| NOT NULL, b INT) CHARACTER SET utf8mb4|",
        "CREATE TABLE t (a CHAR(3) CHARSET 'utf8mb4'|, b CHAR(3) COLLATE utf8mb4_bin)",
        "CREATE TABLE t (a CHAR(3) CHARACTER SET utf8mb4 NOT NULL COLLATE utf8mb4_bin)",
        "CREATE TABLE t (a CHAR(3)) COLLATE=utf8mb4_bin CHARSET=utf8mb4",
        "CREATE TABLE t (a CHAR(3) COLLATE utf8mb4_bin) DEFAULT CHARACTER SET = utf8mb4|",
        "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4|, ADD x INT",
        "ALTER TABLE t ADD a INT AS (CAST(b AS CHAR(3) CHARACTER SET utf8mb4))",
        "ALTER TABLE t ADD utf8mb4 CHAR(3) CHARACTER SET latin1",
    ],
)
def test_where_a_collation_is_written(text):
    assert collated(text.replace("|", ""), MYSQL) == text.replace("|", GIVEN)


@pytest.mark.parametrize(
    ("session", "name"),
    [
        (StatementSession("d", 0, mariadb=False, utf8mb4=45), "utf8mb4_general_ci"),
        (StatementSession("d", 0, mariadb=True), "utf8mb4_general_ci"),
        (StatementSession("d", 0, mariadb=True, collations=((45, 2304),)), "utf8mb4_uca1400_ai_ci"),
        (StatementSession("d"), ""),
    ],
)
def test_what_the_session_takes(session, name):
    text = "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4"
    assert collated(text, session) == (f"{text} COLLATE {name}" if name else text)


YOUNGER = StatementSession(
    "d", 0, mariadb=True, collations=((33, 2048), (35, 2560), (45, 2304), (54, 2816), (60, 3072))
)


class PretendedTarget:
    """A server that may have `character_set_collations`, and names collations."""

    def __init__(self, version, *, has_setting):
        self.version, self.has_setting, self.answer = version, has_setting, ()

    def get_server_info(self):
        return self.version

    def cursor(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def execute(self, sql):
        known = {2048: "utf8mb3", 2560: "ucs2", 2304: "utf8mb4", 2816: "utf16", 3072: "utf32"}
        if sql.startswith("SHOW"):
            self.answer = (("character_set_collations", ""),) if self.has_setting else ()
        else:
            self.answer = tuple(
                (charset, f"{charset}_uca1400_ai_ci")
                for number, charset in known.items()
                if str(number) in sql
            )

    def fetchone(self):
        return next(iter(self.answer), None)

    def fetchall(self):
        return self.answer


def reported(target, session):
    return default_collations(cast("Any", target), session)


@pytest.mark.parametrize(
    ("session", "wanted"),
    [
        (StatementSession("d", 0, mariadb=True, collations=((45, 2304),)), ["utf8mb4=utf8mb4_uca"]),
        (YOUNGER, ["utf8mb3=", "ucs2=ucs2_", "utf8mb4=", "utf16=utf16_", "utf32="]),
        (StatementSession("d", 0, mariadb=True), ["= 'utf8mb4=utf8mb4_general_ci'"]),
        (MYSQL, ["= 'utf8mb4=utf8mb4_general_ci'"]),
    ],
)
def test_a_younger_mariadb_is_reported_what_a_character_set_means(session, wanted):
    target = PretendedTarget("5.5.5-11.8.9-MariaDB", has_setting=True)
    (statement,) = reported(target, session)
    assert statement.startswith("SET SESSION character_set_collations = '")
    assert all(part in statement for part in wanted)


def test_what_is_not_reported():
    old = PretendedTarget("5.5.5-10.11.14-MariaDB", has_setting=False)
    mysql = PretendedTarget("9.7.0", has_setting=True)
    assert reported(old, YOUNGER) == reported(mysql, YOUNGER) == []
    younger = PretendedTarget("5.5.5-11.8.9-MariaDB", has_setting=True)
    assert reported(younger, StatementSession("d")) == []


@pytest.mark.parametrize("kind", ["NCHAR(3)", "NATIONAL VARCHAR(3)", "CHAR(3) UNICODE"])
def test_character_sets_without_a_name_are_uncertain(kind):
    assert "another collation" in reason_charsets_differ(f"ALTER TABLE t ADD a {kind}", YOUNGER)
    assert reason_charsets_differ(f"ALTER TABLE t ADD a {kind}", MYSQL) == ""
    assert reason_charsets_differ(f"ALTER TABLE t ADD a INT COMMENT '{kind}'", YOUNGER) == ""
    assert reason_charsets_differ("ALTER TABLE t ADD `unicode` INT", YOUNGER) == ""


def test_other_character_sets_whose_collation_is_not_the_compiled_one():
    session = YOUNGER
    text = "ALTER TABLE t ADD a CHAR(3) CHARSET {}, ADD b CHAR(3) CHARACTER SET latin1"
    for charset in ("utf8mb3", "ucs2", "utf8mb4", "utf16", "utf32"):
        wanted = text.format(f"{charset} COLLATE {charset}_uca1400_ai_ci")
        assert collated(text.format(charset), session) == wanted
    older = StatementSession("d", 0, mariadb=True)
    assert collated(text.format("utf16"), older) == text.format("utf16")


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (a CHAR(3), b INT CHECK (a LIKE 'x' OR (b > (1))))| ENGINE=InnoDB",
        "CREATE TABLE t (a CHAR(3) COLLATE latin1_bin)| PARTITION BY KEY (a) PARTITIONS 2",
        "CREATE TABLE t (a CHAR(3)) CHARSET=latin1",
        "CREATE TABLE t (a CHAR(3)) DEFAULT COLLATE = utf8mb4_bin",
        "CREATE TABLE t LIKE u",
        "CREATE TABLE t (LIKE u)",
    ],
)
def test_where_the_collation_of_the_schema_is_written(text):
    known = with_default(text.replace("|", ""), MYSQL, "latin1_bin")
    assert known == text.replace("|", " COLLATE latin1_bin")


@pytest.mark.parametrize(
    ("text", "mariadb", "mysql"),
    [
        (
            "ALTER TABLE t CONVERT TO CHARACTER SET DEFAULT, ADD b INT DEFAULT 1",
            "ALTER TABLE t CONVERT TO CHARACTER SET latin1, ADD b INT DEFAULT 1",
            "ALTER TABLE t CONVERT TO CHARACTER SET latin1 COLLATE latin1_bin, ADD b INT DEFAULT 1",
        ),
        (
            "ALTER TABLE t CONVERT TO CHARSET DEFAULT COLLATE latin1_general_ci",
            "ALTER TABLE t CONVERT TO CHARSET latin1 COLLATE latin1_general_ci",
            "ALTER TABLE t CONVERT TO CHARSET latin1 COLLATE latin1_general_ci",
        ),
        (
            "CREATE TABLE t (a INT DEFAULT 1) DEFAULT CHARACTER SET = DEFAULT COMMENT 'DEFAULT'",
            "CREATE TABLE t (a INT DEFAULT 1) DEFAULT CHARACTER SET = latin1 COMMENT 'DEFAULT'",
            None,  # not in its grammar
        ),
        (
            "CREATE TABLE t (a INT) COLLATE = DEFAULT",
            "CREATE TABLE t (a INT) CHARACTER SET latin1",
            None,
        ),
    ],
)
def test_default_is_named(text, mariadb, mysql):
    family = {"mariadb": (StatementSession("d", 0, mariadb=True), mariadb), "mysql": (MYSQL, mysql)}
    for session, expected in family.values():
        if expected is not None:
            assert names_default(text, session)
            assert with_named_default(text, session, "latin1_bin") == expected


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (a INT DEFAULT 1) DEFAULT CHARSET=latin1",
        "CREATE TABLE t (a CHAR(3) COLLATE DEFAULT) CHARSET=latin1 COLLATE DEFAULT",
        "ALTER TABLE t COLLATE DEFAULT",
        "ALTER TABLE t ALTER a SET DEFAULT 5",
        "ALTER TABLE t CHARACTER SET latin1 DEFAULT COLLATE latin1_bin",
    ],
)
def test_what_names_no_default_of_a_schema(text):
    session = StatementSession("d", 0, mariadb=True)
    assert not names_default(text, session)
    assert with_named_default(text, session, "ucs2_bin") == text


@pytest.mark.parametrize(
    ("collation", "text", "changes"),
    [
        (13, r"ALTER TABLE t ADD c TEXT DEFAULT ('a\\b')", True),
        (13, r"ALTER TABLE t ADD c TEXT DEFAULT ('a\n''b')", False),
        (45, r"ALTER TABLE t ADD c TEXT DEFAULT ('a\\b')", False),
        (0, r"ALTER TABLE t ADD c TEXT DEFAULT ('a\\b')", False),
    ],
)
def test_a_backslash_has_two_encodings_in_sjis(collation, text, changes):
    session = StatementSession("d", 0, mariadb=True, collation=collation)
    assert bool(reason_backslash_changes(text, session, mariadb=True)) == changes
    assert not reason_backslash_changes(text, session, mariadb=False)
