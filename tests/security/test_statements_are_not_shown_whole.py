"""What of a schema change anybody sees: no text of it, nothing of what is not mapped (I19, I29)."""

import logging
from typing import Any

import pytest

from setl.codec.sql.redaction import outline, without_texts
from setl.codec.sql.tokens import Quoting
from setl.errors import FatalError
from setl.model.entry import Entry, EntryKind
from setl.model.leadership import Leadership
from setl.model.position import BinlogPosition
from setl.model.session import StatementSession
from setl.run.measured.progress import Progress
from setl.run.targets.schema_changes import SchemaChangePolicy
from tests.arbiter_in_memory import ManualClock
from tests.security.marked_errors import MARKER

OF_MAPPED_TABLES = (
    f"ALTER TABLE shop.leaks CONNECTION='mysql://fed:{MARKER}@db9/shop/leaks'",
    f"CREATE TABLE shop.t (a INT) ENGINE=FEDERATED CONNECTION '{MARKER}'",
    f'ALTER TABLE shop.t COMMENT "{MARKER}"',
    f"ALTER TABLE shop.t ADD c CHAR(40) DEFAULT '{MARKER}' COMMENT '{MARKER}'",
    f"ALTER TABLE shop.t ADD x INT /* {MARKER} */ -- {MARKER}",
    f"ALTER TABLE shop.t ADD x INT # {MARKER}",
    f"ALTER TABLE shop.t ADD x CHAR(9) DEFAULT 'it''s {MARKER}'",
    f"ALTER TABLE shop.t ADD x CHAR(9) DEFAULT 'it\\'s {MARKER}'",
    f"ALTER TABLE shop.t ADD x CHAR(9) DEFAULT _utf8mb4'{MARKER}'",
    f"/*!50100 ALTER TABLE shop.t COMMENT '{MARKER}' */",
)
OF_OTHER_OBJECTS = (
    (f"CREATE PROCEDURE shop.q2() SELECT '{MARKER}'", "CREATE PROCEDURE shop.q2"),
    (f"CREATE DEFINER=`{MARKER}`@`%` EVENT shop.e ON SCHEDULE EVERY 1 DAY DO SELECT '{MARKER}'",
     "CREATE EVENT shop.e"),
    (f"CREATE OR REPLACE VIEW shop.v AS SELECT '{MARKER}'", "CREATE VIEW shop.v"),
    (f"CREATE PROCEDURE q2() SELECT '{MARKER}'", "CREATE PROCEDURE q2"),
)  # fmt: skip
OF_OTHER_SCHEMAS = (
    f"CREATE PROCEDURE elsewhere.q2() SELECT '{MARKER}'",
    f"CREATE FUNCTION elsewhere.`{MARKER}`() RETURNS INT RETURN 1",
    f"DROP DATABASE `{MARKER}`",
    f"CREATE EVENT `{MARKER}`.e ON SCHEDULE EVERY 1 DAY DO SELECT 1",
)


NO_TICKET: Any = None  # nothing is replicated


def policy(choice: Any):
    progress = Progress(ManualClock())
    leadership = Leadership("shop", "p", "n1", 1)
    return progress, SchemaChangePolicy(choice, None, leadership, progress, "shop".__eq__)


def reported(statement, caplog, choice="ignore"):
    """What is shown and logged of a statement."""
    progress, changes = policy(choice)
    session = StatementSession("shop")
    position = BinlogPosition("b.000001", 4)
    entry = Entry(EntryKind.DDL, position, 0.0, "shop", "", statement=statement, session=session)
    with caplog.at_level(logging.INFO):
        changes.act_on([entry], NO_TICKET, generation=1)
    logged = "".join(str(vars(record)) for record in caplog.records)
    return progress.figures().last_ddl_ignored, logged


@pytest.mark.parametrize("statement", OF_MAPPED_TABLES)
def test_of_a_mapped_table_its_texts_are_hidden(statement, caplog):
    shown, logged = reported(statement, caplog)
    assert "shop." in shown
    assert MARKER not in shown + logged
    with pytest.raises(FatalError) as stopped:
        reported(statement, caplog, "stop")
    assert MARKER not in str(stopped.value)


@pytest.mark.parametrize(("statement", "outlined"), OF_OTHER_OBJECTS)
def test_of_another_object_its_name_is_shown(statement, outlined, caplog):
    shown, logged = reported(statement, caplog)
    assert shown.startswith(f"{outlined} (")
    assert MARKER not in shown + logged


@pytest.mark.parametrize("statement", OF_OTHER_SCHEMAS)
def test_of_a_schema_that_is_not_mapped_nothing_is_shown(statement, caplog):
    shown, logged = reported(statement, caplog)
    assert shown.startswith("DDL in a schema of which no table is mapped (")
    assert MARKER not in shown + logged
    assert "elsewhere" not in shown + logged


def test_double_quotes_are_around_names_where_the_session_says_so():
    statement = 'ALTER TABLE "shop"."t" ADD "c" INT COMMENT \'x\''
    ansi = Quoting(ansi=True)
    assert without_texts(statement, ansi) == 'ALTER TABLE "shop"."t" ADD "c" INT COMMENT \'***\''
    assert outline('DROP VIEW "shop"."v"', ansi) == ("DROP VIEW shop.v", "shop")
    assert outline("", ansi) == ("", "")
    assert outline("DROP VIEW", ansi) == ("DROP VIEW", "")
    assert outline("GRANT ALL ON *.* TO x", ansi) == ("GRANT", "")
