"""What `setl drill oracle` makes up, writes down and makes smaller; no server takes part."""

import itertools
import random
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner

from setl_drills.command import drill
from setl_drills.oracle.alters import Alters
from setl_drills.oracle.comparison import Difference
from setl_drills.oracle.definitions import FEATURES, Grammar
from setl_drills.oracle.formats import LOST
from setl_drills.oracle.histories import History, rows_of
from setl_drills.oracle.node_rounds import Outcome, read_history, reason, write_history
from setl_drills.oracle.node_world import Applied
from setl_drills.oracle.running import Tally
from setl_drills.oracle.sessions import CODECS, Session, Sql, Step, random_session
from setl_drills.oracle.shapes import Column, Shape
from setl_drills.oracle.shrinking import smallest
from setl_drills.oracle.values import random_value

TABLE = Shape(
    "t1",
    (
        Column("id", "int", "int", nullable=False, has_default=False),
        Column("name", "varchar", "varchar(8)", "sjis"),
        Column("kind", "enum", "enum('a','it''s')", "utf8mb4"),
        Column("j", "json", "json"),
        Column("at", "timestamp", "timestamp(6)"),
        Column("v0", "int", "int", computed=True),
    ),
    {"PRIMARY": ("id",), "i1": ("name",)},
    frozenset({"PRIMARY"}),
)


def history(seed, count=150, *, mariadb=True, without=()):
    grammar = Grammar(mariadb, without=frozenset(without))
    tables = {"t1": TABLE, "t2": replace(TABLE, name="t2")}
    made = History(random.Random(seed), grammar, "db", lambda: tables, wild=seed % 2 == 0)
    return list(itertools.islice(made.moves(), count))


def statements(moves):
    return [step.sql for move in moves for step in move]


def test_a_seed_means_the_same_history():
    assert history(1) == history(1) != history(2)


@pytest.mark.parametrize("mariadb", [True, False])
def test_histories_have_all_sorts_of_statements(mariadb):
    text = "\n".join(s for seed in range(12) for s in statements(history(seed, mariadb=mariadb)))
    for wanted in (
        "INSERT INTO", "INSERT IGNORE", "REPLACE INTO", "ON DUPLICATE KEY", "UPDATE ", "DELETE ",
        "SAVEPOINT", "ROLLBACK TO", "XA PREPARE", "WITH RECURSIVE", "JOIN", "CREATE TRIGGER",
        "CREATE TABLE", "LIKE", "MODIFY COLUMN", "CHANGE COLUMN", "RENAME COLUMN", "DROP COLUMN",
        "ADD COLUMN", "CONVERT TO", "RENAME TABLE", "TRUNCATE", "ALTER DATABASE", "_gho", "STORED",
        "VIRTUAL", "CHECK (", "PARTITION BY", "ON UPDATE CURRENT_TIMESTAMP", "ENUM(", "SET(",
        "JSON", "INVISIBLE", "time_zone = '-05:00'", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES",
        "sql_mode = ''",
        "binlog_row_image = 'MINIMAL'", "setl pause", "setl load",
    ):  # fmt: skip
        assert wanted in text, wanted
    assert ("CREATE OR REPLACE" in text) is mariadb


def test_what_is_left_out_is_in_no_history():
    text = "\n".join(s for seed in range(8) for s in statements(history(seed, without=FEATURES)))
    for absent in (
        "ALTER ", "RENAME", "XA ", "setl ", "sjis", " STORED", "MINIMAL", "sql_mode = ''",
        "('', 'a')",
    ):  # fmt: skip
        assert absent not in text, absent
    assert "INSERT INTO" in text


def test_what_a_format_loses_is_in_no_history():
    """Dates in any session: what is no date becomes a zero date under IGNORE."""
    text = "\n".join(
        s for seed in range(12) for s in statements(history(seed, without=LOST["debezium"]))
    )
    for absent in (
        "0000-00-00", "2024-02-30", "ALLOW_INVALID_DATES", "IGNORE INTO `t1`", "SET sjis",
        "binlog_row_image = 'MINIMAL'", "sql_mode = ''", "ANSI", "TIMESTAMP NOT NULL",
    ):  # fmt: skip
        assert absent not in text, absent
    modes = [line for line in text.splitlines() if "SESSION sql_mode = '" in line]
    assert modes
    assert all("NO_ZERO_DATE,NO_ZERO_IN_DATE" in mode for mode in modes)
    assert "2024-01-01" in text
    assert "setl load" in text


def test_xa_transactions_stay_whole_when_a_history_is_made_smaller():
    moves = [m for seed in range(12) for m in history(seed) if m[0].sql.startswith("XA START")]
    assert moves
    for move in moves:
        assert [step.joined for step in move] == [False] + [True] * (len(move) - 1)
        assert move[-1].sql.startswith("XA COMMIT")


def test_an_online_change_stays_whole_when_a_history_is_made_smaller():
    grammar = Grammar(mariadb=True)
    for seed in range(100):
        alters = Alters(random.Random(seed), grammar, Session(), {"t1": TABLE}, "db")
        assert alters.change()
    moves = [m for seed in range(30) for m in history(seed) if "_t1_gho` LIKE" in m[0].sql]
    assert moves
    assert all([step.joined for step in move] == [False] + [True] * 7 for move in moves)


def test_rows_for_tables_of_any_character_set_are_what_latin1_holds():
    texts = replace(TABLE, columns=TABLE.columns[:3])
    steps = list(rows_of(random.Random(1), texts, 200))
    assert sum(step.sql == "COMMIT" for step in steps) > 5
    for step in steps:
        step.sql.encode("cp1252")


@pytest.mark.parametrize(
    ("session", "value", "literal"),
    [
        (Session(), "it's \\ \0", "'it''s \\\\ \\0'"),
        (Session(mode="NO_BACKSLASH_ESCAPES"), "it's \\", "'it''s \\'"),
        (Session(mode="NO_BACKSLASH_ESCAPES"), "\0", "_utf8mb4 X'00'"),
        (Session(charset="latin1"), "中", "_utf8mb4 X'e4b8ad'"),
        (Session(charset="sjis"), "中", "'中'"),
        (Session(), b"\0a", "X'0061'"),
        (Session(), b"", "''"),
        (Session(), None, "NULL"),
        (Session(), Sql("NOW(6)"), "NOW(6)"),
        (Session(), 7, "7"),
    ],
)
def test_literals_as_a_session_writes_them(session, value, literal):
    assert session.literal(value) == literal


def test_a_client_whose_character_set_lacks_a_name_sends_it_in_utf8():
    session = Session(charset="sjis")
    assert session.step("SELECT 'ソ'").bytes == b"SELECT '\x83\\'"
    assert session.step("SELECT `Größe`").charset == "utf8mb4"


def test_values_of_every_type_can_be_written():
    kinds = [
        "int", "bigint", "decimal", "float", "bit", "char", "text", "blob", "date", "datetime",
        "timestamp", "time", "year", "enum", "set", "json", "point", "geometry", "vector", "uuid",
        "inet4", "inet6",
    ]  # fmt: skip
    for kind, seed in itertools.product(kinds, range(50)):
        chance = random.Random(seed)
        spelling = f"{kind}('a','b')" if kind in {"enum", "set"} else f"{kind}(3)"
        column = Column("c", kind, spelling)
        session = random_session(chance, mariadb=True, wild=True)
        assert session.charset in CODECS
        assert session.step(session.literal(random_value(chance, column))).bytes


def test_the_smallest_list_that_fails():
    tried = []

    def fails(items):
        tried.append(items)
        return {3, 11} <= set(items)

    assert smallest(list(range(20)), fails, 60) == [3, 11]
    assert len(tried) < 80
    assert smallest([1, 2, 3], fails, 0) == [1, 2, 3]


def test_a_history_is_read_as_it_was_written(tmp_path):
    steps = [Step("SELECT 'ソ'", "sjis"), Step("COMMIT"), Step("setl pause", joined=True)]
    outcome = Outcome("CHARACTER SET latin1", steps, {1: "refused"})
    write_history(tmp_path / "h.jsonl", outcome)
    assert read_history(tmp_path / "h.jsonl") == ("CHARACTER SET latin1", steps)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "MySQL refuses a value: Out of range value for column 'k' at row 1 [1] (table a.t)",
            "MySQL refuses a value: Out of range value for column 'x' at row 7 [1] (table b.u)",
        ),
        (
            "the target refuses a schema change: /*setl:19*/ ALTER TABLE b ADD c INT: MySQL: N [1]",
            "the target refuses a schema change: /*setl:20*/ ALTER TABLE c DROP d: MySQL: N [1]",
        ),
    ],
)
def test_stops_of_one_kind_are_counted_together(first, second):
    assert reason(first) == reason(second)
    assert not re.search(r"\d", reason(first))


def test_what_came_of_a_run_is_counted_by_kind():
    rows, gone = Difference("rows", "t1", "1 and 2"), Difference("lost", "t2", "")
    tally = Tally()
    for outcome in (
        Outcome("", [Step("A"), Step("B")], {1: "refused"}, rows=7),
        Outcome("", differences=[rows, gone]),
        Outcome("", differences=[Difference("definition", "t1", "")]),
        Outcome("", native=[rows]),
        Outcome("", replica="1062 Duplicate entry '1'"),
        Outcome("", stopped=Applied("failed", "no"), replica="1062 Duplicate entry '2'"),
        Outcome("", stopped=Applied("failed", "no")),
    ):
        tally.add(outcome)
    assert tally.lines == [
        (
            "7 rounds, 1 statements, 7 rows: 4 ended equal, 3 without a replica that agrees,"
            " 1 wrong without an error"
        ),
        "     1 lost, rows",
        "     1 definition",
        "     1 failed: no",
        "     2 the replica: stopped: N Duplicate entry …",
        "     1 the replica: rows",
    ]


def test_a_feature_that_does_not_exist_is_refused_with_the_list():
    done = CliRunner().invoke(drill, ["oracle", "--without", "help"])
    assert done.exit_code == 2
    assert all(name in done.output for name in FEATURES)


@pytest.mark.parametrize("through", LOST)
def test_the_list_of_features_says_why_a_format_loses_some(through):
    done = CliRunner().invoke(drill, ["oracle", "--through", through, "--without", "help"])
    text = " ".join(done.output.split())
    assert LOST[through].keys() <= FEATURES.keys()
    assert all(f"(not through {through}: {why})" in text for why in LOST[through].values())
    assert text.count("not through") == len(LOST[through])


def test_rows_without_a_node_go_through_no_topic():
    done = CliRunner().invoke(drill, ["oracle", "--adapters", "--through", "dts"])
    assert done.exit_code == 2
    assert "--through needs a node" in done.output
