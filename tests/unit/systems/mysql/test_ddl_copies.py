"""What nothing tells of rows that an online schema change has copied."""

import pytest

from setl.codec.sql.table_ddl import parse_table_ddl
from setl.model.session import StatementSession
from setl.systems.mysql.ddl.effects import effects_of
from setl.systems.mysql.ddl.equivalence import doubt_of_copies

TYPES = {"at": "timestamp", "d": "datetime", "day": "date", "t": "time", "n": "int", "s": "varchar"}
DOUBTS = {
    "MODIFY at TIMESTAMP(6) NULL": "",
    "MODIFY d DATE, MODIFY day DATETIME, MODIFY n BIGINT, MODIFY s TEXT": "",
    "MODIFY t TIME(3), CHANGE d t2 TIME": "",
    "MODIFY n DATETIME": "",
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
}


@pytest.mark.parametrize("change", DOUBTS)
def test_values_that_depend_on_the_time_zone_of_the_copying(change):
    ddl = parse_table_ddl(f"ALTER TABLE s.t {change}", "")
    session = StatementSession(sql_mode=0, explicit_timestamps=True)
    doubt = doubt_of_copies(effects_of(ddl), session, TYPES)
    assert DOUBTS[change] in doubt
    assert bool(DOUBTS[change]) == bool(doubt)
