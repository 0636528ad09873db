"""After which schema changes nobody knows what row a dead letter is about."""

import pytest

from setl.channel.reading import parse_channel
from setl.channel.routes.routing import Router
from setl.codec.sql.table_ddl import parse_table_ddl
from setl.load.deadletters.ambiguous import changed_targets, in_doubt
from setl.load.deadletters.dead_letter import State, content_to_text
from setl.model.entry import Entry, EntryKind
from setl.model.faulty import TargetRow
from setl.model.position import BinlogPosition
from setl.model.schema import Column, Kind
from tests.letters import letter

COLUMNS = Column("id", Kind.INTEGER), Column("name", Kind.TEXT)
ROW = TargetRow(("s", "t"), COLUMNS, (0,), (7, "far too long"))


def doubted(statement, renamed=(), **changes):
    stored = letter("shop/p", 1, payload=content_to_text(ROW), **changes)
    ddl = parse_table_ddl(statement, "s")
    assert ddl is not None
    return in_doubt(stored, ddl, renamed)


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE t",
        "DROP TABLE t",
        "RENAME TABLE t TO old, new TO t",
        "CREATE OR REPLACE TABLE t (id INT PRIMARY KEY)",
        "ALTER TABLE t RENAME TO u",
        "ALTER TABLE t RENAME u",
        "ALTER TABLE t MODIFY COLUMN `ID` BIGINT",
        "ALTER TABLE t CHANGE id nr INT",
        "ALTER TABLE t RENAME COLUMN id TO nr",
        "ALTER TABLE t ADD k INT, DROP PRIMARY KEY, ADD PRIMARY KEY (k)",
        "ALTER TABLE t ADD k INT AUTO_INCREMENT KEY",
        "ALTER TABLE t COMMENT 'x', TRUNCATE PARTITION p0",
        "ALTER TABLE t DROP PARTITION p0",
        "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u",
        "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4",
    ],
)
def test_rows_go_or_keys_change(statement):
    assert doubted(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t MODIFY name VARCHAR(100), ALGORITHM = INPLACE",
        "ALTER TABLE t CHANGE name title TEXT",
        "ALTER TABLE t ADD COLUMN k INT AFTER id, ADD KEY (k), ADD UNIQUE (id, k)",
        "ALTER TABLE t DROP COLUMN name, DROP INDEX i, RENAME INDEX a TO b",
        "ALTER TABLE t ADD PARTITION (PARTITION p9 VALUES LESS THAN (9))",
        "ALTER TABLE t ENGINE = InnoDB, COMMENT = 'x'",
        "CREATE INDEX i ON t (name)",
        "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY)",
    ],
)
def test_rows_and_keys_stay(statement):
    assert not doubted(statement)


def test_a_key_may_have_another_name_at_the_source():
    statement = "ALTER TABLE t MODIFY nr BIGINT"
    assert not doubted(statement)
    assert doubted(statement, {"nr"})


def test_a_letter_without_a_key_is_uncertain_only_once_more():
    assert not doubted("TRUNCATE t", key_hash="")
    assert doubted("TRUNCATE t", key_hash="", state=State.RETRY)


def test_what_a_statement_changes_are_the_targets_of_all_its_tables():
    end = {"type": "mysql", "host": "a", "user": "u"}
    tables = [{"from": "s.t", "to": "x.t1", "columns": {"id": "nr"}}, {"from": "s.u"}]
    pipeline = {"name": "p", "source": end, "target": {**end, "host": "b"}, "tables": tables}
    router = Router(parse_channel({"channel": "shop", "pipelines": [pipeline]}).pipelines[0])
    statements = "RENAME TABLE t TO u", "DROP TABLE v", "CREATE USER me"
    position = BinlogPosition("b.000001", 4)
    entries = [
        Entry(EntryKind.DDL, position, 0.0, schema="s", statement=text) for text in statements
    ]
    found = [(name, renamed) for name, _, renamed in changed_targets(entries, router)]
    assert found == [("x.t1", {"nr"}), ("s.u", set())]
