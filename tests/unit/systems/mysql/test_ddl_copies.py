"""What nothing tells of rows that an online schema change has copied."""

import pytest

from setl.codec.sql.table_ddl import parse_table_ddl
from setl.model.session import StatementSession
from setl.systems.mysql.ddl.effects import effects_of
from setl.systems.mysql.ddl.predicates import (
    reason_copies_differ,
    reason_stored_rows_differ,
    why_session_unknown,
)
from setl.systems.mysql.ddl.table_state import TableState

TYPES = {
    "at": "timestamp(3)",
    "seen-at": "timestamp",
    "d": "datetime",
    "day": "date",
    "t": "time",
    "n": "int(11)",
    "s": "varchar(20)",
    "d6": "datetime(6)",
    "f": "float",
    "e": "enum('a','b')",
    "j": "json",
}
DOUBTS = {
    "MODIFY at TIMESTAMP(6) NULL": "",
    "MODIFY d DATE, MODIFY day DATETIME, MODIFY n BIGINT UNSIGNED, MODIFY s TEXT": "",
    "MODIFY t TIME(3) NOT NULL, MODIFY d DATETIME(6), MODIFY n DECIMAL(20,2), MODIFY n DOUBLE": "",
    "MODIFY e ENUM('b','a','c'), MODIFY e VARCHAR(9), MODIFY j LONGTEXT, MODIFY f DOUBLE": "",
    "MODIFY s INT, MODIFY s DATE, MODIFY s JSON, MODIFY s ENUM('a'), MODIFY s BLOB": "",
    "MODIFY d6 DATETIME": "converted d6",
    "MODIFY d6 BIGINT": "converted d6",
    "MODIFY at TIMESTAMP(2)": "converted at",
    "MODIFY d TIME": "converted d",
    "MODIFY n DATETIME": "converted n",
    "MODIFY f VARCHAR(20)": "converted f",
    "MODIFY f DECIMAL(9,2)": "converted f",
    "MODIFY s BIT(3)": "converted s",
    "MODIFY s INET6": "converted s",
    "ADD x VARCHAR(40) DEFAULT (CONCAT(d, n))": "",
    "ADD x VARCHAR(40) DEFAULT 'at'": "",
    "ADD x DATE AS (DATE(at)) VIRTUAL": "",
    "ADD unknown INT, MODIFY unknown TIMESTAMP": "",
    "MODIFY d TIMESTAMP": "converted d",
    "CHANGE COLUMN day day2 TIMESTAMP NULL": "converted day",
    "MODIFY n TIMESTAMP": "converted n",
    "MODIFY s TIMESTAMP": "converted s",
    "MODIFY t DATETIME": "converted t",
    "MODIFY t DATE": "converted t",
    "MODIFY at TIME, MODIFY n BIGINT, CHANGE at x BIGINT": "converted at",
    "ADD x BIGINT DEFAULT (at + 0)": "computed x",
    "ADD x DATETIME DEFAULT (FROM_UNIXTIME(n))": "computed x",
    "ADD x TIMESTAMP NULL DEFAULT (d)": "computed x",
    "ADD x DATE AS (DATE(at)) STORED": "computed x",
    "ADD x DATE GENERATED ALWAYS AS (DATE(`at`)) PERSISTENT": "computed x",
    "ADD x DATE AS (DATE(`seen-at`)) STORED": "computed x",
    "ADD x INT AS (TO_DAYS(t)) STORED": "computed x",
    "ADD x INT AS (WEEK(d)) STORED": "settings of the session",
    "ADD x VARCHAR(9) DEFAULT (DATE_FORMAT(d, '%M'))": "settings of the session",
    "ADD x BOOL AS (s RLIKE 'a') STORED": "settings of the session",
    "ADD x INT AS (WEEK(d)) VIRTUAL": "",
}


def parsed(text):
    ddl = parse_table_ddl(text, "")
    assert ddl is not None
    return ddl


@pytest.mark.parametrize("change", DOUBTS)
def test_values_that_depend_on_the_time_zone_of_the_copying(change):
    ddl = parsed(f"ALTER TABLE s.t {change}")
    session = StatementSession(sql_mode=0, explicit_timestamps=True)
    reason = reason_copies_differ(effects_of(ddl), session, TYPES)
    assert DOUBTS[change] in reason
    assert bool(DOUBTS[change]) == bool(reason)


UTC = {
    "MODIFY at DATETIME(3), MODIFY d TIMESTAMP, MODIFY day TIMESTAMP(6)": "",
    "MODIFY at DATE, MODIFY s TIMESTAMP": "",
    "ADD x DATE AS (DATE(at)) STORED": "",
    "ADD x INT AS (WEEK(at)) STORED": "settings of the session",
    "MODIFY at DATETIME": "converted at",
    "MODIFY at BIGINT": "converted at",
    "MODIFY n TIMESTAMP": "converted n",
    "MODIFY t TIMESTAMP": "converted t",
}


@pytest.mark.parametrize("change", UTC)
def test_values_that_are_copied_under_utc(change):
    effects = effects_of(parsed(f"ALTER TABLE s.t {change}"))
    session = StatementSession(sql_mode=0, explicit_timestamps=True)
    reason = reason_copies_differ(effects, session, TYPES, utc=True)
    assert UTC[change] in reason
    assert bool(UTC[change]) == bool(reason)


COMPUTED_AGAIN = {
    "date(`at`)": "the time zone",
    "to_days(`t`)": "the time zone",
    "`shown`": "the time zone",  # which is computed of a moment
    "date_format(`d`,'%M')": "settings",
    "(`s` regexp 'a')": "settings",
    "concat(`named`,'x')": "settings",
    "concat(`week`,`s`)": "",
    "to_days(`d`)": "",
}


@pytest.mark.parametrize("expression", COMPUTED_AGAIN)
def test_stored_columns_that_are_computed_again(expression):
    virtual = {"shown": "`other`", "other": "hour(`at`)", "named": "dayname(`d`)", "n2": "`n`"}
    definitions = {**TYPES, "week": "int"}
    state = TableState(definitions=definitions, stored={"x": expression}, virtual=virtual)
    reason = reason_stored_rows_differ(state)
    assert COMPUTED_AGAIN[expression] in reason
    assert bool(COMPUTED_AGAIN[expression]) == bool(reason)
    assert bool(reason_stored_rows_differ(state, utc=True)) == (
        COMPUTED_AGAIN[expression] == "settings"
    )


@pytest.mark.parametrize(
    ("definition", "differs"),
    [
        ("set('y','')", True),
        ("ENUM('','a')", True),
        ("enum('a','b','A')", True),
        ("enum('a','b')", False),
        ("set('\u00fc','u')", False),
        ("varchar(2)", False),
    ],
)
def test_labels_that_are_alike_do_not_survive_copying(definition, differs):
    reason = reason_stored_rows_differ(TableState(definitions={"id": "int", "c": definition}))
    assert bool(reason) is differs
    assert not differs or "changed c when it copied" in reason


def test_a_statement_that_was_logged_with_another_zone_was_not_copied_under_utc():
    effects = effects_of(parsed("ALTER TABLE s.t MODIFY d TIMESTAMP"))
    session = StatementSession(sql_mode=0, explicit_timestamps=True)
    for zone, doubts in {"+00:00": False, "UTC": False, "+08:00": True, "SYSTEM": True}.items():
        there = session._replace(time_zone=zone)
        assert bool(reason_copies_differ(effects, there, TYPES, utc=True)) is doubts


@pytest.mark.parametrize(
    ("column", "unknown"),
    [
        ("v VARCHAR(40) AS (CAST(b AS CHAR)) STORED", True),
        ("v VARCHAR(40) AS (CONVERT(s, CHAR)) STORED", True),
        ("v VARCHAR(40) AS (CAST(n AS CHAR)) STORED", False),
        ("v VARCHAR(40) AS (CAST(b AS CHAR))", False),  # computed by whoever reads it
        ("v VARCHAR(40) AS (DATE_FORMAT(d, '%M')) STORED", True),
        ("v BIGINT AS (UNIX_TIMESTAMP(at)) STORED", True),
        ("v BIGINT AS (n + 1) STORED", False),
        ("v INT", False),
    ],
)
def test_what_a_column_is_computed_by_is_known_with_the_session_alone(column, unknown):
    ddl = parse_table_ddl(f"ALTER TABLE t ADD {column}", "d")
    assert ddl is not None
    state = TableState(types={**TYPES, "b": "bit"})
    reason = why_session_unknown(effects_of(ddl), StatementSession(), state)
    assert bool(reason) == unknown, reason
    known = StatementSession(sql_mode=0)
    assert why_session_unknown(effects_of(ddl), known, state) == ""
