"""Rows that a schema change fills: after it they are at the target what they are at the source."""

import pytest

from setl.codec.binlog.rows import BinlogRowCodec
from setl.config.routing import Router
from setl.errors import FatalError
from setl.extract.extractor import Extractor
from setl.extract.loopback import MarkIdentity
from setl.load.ddl.mysql_ddl import MysqlDdl
from setl.load.mysql.fence import MysqlFence
from setl.load.port import LoadTicket, SchemaChange
from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint
from setl.model.entry import EntryKind
from setl.model.session import StatementSession
from setl.mysql.connection import MysqlEndpoint
from tests.integration.pipelines import execute, fresh_name, mysql, one_way
from tests.mysql_servers import is_mariadb
from tests.unit.codec.binlog_server import end_of, entries_between

TABLES = (
    "CREATE TABLE {db}.t (id INT PRIMARY KEY, at TIMESTAMP(6) NULL, d DATETIME(6), n INT NULL)",
    "INSERT INTO {db}.t VALUES (5, '2020-01-02 03:04:05.678901', '2020-06-30 23:59:59.999999', 0)",
    "INSERT INTO {db}.t VALUES (3, '2021-01-02 23:30:05.5', '2021-06-30 12:00:00.5', NULL)",
    "INSERT INTO {db}.t VALUES (9, NULL, NULL, 7)",
    "CREATE TABLE {db}.nokey (v INT NOT NULL UNIQUE)",
    "INSERT INTO {db}.nokey VALUES (30), (10), (20)",
)
CLOCK = "SET timestamp = 1600000000.123456"


class Pair:
    """A source whose statements are read from its binlog and passed on to a target."""

    def __init__(self, a, b, db):
        self.a, self.b, self.db = a, b, db
        self.key = fresh_name("p")
        self.number = 0
        file = one_way(a, mysql(b), [{"from": f"{db}.*"}])
        self.router = Router(file.pipelines[0])
        MysqlFence(self.endpoint(b), f"c/{self.key}", 1.0).raise_to(5, "n")
        self.ddl = self.passing(marked_drops=False)

    def endpoint(self, server):
        return MysqlEndpoint(server.host, server.port, server.user, server.password)

    def passing(self, *, marked_drops, source=True, mark=17):
        nonces = iter(range(10_000))
        return MysqlDdl(
            self.endpoint(self.b),
            mark,
            self.router,
            lambda: f"{self.key}{next(nonces)}",
            marked_drops=marked_drops,
            source=self.endpoint(self.a) if source else None,
        )

    def entries(self, *statements):
        """The DDL that the source logs of statements."""
        with self.a.connect(database=self.db) as connection, connection.cursor() as cursor:
            start = end_of(connection)
            for statement in statements:
                cursor.execute(statement)
            found = entries_between(self.a, start, end_of(connection))
        return [entry for entry in found if entry.kind is EntryKind.DDL]

    def apply(self, entry, ddl=None, session=None):
        self.number += 1
        ticket = LoadTicket("c", self.key, "n", 5, 1, 0, through=5)
        change = SchemaChange(
            f"{self.number}", entry.statement, session or entry.session, 1, self.number
        )
        return (ddl or self.ddl).apply(ticket, change)

    def run(self, *statements):
        for entry in self.entries(*statements):
            assert self.apply(entry)

    def rows(self, server, table="t"):
        with server.connect(database=self.db) as connection, connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(f"SELECT * FROM {table} ORDER BY 1")
            return cursor.fetchall()

    def shape(self, server, table="t"):
        return execute(server, f"SHOW CREATE TABLE {self.db}.{table}")

    def assert_same(self, table="t"):
        assert self.rows(self.a, table) == self.rows(self.b, table)
        with self.a.connect() as a, self.b.connect() as b:
            alike = is_mariadb(a) == is_mariadb(b)
        assert not alike or self.shape(self.a, table) == self.shape(self.b, table)


@pytest.fixture
def pair(servers):
    name = fresh_name("rows")
    for server in servers:
        execute(server, f"CREATE DATABASE {name}", *(t.format(db=name) for t in TABLES))
    yield Pair(*servers, name)
    for server in servers:
        execute(server, f"DROP DATABASE {name}")


@pytest.fixture
def mariadb(servers):
    """Whether both servers are MariaDBs."""
    a, b = servers
    with a.connect() as source, b.connect() as target:
        return is_mariadb(source) and is_mariadb(target)


FILLED = {
    "microseconds": (
        CLOCK,
        "ALTER TABLE t ADD c TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)",
    ),
    "a time zone": (
        CLOCK,
        "SET time_zone = '+03:00'",
        "ALTER TABLE t ADD c DATETIME DEFAULT NOW()",
    ),
    "a day": (CLOCK, "SET time_zone = '-11:00'", "ALTER TABLE t ADD c DATE DEFAULT (CURRENT_DATE)"),
    "the machine's zone": (CLOCK, "ALTER TABLE t ADD c DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3)"),
    "now": ("ALTER TABLE t ADD c DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6)",),
    "names of months": (
        CLOCK,
        "SET lc_time_names = 'de_DE'",
        "ALTER TABLE t ADD c VARCHAR(20) DEFAULT (DATE_FORMAT(CURRENT_TIMESTAMP, '%M %W'))",
    ),
    "conversion": (
        "SET time_zone = '+05:30'",
        "ALTER TABLE t MODIFY at DATETIME(6), CHANGE d e TIMESTAMP(6) NULL",
    ),
    "fractions": ("ALTER TABLE t MODIFY d DATETIME, MODIFY at TIMESTAMP(1) NULL",),
    "a counter": (
        "SET auto_increment_increment = 3, auto_increment_offset = 2",
        "ALTER TABLE t ADD c INT AUTO_INCREMENT UNIQUE",
    ),
    "a plain counter": ("ALTER TABLE t ADD c SERIAL",),
    "a column that counts": (
        "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
        "UPDATE t SET n = id",
        "ALTER TABLE t MODIFY n INT AUTO_INCREMENT, ADD UNIQUE (n)",
    ),
    "the first timestamp": (
        CLOCK,
        "SET explicit_defaults_for_timestamp = 0",
        "ALTER TABLE t ADD c TIMESTAMP, DROP at",
    ),
    "expressions": (
        "ALTER TABLE t ADD (c INT DEFAULT (1 + 1), e VARCHAR(9) DEFAULT (CONCAT('(', 'b')))",
    ),
    "another language": (
        "SET NAMES latin1",
        "ALTER TABLE t ADD c VARCHAR(9) DEFAULT 'é' COMMENT 'ü'",
    ),
}


@pytest.mark.parametrize("how", FILLED)
def test_rows_are_filled_as_at_the_source(pair, how):
    if how == "a column that counts":
        execute(pair.b, f"UPDATE {pair.db}.t SET n = id")
    pair.run(*FILLED[how])
    pair.assert_same()


def test_fractions_are_cut_or_rounded_as_at_the_source(pair):
    with pair.a.connect() as source:
        mode = "TIME_ROUND_FRACTIONAL" if is_mariadb(source) else "TIME_TRUNCATE_FRACTIONAL"
    pair.run(f"SET sql_mode = '{mode}'", "ALTER TABLE t MODIFY d DATETIME")
    pair.assert_same()


def test_a_new_table_has_the_collation_of_its_schema_at_the_source(pair):
    execute(pair.b, f"ALTER DATABASE {pair.db} COLLATE latin1_bin")
    pair.run("CREATE TABLE s (a VARCHAR(9) PRIMARY KEY, b CHAR(3) CHARACTER SET utf8mb4)")
    pair.assert_same("s")


@pytest.mark.family("mariadb", why="MySQL has no such modes")
def test_types_mean_what_they_mean_in_the_session(pair, mariadb):
    if not mariadb:
        pytest.skip("MySQL has no such modes")
    pair.run("SET sql_mode = 'ORACLE'", "ALTER TABLE t ADD c DATE, ADD e VARCHAR2(20)")
    pair.run("SET sql_mode = 'EMPTY_STRING_IS_NULL'", "ALTER TABLE t ADD f VARCHAR(3) DEFAULT ''")
    pair.assert_same()


REFUSED = {
    "ALTER TABLE nokey ADD c INT AUTO_INCREMENT PRIMARY KEY": "order is open",
    "ALTER TABLE t ADD c INT AUTO_INCREMENT UNIQUE, ORDER BY n": "order of its own",
    "ALTER TABLE t DROP PRIMARY KEY, ADD c INT AUTO_INCREMENT PRIMARY KEY": "need not be",
}
REFUSED_OF_MARIADB = {
    "ALTER TABLE t ADD c CHAR(36) DEFAULT (UUID())": "UUID",
    "ALTER TABLE t ADD (b INT, c DOUBLE DEFAULT RAND())": "RAND",
    "ALTER TABLE t ADD c DATETIME DEFAULT SYSDATE()": "SYSDATE",
    "ALTER IGNORE TABLE t ADD UNIQUE (n)": "which of them stays",
}


OF_MARIADB = pytest.mark.family("mariadb", why="MySQL refuses it itself")


@pytest.mark.parametrize(
    "statement", [*REFUSED, *(pytest.param(s, marks=OF_MARIADB) for s in REFUSED_OF_MARIADB)]
)
def test_what_nothing_tells_is_refused_with_the_way_out(pair, mariadb, statement):
    if statement in REFUSED_OF_MARIADB and not mariadb:
        pytest.skip("MySQL refuses it itself")
    (entry,) = pair.entries(statement)
    before = pair.shape(pair.b), pair.shape(pair.b, "nokey")
    with pytest.raises(FatalError, match=(REFUSED | REFUSED_OF_MARIADB)[statement]) as caught:
        pair.apply(entry)
    assert "state = 'done'" in caught.value.hint
    assert (pair.shape(pair.b), pair.shape(pair.b, "nokey")) == before
    # Where there are no rows, nothing is open.
    execute(pair.b, f"DELETE FROM {pair.db}.t", f"DELETE FROM {pair.db}.nokey")
    assert pair.apply(entry)


def test_rows_are_not_numbered_in_the_order_of_another_key(pair):
    execute(pair.b, f"UPDATE {pair.db}.t SET n = id WHERE n IS NULL")
    execute(pair.b, f"ALTER TABLE {pair.db}.t DROP PRIMARY KEY, ADD PRIMARY KEY (n, id)")
    (entry,) = pair.entries("ALTER TABLE t ADD c INT AUTO_INCREMENT UNIQUE")
    with pytest.raises(FatalError, match=r"is \(id\) at the source and \(n, id\) at the target"):
        pair.apply(entry)


OF_A_SESSION = {
    "ALTER TABLE t ADD c DATETIME DEFAULT NOW()": "which time",
    "ALTER TABLE t MODIFY at DATETIME(6)": "converted",
    "ALTER TABLE t ADD c TIMESTAMP": "by itself",
    "ALTER TABLE t ADD c INT AUTO_INCREMENT UNIQUE": "counts",
    "ALTER TABLE t ADD c REAL": "FLOAT",
    "ALTER TABLE t ADD c VARCHAR(9) DEFAULT 'a\\\\b'": "backslash",
    'ALTER TABLE t ADD c VARCHAR(9) DEFAULT "a"': "a name or a text",
    "CREATE TABLE s (a INT, b TIMESTAMP DEFAULT '2020-01-01 00:00:00')": "time zone",
}


@pytest.mark.parametrize("statement", OF_A_SESSION)
def test_a_topic_does_not_tell_of_the_session(pair, statement):
    (entry,) = pair.entries(statement)
    with pytest.raises(FatalError, match=OF_A_SESSION[statement]):
        pair.apply(entry, pair.passing(marked_drops=False, source=False), StatementSession(pair.db))


def test_what_the_session_does_not_decide_passes_from_a_topic(pair):
    ddl = pair.passing(marked_drops=False, source=False)
    for statement in (
        "ALTER TABLE t ADD c VARCHAR(9) NOT NULL DEFAULT 'it''s' COMMENT \"a\\\\b\", ADD KEY (c)",
        "ALTER TABLE t MODIFY n BIGINT NULL",
        "CREATE TABLE s (a INT AUTO_INCREMENT PRIMARY KEY, b TIMESTAMP NULL DEFAULT NULL)",
    ):
        (entry,) = pair.entries(statement)
        assert pair.apply(entry, ddl, StatementSession(pair.db))
    pair.assert_same()
    pair.assert_same("s")


def test_a_file_does_not_travel(pair):
    execute(pair.a, f"CREATE TABLE {pair.db}.f (a INT PRIMARY KEY)")
    execute(pair.b, f"CREATE TABLE {pair.db}.f (a INT PRIMARY KEY)")
    (entry,) = pair.entries("ALTER TABLE f DISCARD TABLESPACE")
    with pytest.raises(FatalError, match="file"):
        pair.apply(entry)


def test_a_schema_with_mapped_tables_is_not_dropped_in_silence(pair):
    (entry,) = pair.entries("CREATE TABLE t2 (a INT)")
    with pytest.raises(FatalError, match="mapped"):
        pair.apply(entry._replace(statement=f"DROP DATABASE `{pair.db}`"))
    assert pair.apply(entry._replace(statement="DROP DATABASE elsewhere")) == ()


def test_several_tables_of_which_one_was_not_there(pair, mariadb):
    for server in (pair.a, pair.b):
        execute(server, f"CREATE TABLE {pair.db}.x1 (a INT)", f"CREATE TABLE {pair.db}.x2 (a INT)")
    if mariadb:
        with pytest.raises(Exception, match="Unknown table"):
            execute(pair.a, f"DROP TABLE {pair.db}.x1, {pair.db}.nosuch")
    (entry,) = pair.entries("DROP TABLE x2" if mariadb else "DROP TABLE x1, x2")
    text = "DROP TABLE `x1`,`nosuch`,`x2` /* generated by server */"
    assert pair.apply(entry._replace(statement=text))
    assert execute(pair.b, f"SHOW TABLES FROM {pair.db} LIKE 'x_'") == ()


class Opposite:
    """What the pipeline from the target back to the source would pass on."""

    def __init__(self, pair):
        self.pair = pair
        with pair.b.connect() as connection:
            self.start = end_of(connection)

    def passed_on(self):
        with self.pair.b.connect() as connection:
            entries = entries_between(self.pair.b, self.start, end_of(connection))
        extractor = Extractor(self.pair.router, MarkIdentity(17), BinlogRowCodec())
        return extractor.extract(Batch(1, 1, entries, Checkpoint(self.start), 0, 0)).ddl


ECHOES = {
    "all kinds": [
        "CREATE TABLE e (id INT PRIMARY KEY, v INT)",
        "ALTER TABLE e ADD w INT, ADD KEY (v)",
        "CREATE INDEX i ON e (w)",
        "DROP INDEX i ON e",
        "RENAME TABLE e TO f",
        "ALTER TABLE f RENAME TO e",
        "CREATE TABLE g LIKE e",
        "TRUNCATE TABLE e",
        "DROP TABLE e, g",
        "DROP TABLE IF EXISTS e",
    ],
    "replaced": [
        "CREATE OR REPLACE TABLE nokey (id INT PRIMARY KEY)",
        "CREATE OR REPLACE TABLE nokey LIKE t",
        "CREATE OR REPLACE TABLE brandnew (id INT)",
    ],
}


REPLACED = pytest.param(
    "replaced", marks=pytest.mark.family("mariadb", why="MySQL has no OR REPLACE")
)


@pytest.mark.parametrize("which", ["all kinds", REPLACED])
def test_nothing_comes_back(pair, mariadb, which):
    if which == "replaced" and not mariadb:
        pytest.skip("MySQL has no OR REPLACE")
    opposite, ddl = Opposite(pair), pair.passing(marked_drops=True)
    for statement in ECHOES[which]:
        for entry in pair.entries(statement):
            assert pair.apply(entry, ddl)
    assert opposite.passed_on() == []
    tables = f"SHOW TABLES FROM {pair.db}"
    assert execute(pair.a, tables) == execute(pair.b, tables)


@pytest.mark.family("mariadb", why="MySQL has no OR REPLACE")
def test_a_table_that_cannot_be_replaced_is_not_dropped_at_the_other_site(pair, mariadb):
    if not mariadb:
        pytest.skip("MySQL has no OR REPLACE")
    execute(pair.a, f"CREATE TABLE {pair.db}.parent (id INT PRIMARY KEY)")  # the target lacks it
    opposite, ddl = Opposite(pair), pair.passing(marked_drops=True)
    statement = (
        "CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, p INT,"
        f" FOREIGN KEY (p) REFERENCES {pair.db}.parent (id))"
    )
    (entry,) = pair.entries(statement)
    with pytest.raises(FatalError, match="refuses"):
        pair.apply(entry, ddl)
    assert opposite.passed_on() == []


@pytest.mark.family("mariadb", why="MySQL logs no statement that failed")
def test_a_statement_that_failed_half_way_at_the_source_is_not_passed_on(pair, mariadb):
    if not mariadb:
        pytest.skip("MySQL logs no statement that failed")
    statement = "CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, p INT REFERENCES nosuch (id))"
    with pair.a.connect(database=pair.db) as connection, connection.cursor() as cursor:
        start = end_of(connection)
        with pytest.raises(Exception, match="Foreign key"):
            cursor.execute(statement)
        entries = entries_between(pair.a, start, end_of(connection))
    entry = next(e for e in entries if e.kind is EntryKind.DDL)
    with pytest.raises(FatalError, match="half-way"):
        pair.apply(entry)
    assert pair.rows(pair.b)


def test_a_mark_that_got_lost_is_seen(pair):
    opposite = Opposite(pair)
    with pair.b.connect(database="retl") as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {pair.db}.nokey")
    with pytest.raises(FatalError, match="its mark is missing"):
        opposite.passed_on()


def test_foreign_keys_do_not_follow_a_table_that_is_dropped(pair):
    child = f"CREATE TABLE {pair.db}.child (id INT PRIMARY KEY, FOREIGN KEY (id)"
    for server in (pair.a, pair.b):
        execute(server, f"{child} REFERENCES {pair.db}.t (id))")
    (entry,) = pair.entries("SET foreign_key_checks = 0", "DROP TABLE t")
    with pytest.raises(FatalError, match=r"foreign keys of .*child refer") as caught:
        pair.apply(entry, pair.passing(marked_drops=True))
    assert "REFERENCES" in pair.shape(pair.b, "child")[0][1]
    assert "sql_log_bin" in caught.value.hint


@pytest.mark.parametrize(
    ("change", "passes"),
    [
        ("ADD c INT DEFAULT 7", True),
        ("ADD c DATETIME DEFAULT CURRENT_TIMESTAMP", False),
        ("ADD c INT AUTO_INCREMENT UNIQUE", False),
    ],
)
def test_rows_that_an_online_schema_change_filled_while_it_copied_them(pair, change, passes):
    entries = pair.entries(
        "CREATE TABLE _t_gho LIKE t",
        f"ALTER TABLE _t_gho {change}",
        "INSERT INTO _t_gho (id, at, d, n) SELECT id, at, d, n FROM t",
        "RENAME TABLE t TO _t_del, _t_gho TO t",
    )
    *noted, swap = entries
    for entry in noted:
        pair.apply(entry)
    if passes:
        pair.apply(swap)
        assert pair.rows(pair.a) == pair.rows(pair.b)
    else:
        with pytest.raises(FatalError, match="when it copied them"):
            pair.apply(swap)
        assert len(pair.rows(pair.b)[0]) == 4
