"""Which schema changes are added to a Delta table, which mean nothing to it, and which stop."""

import pytest
from deltalake import DeltaTable

from setl.channel.reading import parse_channel
from setl.channel.routes.routing import Router
from setl.errors import FatalError, FencedError
from setl.load.sink import SchemaChange
from setl.model.change import TargetChanges
from setl.model.schema import Column, Kind
from setl.model.session import StatementSession
from setl.systems.delta.ddl import DeltaDdl
from setl.systems.delta.fence import DeltaFence
from setl.systems.delta.location import Location
from setl.systems.delta.sink import DeltaSinkSettings
from tests.delta_tables import create_table
from tests.loading import ticket_for

COLUMNS = (Column("id", Kind.INTEGER), Column("name", Kind.TEXT))
TICKET = ticket_for("lake", epoch=2)


class Target:
    def __init__(self, folder):
        tables = [{"from": "s.t", "columns": {"renamed": "old_name"}}]
        source = {"type": "mysql", "host": "db", "user": "u"}
        pipeline = {"name": "p", "source": source, "tables": tables,
                    "target": {"type": "delta", "path": str(folder)}}  # fmt: skip
        file = parse_channel({"channel": "c", "pipelines": [pipeline]})
        self.location = Location(str(folder))
        self.folder = self.location.of_table(("s", "t"))
        create_table(self.folder, COLUMNS)
        self.fence = DeltaFence(self.location, TICKET.pipeline_key)
        self.fence.raise_to(2, "n1")
        self.ddl = DeltaDdl(self.location, Router(file.pipelines[0]))

    def fill(self):
        changes = TargetChanges(("s", "t"), COLUMNS, (0,), [(1, "a")], [], [1], [])
        DeltaSinkSettings(self.location).make_sink().apply(TICKET, [changes])

    def run(self, statement, **settings):
        session = StatementSession("s", **settings)
        return self.ddl.apply(TICKET, SchemaChange("x", statement, session, 0, 1))

    def columns(self):
        fields = DeltaTable(self.folder.uri).schema().fields
        return {f.name: str(f.type.type) for f in fields if f.name not in {"id", "name"}}


@pytest.fixture
def target(tmp_path):
    return Target(tmp_path)


@pytest.mark.parametrize(
    ("clause", "added"),
    [
        ("ADD COLUMN c INT", {"c": "long"}),
        ("ADD c BIGINT UNSIGNED NULL DEFAULT NULL FIRST", {"c": "decimal(20,0)"}),
        ("ADD (c DECIMAL(12, 3), d DECIMAL)", {"c": "decimal(12,3)", "d": "decimal(10,0)"}),
        ("ADD c DECIMAL(65,30)", {"c": "string"}),
        ("ADD COLUMN c DATETIME(3), ADD KEY (c), COMMENT='x'", {"c": "timestamp_ntz"}),
        ("ADD COLUMN old_name TIMESTAMP NULL", {"renamed": "timestamp"}),
        ("ADD COLUMN c FLOAT, ALGORITHM=INSTANT, LOCK=NONE", {"c": "float"}),
    ],
)
def test_columns_that_are_null_are_added(target, clause, added):
    target.fill()
    (said,) = target.run(f"ALTER TABLE t {clause}")
    assert said.startswith("s.t has ")
    assert target.columns() == added
    assert "nothing to do" in target.run(f"ALTER TABLE t {clause}")[0]  # again, after a crash


@pytest.mark.parametrize(
    "clause",
    [
        "ADD COLUMN c INT NOT NULL",
        "ADD COLUMN c INT DEFAULT 5",
        "ADD COLUMN c INT AS (id + 1) STORED",
        "MODIFY COLUMN name VARCHAR(5)",
        "CHANGE name title TEXT",
        "RENAME COLUMN name TO title",
        "DROP PARTITION p0",
        "TRUNCATE PARTITION p0",
        "RENAME TO u",
        "ADD COLUMN name VARCHAR(9)",  # which has values already
        "ADD COLUMN c TIMESTAMP",  # NOT NULL, as servers had it that say nothing of it
        "EXCHANGE PARTITION p0 WITH TABLE u",
        "CONVERT PARTITION p0 TO TABLE u",
    ],
)
def test_what_gives_rows_other_values_stops(target, clause):
    target.fill()
    with pytest.raises(FatalError) as stopped:
        target.run(f"ALTER TABLE t {clause}")
    assert "ddl: ignore" in stopped.value.hint
    assert target.columns() == {}


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE t", "DROP TABLE t", "RENAME TABLE t TO u", "RENAME TABLE u TO t",
        "DROP DATABASE s", "ALTER IGNORE TABLE t ADD UNIQUE (name)",
        "ALTER ONLINE IGNORE TABLE t ADD PRIMARY KEY (name), COMMENT = 'x'",
        "ALTER TABLE t IMPORT TABLESPACE",
    ],
)  # fmt: skip
def test_what_takes_rows_away_stops(target, statement):
    target.fill()
    with pytest.raises(FatalError):
        target.run(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t DROP COLUMN name", "ALTER TABLE t ADD UNIQUE (name)",
        "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (name)", "ALTER TABLE t ENGINE = InnoDB",
        "ALTER TABLE t ALTER COLUMN name SET DEFAULT 'x'", "CREATE INDEX i ON t (name)",
        "ALTER TABLE t RENAME INDEX a TO b", "ALTER TABLE t REMOVE PARTITIONING",
        "ALTER TABLE t ADD PARTITION (PARTITION p1 VALUES LESS THAN (9))",
        "ALTER TABLE t REORGANIZE PARTITION p0 INTO (PARTITION p1 VALUES LESS THAN (9))",
        "ALTER TABLE t PARTITION BY HASH (id) PARTITIONS 4", "ALTER TABLE t COALESCE PARTITION 2",
        "ALTER TABLE t ENCRYPTION = 'Y'", "ALTER TABLE t PAGE_COMPRESSED = 1",
        "ALTER TABLE t MAX_ROWS = 1000, AVG_ROW_LENGTH = 50", "ALTER TABLE t ORDER BY name",
        "ALTER IGNORE TABLE t ADD INDEX (name)",
        "CREATE TABLE t (id INT)",
    ],
)  # fmt: skip
def test_what_changes_no_value_goes_by(target, statement):
    target.fill()
    version = DeltaTable(target.folder.uri).version()
    assert len(target.run(statement)) >= 1
    assert DeltaTable(target.folder.uri).version() == version


def test_a_time_is_null_where_the_session_says_so(target):
    target.fill()
    target.run("ALTER TABLE t ADD COLUMN c TIMESTAMP", explicit_timestamps=True)
    assert target.columns() == {"c": "timestamp"}
    with pytest.raises(FatalError, match="rows that are there get a value in d"):
        target.run("ALTER TABLE t ADD COLUMN d TIMESTAMP(6)", explicit_timestamps=False)


def test_tables_that_are_not_mapped_stop_nothing(target):
    assert list(target.run("ALTER TABLE other MODIFY a INT")) == []
    assert list(target.run("DROP TABLE other")) == []


def test_an_empty_table_takes_any_column(target):
    target.run("ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 5")
    assert target.columns() == {"c": "long"}
    assert "no rows" in target.run("TRUNCATE t")[0]
    assert "nothing to do" in target.run("ALTER IGNORE TABLE t ADD UNIQUE (name)")[0]


def test_a_former_leader_adds_no_column(target):
    target.fence.raise_to(3, "n2")
    with pytest.raises(FencedError):
        target.run("ALTER TABLE t ADD COLUMN c INT")
    assert target.columns() == {}
