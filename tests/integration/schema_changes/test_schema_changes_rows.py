"""Rows that a schema change fills: after it they are at the target what they are at the source."""

import pymysql
import pytest

from setl.channel.routes.routing import Router
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.errors import FatalError
from setl.extract.extractor import Extractor
from setl.extract.loopback import MarkIdentity
from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint
from setl.model.entry import EntryKind
from setl.model.session import StatementSession
from setl.systems.mysql.ddl import equivalence
from setl.systems.mysql.ddl import steps as steps_module
from tests.integration.pipelines import execute, mysql, one_way
from tests.mysql_servers import is_mariadb
from tests.unit.codec.binlog_server import end_of, entries_between

CLOCK = "SET timestamp = 1600000000.123456"


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
    "bytes": (
        "ALTER TABLE t ADD c BINARY(2) NOT NULL DEFAULT X'00FF'",
        "ALTER TABLE t ALTER c DROP DEFAULT",  # a MariaDB shows it as bytes that are no text
    ),
    "another language": (
        "SET NAMES latin1",
        "ALTER TABLE t ADD c VARCHAR(9) DEFAULT 'é' COMMENT 'ü'",
    ),
}


@pytest.mark.parametrize("how", FILLED)
def test_rows_are_filled_as_at_the_source(sites, how):
    if how == "a column that counts":
        execute(sites.b, f"UPDATE {sites.db}.t SET n = id")
    sites.run(*FILLED[how])
    sites.assert_same()


@pytest.mark.family("mariadb", why="MySQL does it alike, and logs the setting only for TIMESTAMP")
@pytest.mark.parametrize("change", ["MODIFY v BIGINT", "ALTER v SET DEFAULT 1", "DROP INDEX i"])
def test_defaults_that_a_server_gives_at_random_are_given_by_hand(sites, change):
    """Its ALTER may give such a column a default; a comment before it changes whether it does."""
    sites.run("CREATE TABLE w (id INT PRIMARY KEY, n TIMESTAMP NOT NULL, v INT, KEY i (v))")
    (entry,) = sites.entries("SET explicit_defaults_for_timestamp = 0", f"ALTER TABLE w {change}")
    sites.refused(entry, why="may give n a default", hint="SHOW CREATE TABLE")
    # Defaults that the session has given at once stay what they are.
    sites.run(
        "SET explicit_defaults_for_timestamp = 0",
        "CREATE TABLE w2 (id INT PRIMARY KEY, n TIMESTAMP NOT NULL, v INT, KEY i (v))",
        f"ALTER TABLE w2 {change}",
    )
    sites.assert_same("w2")


@pytest.mark.family("mysql", why="a MariaDB shows such a literal as another one")
def test_literals_of_a_named_character_set_keep_their_bytes(sites):
    sites.run(
        "SET NAMES latin1", "ALTER TABLE t ADD c VARCHAR(9) DEFAULT (CONCAT(_utf8mb4'é', ''))"
    )
    sites.assert_same()


def test_literals_of_bytes_stay_those_bytes(sites):
    """The client sends UTF-8 and says latin1, as many do that are set up wrongly."""
    column = "VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT"
    sites.run(
        "SET NAMES latin1",
        f"ALTER TABLE t ADD c {column} N'é'",
        f"ALTER TABLE t ADD e {column} N'é' 'é' 'a'",
        f"ALTER TABLE t ADD f {column} _utf8mb4'é' 'é' 'a'",
        "SET character_set_connection = utf8mb4",
        f"ALTER TABLE t ADD g {column} N'é' 'é'",
        f"ALTER TABLE t ADD h {column} _utf8mb4'é' 'é'",
    )
    assert sites.rows(sites.b)[0][-5:] == ("é", "ééa", "ééa", "éÃ©", "éÃ©")
    sites.assert_same()


def test_literals_whose_bytes_are_no_text_are_not_guessed(sites):
    """What stands beside N'…' is in the client's character set, and the rest of it in UTF-8."""
    column = b"VARBINARY(9) NOT NULL DEFAULT"
    (entry,) = sites.entries(
        "SET character_set_client = latin1, collation_connection = utf8mb4_general_ci",
        b"ALTER TABLE t ADD c " + column + b" '\xe9', ADD zz " + column + b" N'\xe9'",
    )
    with pytest.raises(FatalError, match="no characters of its session's character set"):
        sites.apply(entry)


def test_fractions_are_cut_or_rounded_as_at_the_source(sites):
    with sites.a.connect() as source:
        mode = "TIME_ROUND_FRACTIONAL" if is_mariadb(source) else "TIME_TRUNCATE_FRACTIONAL"
    sites.run(f"SET sql_mode = '{mode}'", "ALTER TABLE t MODIFY d DATETIME")
    sites.assert_same()


def test_a_new_table_has_the_collation_of_its_schema_at_the_source(sites):
    execute(sites.b, f"ALTER DATABASE {sites.db} COLLATE latin1_bin")
    sites.run("CREATE TABLE s (a VARCHAR(9) PRIMARY KEY, b CHAR(3) CHARACTER SET utf8mb4)")
    sites.assert_same("s")


TAKE_DEFAULTS = {
    "CREATE TABLE s (a VARCHAR(9) PRIMARY KEY)": None,
    "ALTER TABLE s CONVERT TO CHARACTER SET DEFAULT": None,
    "ALTER TABLE s CONVERT TO CHARACTER SET DEFAULT COLLATE utf8mb4_unicode_ci": None,
    "CREATE TABLE s1 (a VARCHAR(9)) CHARACTER SET = DEFAULT": "mariadb",
    "CREATE TABLE s2 (a VARCHAR(9)) DEFAULT COLLATE = DEFAULT": "mariadb",
    "ALTER TABLE s CHARACTER SET DEFAULT, ADD b CHAR(3)": "mariadb",
}


def test_defaults_of_a_schema_are_those_of_then(sites):
    """The stream is behind: by now the source has another default."""
    with sites.a.connect() as source:
        family = "mariadb" if is_mariadb(source) else "mysql"
    taken = [s for s, only in TAKE_DEFAULTS.items() if only in (None, family)]
    changed = (
        f"ALTER DATABASE {sites.db} COLLATE utf8mb4_bin",
        f"CREATE DATABASE IF NOT EXISTS {sites.db} CHARACTER SET ucs2",
    )
    entries = sites.entries(*changed, *taken, f"ALTER SCHEMA {sites.db} CHARACTER SET latin2")
    shapes = {}
    for entry in entries:
        sites.apply(entry)
        shapes[entry.statement] = collations(sites.b, sites.db)
    made = ("s", "s1", "s2") if family == "mariadb" else ("s",)
    execute(sites.a, *(f"DROP TABLE {sites.db}.{name}" for name in made))
    for statement in (*changed, *taken):
        with sites.a.connect(database=sites.db) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
        if statement in taken:
            assert shapes[statement] == collations(sites.a, sites.db), statement


def test_a_session_in_another_database_takes_the_default_that_it_took_then(sites):
    """To MySQL that is the default of the session's database, to MariaDB that of the table's."""
    other = f"{sites.db}x"
    execute(sites.a, f"CREATE DATABASE {other} COLLATE latin2_bin")
    try:
        table = f"{sites.db}.s"
        made, *converted = sites.entries(
            f"ALTER DATABASE {sites.db} COLLATE utf8mb4_bin",
            f"CREATE TABLE {table} (a VARCHAR(9) PRIMARY KEY)",
            f"USE {other}",
            f"ALTER TABLE {table} CONVERT TO CHARACTER SET DEFAULT",
        )
        there = collations(sites.a, sites.db)
        for entry in sites.entries(f"ALTER DATABASE {sites.db} COLLATE ucs2_bin"):
            converted.append(entry)
        for entry in (made, *converted):
            sites.apply(entry)
        assert collations(sites.b, sites.db) == there
    finally:
        execute(sites.a, f"DROP DATABASE {other}")


def test_a_default_that_nothing_reports_stops(sites):
    table, _ = sites.entries(
        "CREATE TABLE s (a VARCHAR(9) PRIMARY KEY)", f"ALTER DATABASE {sites.db} COLLATE ucs2_bin"
    )
    sites.refused(table, why=r"ucs2_bin now, and the binlog .* changes it")
    execute(sites.b, f"CREATE TABLE {sites.db}.s (a INT)")
    done = f"UPDATE retl.setl_ddl SET state = 'done' WHERE pipeline = 'c/{sites.key}'"
    execute(sites.b, done)
    sites.number -= 1
    assert "done before" in sites.apply(table)[0]


@pytest.mark.parametrize("started", [True, None])
@pytest.mark.parametrize(
    "what",
    [
        "zone",
        pytest.param(
            "foreign key",
            marks=pytest.mark.family("mysql", why="MariaDB never logs what foreign keys do"),
        ),
    ],
)
def test_settings_of_a_server_that_was_started_since_are_not_those_of_then(
    sites, monkeypatch, what, started
):
    """None: it has more ahead than can be read. That a start shows: test_embedded_stack.py."""
    if what == "zone":
        statements = [f"ALTER TABLE t ADD {c} DATETIME(6) DEFAULT NOW(6)" for c in "cef"]
    else:
        why_not = "why_not_carried_out"
        monkeypatch.setattr(equivalence, why_not, lambda *_: "the mapping has a `where`")
        reference = "(id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES t (id) ON DELETE CASCADE)"
        statements = [f"CREATE TABLE s{i} {reference}" for i in range(3)]
    first, *others = sites.entries(*statements)
    ahead = "setl.systems.mysql.ddl.source_settings.finds_server_start"
    with monkeypatch.context() as patched:
        patched.setattr(ahead, lambda *_: started)
        with pytest.raises(FatalError, match="was started again since") as caught:
            sites.apply(first)
    assert "state = 'done'" in caught.value.hint
    for entry in (first, *others):
        assert sites.apply(entry)
        # From now on it is known, and nothing is read ahead.
        monkeypatch.setattr(ahead, None)
    sites.assert_same()


def collations(server, schema):
    """Those of each table and its columns."""
    return execute(
        server,
        "SELECT TABLE_NAME, TABLE_COLLATION, '' FROM information_schema.TABLES"
        f" WHERE TABLE_SCHEMA = '{schema}' AND TABLE_NAME LIKE 's%' UNION"
        " SELECT TABLE_NAME, COLUMN_NAME, COLLATION_NAME FROM information_schema.COLUMNS"
        f" WHERE TABLE_SCHEMA = '{schema}' AND TABLE_NAME LIKE 's%' ORDER BY 1, 2, 3",
    )


@pytest.mark.family("mariadb", why="MySQL has no such modes")
def test_types_mean_what_they_mean_in_the_session(sites):
    sites.run("SET sql_mode = 'ORACLE'", "ALTER TABLE t ADD c DATE, ADD e VARCHAR2(20)")
    sites.run("SET sql_mode = 'EMPTY_STRING_IS_NULL'", "ALTER TABLE t ADD f VARCHAR(3) DEFAULT ''")
    sites.assert_same()


REFUSED = {
    "ALTER TABLE nokey ADD c INT AUTO_INCREMENT PRIMARY KEY": "it numbers rows",
    "ALTER TABLE t ADD c SERIAL": "it numbers rows",
    "ALTER TABLE t MODIFY n INT AUTO_INCREMENT, ADD UNIQUE (n)": "it numbers rows",
}
REFUSED_OF_MARIADB = {
    "ALTER TABLE t ADD c CHAR(36) DEFAULT (UUID())": "UUID",
    "ALTER TABLE t ADD (b INT, c DOUBLE DEFAULT RAND())": "RAND",
    "ALTER TABLE t ADD c DATETIME DEFAULT SYSDATE()": "SYSDATE",
    "ALTER IGNORE TABLE t ADD UNIQUE u (d), MODIFY n TINYINT NULL": "IGNORE may remove",
}


OF_MARIADB = pytest.mark.family("mariadb", why="MySQL refuses it itself")


@OF_MARIADB
def test_options_that_the_target_does_not_know_are_those_of_the_source(sites):
    sites.run(
        "SET sql_mode = 'IGNORE_BAD_TABLE_OPTIONS'",
        "CREATE TABLE odd (id INT PRIMARY KEY, v INT strange=yes) odd=1",
    )
    sites.run("ALTER TABLE odd MODIFY v BIGINT")
    sites.assert_same("odd")


@pytest.mark.parametrize(
    "statement", [*REFUSED, *(pytest.param(s, marks=OF_MARIADB) for s in REFUSED_OF_MARIADB)]
)
def test_what_nothing_reports_is_refused_with_the_hint(sites, statement):
    (entry,) = sites.entries(statement)
    before = sites.shape(sites.b), sites.shape(sites.b, "nokey")
    sites.refused(entry, why=(REFUSED | REFUSED_OF_MARIADB)[statement])
    assert (sites.shape(sites.b), sites.shape(sites.b, "nokey")) == before
    # Where there are no rows, nothing is open.
    execute(sites.b, f"DELETE FROM {sites.db}.t", f"DELETE FROM {sites.db}.nokey")
    assert sites.apply(entry)


@pytest.mark.parametrize(
    "column",
    [
        "c DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)",
        "c DATETIME NULL ON UPDATE CURRENT_TIMESTAMP",
        "c INT AUTO_INCREMENT UNIQUE",
    ],
)
def test_what_rows_of_the_other_site_get_otherwise_does_not_pass_in_two_directions(sites, column):
    ddl = sites.ddl_context(marked_drops=True)
    (entry,) = sites.entries(f"ALTER TABLE t ADD {column}")
    sites.refused(
        entry,
        ddl,
        why="rows that clients of the target wrote since",
        hint="add such a column as NULL",
    )
    execute(sites.a, f"ALTER TABLE {sites.db}.t DROP c")
    kind = column.split()[1]
    (entry,) = sites.entries(f"ALTER TABLE t ADD c {kind} NULL")
    assert sites.apply(entry, ddl)
    value = "id" if kind == "INT" else "'2026-01-02'"
    for server in (sites.a, sites.b):
        execute(server, f"UPDATE {sites.db}.t SET c = {value}")
    (entry,) = sites.entries(f"ALTER TABLE t MODIFY {column}")
    assert sites.apply(entry, ddl)
    sites.assert_same()


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("ALTER TABLE t ADD c DATETIME DEFAULT NOW()", "get the time of this change"),
        ("ALTER TABLE t ADD c INT AUTO_INCREMENT UNIQUE", "it numbers rows"),
        ("ALTER TABLE t DROP n", "which lose it as well"),
        ("RENAME TABLE t TO kept", "it moves rows of a table"),
    ],
)
def test_rows_of_other_tables_in_the_same_one_stay_as_they_are(sites, statement, why):
    tables = [{"from": f"{sites.db}.{t}", "to": f"{sites.db}.t"} for t in ("t", "u")]
    file = one_way(sites.a, mysql(sites.b), [*tables, {"from": f"{sites.db}.kept"}])
    sites.router = Router(file.pipelines[0])
    before = sites.shape(sites.b), sites.rows(sites.b)
    (entry,) = sites.entries(statement)
    sites.refused(entry, sites.ddl_context(marked_drops=False), why=why)
    assert (sites.shape(sites.b), sites.rows(sites.b)) == before


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
def test_a_topic_does_not_tell_of_the_session(sites, statement):
    (entry,) = sites.entries(statement)
    with pytest.raises(FatalError, match=OF_A_SESSION[statement]):
        sites.apply(
            entry, sites.ddl_context(marked_drops=False, source=False), StatementSession(sites.db)
        )


def test_what_the_session_does_not_decide_passes_from_a_topic(sites):
    ddl = sites.ddl_context(marked_drops=False, source=False)
    for statement in (
        "ALTER TABLE t ADD c VARCHAR(9) NOT NULL DEFAULT 'it''s' COMMENT \"a\\\\b\", ADD KEY (c)",
        "ALTER TABLE t MODIFY n BIGINT NULL",
        "ALTER TABLE t ADD stamp TIMESTAMP(3) NULL DEFAULT NULL",
        "CREATE TABLE s (a INT AUTO_INCREMENT PRIMARY KEY, b TIMESTAMP NULL DEFAULT NULL)",
    ):
        (entry,) = sites.entries(statement)
        assert sites.apply(entry, ddl, StatementSession(sites.db))
    sites.assert_same()
    sites.assert_same("s")


PARTED = "(id INT NOT NULL PRIMARY KEY, v INT)"
TWO_PARTS = "PARTITION p0 VALUES LESS THAN ({}), PARTITION p1 VALUES LESS THAN (20)"
EXCHANGE = "ALTER TABLE parted EXCHANGE PARTITION p0 WITH TABLE plain"


@pytest.fixture
def parted(sites):
    """Two tables between which rows can move, with rows in both at both sites."""
    for server in (sites.a, sites.b):
        execute(
            server,
            f"CREATE TABLE {sites.db}.parted {PARTED}"
            f" PARTITION BY RANGE (id) ({TWO_PARTS.format(10)})",
            f"CREATE TABLE {sites.db}.plain {PARTED}",
            f"INSERT INTO {sites.db}.parted VALUES (1, 1), (2, 2), (15, 15)",
            f"INSERT INTO {sites.db}.plain VALUES (5, 5)",
        )
    return sites


def test_partitions_and_tables_exchange_their_rows(parted):
    parted.run(EXCHANGE)
    assert [row[0] for row in parted.rows(parted.b, "parted")] == [5, 15]
    parted.assert_same("parted")
    parted.assert_same("plain")


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("point", ["ddl.begun", "ddl.ran"])
def test_rows_are_exchanged_once_whenever_a_leader_dies(parted, monkeypatch, point, alike):
    """Nothing but the rows shows that it was done."""
    if alike:  # at both ends of their keys
        for server in (parted.a, parted.b):
            execute(server, f"REPLACE INTO {parted.db}.plain VALUES (1, 1), (2, 2)")
    (entry,) = parted.entries(EXCHANGE)
    with monkeypatch.context() as patch:

        def dies(reached):
            if reached == point:
                raise KeyboardInterrupt

        patch.setattr(steps_module.failpoints, "reached", dies)
        with pytest.raises(KeyboardInterrupt):
            parted.apply(entry)
    assert parted.apply(entry, number=parted.number)
    parted.assert_same("parted")
    parted.assert_same("plain")
    # A pipeline that has gone back to before it has put rows into the tables of now.
    parted.refused(
        entry,
        number=parted.number,
        generation=2,
        why="moved rows between tables already",
        hint="setl load --replace",
    )


def test_rows_are_not_exchanged_with_a_partition_of_other_rows(parted):
    execute(
        parted.b,
        f"ALTER TABLE {parted.db}.parted REORGANIZE PARTITION p0, p1 INTO ({TWO_PARTS.format(2)})",
    )
    (entry,) = parted.entries(EXCHANGE)
    with pytest.raises(FatalError, match="has other partitions than the source"):
        parted.apply(entry)
    with pytest.raises(FatalError, match="is not known"):
        parted.apply(entry, parted.ddl_context(marked_drops=False, source=False, mark=18))
    execute(
        parted.b,
        f"ALTER TABLE {parted.db}.parted REORGANIZE PARTITION p0, p1 INTO ({TWO_PARTS.format(10)})",
    )
    # What the source has given up since does not matter.
    execute(parted.a, f"ALTER TABLE {parted.db}.parted DROP PARTITION p0")
    assert parted.apply(entry, number=parted.number)
    assert parted.rows(parted.b, "plain") == parted.rows(parted.a, "plain")


@OF_MARIADB
def test_partitions_become_tables_and_tables_partitions(parted):
    parted.run("ALTER TABLE parted CONVERT PARTITION p0 TO TABLE made")
    parted.assert_same("made")
    parted.assert_same("parted")
    for server in (parted.a, parted.b):
        execute(server, f"UPDATE {parted.db}.plain SET id = 25")
    parted.run("ALTER TABLE parted CONVERT TABLE plain TO PARTITION p2 VALUES LESS THAN (30)")
    parted.assert_same("parted")
    assert not execute(parted.b, f"SHOW TABLES IN {parted.db} LIKE 'plain'")


@OF_MARIADB
def test_defaults_from_sequences_are_left_out(sites):
    """Rows come with their numbers. Rows that are there are not numbered in silence."""
    db = sites.db
    execute(sites.a, f"CREATE SEQUENCE {db}.s", f"CREATE SEQUENCE {db}.h")
    sites.run(
        "CREATE TABLE n (id INT PRIMARY KEY DEFAULT nextval(s), v INT DEFAULT NEXT VALUE FOR s)",
        "ALTER TABLE n ADD w INT NOT NULL DEFAULT (nextval(s) + 1) COMMENT 'w'",
        "SET sql_mode = 'ORACLE'",
        "ALTER TABLE n ADD o INT DEFAULT s.nextval",
        "SET sql_mode = ''",
        "ALTER TABLE t ALTER n SET DEFAULT nextval(s), MODIFY d DATETIME(6)",
        f"ALTER TABLE n ADD p INT DEFAULT lastval(`{db}`.h)",
    )
    shape = sites.shape(sites.b, "n")[0][1]
    assert "val(" not in shape
    assert "COMMENT 'w'" in shape
    execute(sites.a, f"INSERT INTO {db}.n () VALUES ()")
    number = sites.number
    for statement in ("ALTER TABLE n ADD q INT DEFAULT nextval(s)",):
        (entry,) = sites.entries(statement)
        execute(sites.b, f"INSERT INTO {db}.n VALUES (1, 2, 4, 4, 1)")
        with pytest.raises(FatalError, match="existing rows get values of NEXTVAL"):
            sites.apply(entry)
        execute(sites.b, f"DELETE FROM {db}.n")
        assert sites.apply(entry, number=number + 1)
    # Whoever has such a sequence at the target keeps the default.
    execute(sites.b, f"CREATE SEQUENCE {db}.h")
    sites.run(f"CREATE TABLE k (id INT PRIMARY KEY DEFAULT nextval(`{db}`.h))")
    sites.assert_same("k")


def test_a_session_whose_literals_are_not_ascii_for_each_table(sites):
    """The second statement at the target runs in the session that the first has set."""
    sites.run(
        "SET NAMES utf8mb4, character_set_connection = utf16, time_zone = '+02:00'",
        "CREATE TABLE u (id INT PRIMARY KEY, d VARCHAR(9) DEFAULT 'é')",
        "CREATE TABLE u2 LIKE u",
        "DROP TABLE u2, nokey",
        "ALTER TABLE u ADD e VARCHAR(9) DEFAULT 'é'",
    )
    sites.assert_same("u")
    assert execute(sites.b, f"SHOW TABLES FROM {sites.db} WHERE 1") == (("t",), ("u",))


def test_a_file_does_not_travel(sites):
    execute(sites.a, f"CREATE TABLE {sites.db}.f (a INT PRIMARY KEY)")
    execute(sites.b, f"CREATE TABLE {sites.db}.f (a INT PRIMARY KEY)")
    (entry,) = sites.entries("ALTER TABLE f DISCARD TABLESPACE")
    sites.refused(entry, why="file", hint="setl load --replace")


def test_a_schema_with_mapped_tables_is_not_dropped_in_silence(sites):
    (entry,) = sites.entries("CREATE TABLE t2 (a INT)")
    with pytest.raises(FatalError, match="mapped") as raised:
        sites.apply(entry._replace(statement=f"DROP DATABASE `{sites.db}`"))
    assert f"position {entry.position}" in str(raised.value)
    assert sites.apply(entry._replace(statement="DROP DATABASE elsewhere")) == ()
    # As the error says.
    assert "Drop their tables at the target by hand, and `setl start`" in raised.value.hint
    execute(sites.b, f"DROP TABLE {sites.db}.t, {sites.db}.nokey")
    (said,) = sites.apply(entry._replace(statement=f"DROP DATABASE `{sites.db}`"))
    assert said.startswith("nothing to drop")


def test_several_tables_of_which_one_was_not_there(sites, mariadb):
    for server in (sites.a, sites.b):
        execute(
            server, f"CREATE TABLE {sites.db}.x1 (a INT)", f"CREATE TABLE {sites.db}.x2 (a INT)"
        )
    if mariadb:
        with pytest.raises(Exception, match="Unknown table"):
            execute(sites.a, f"DROP TABLE {sites.db}.x1, {sites.db}.nosuch")
    (entry,) = sites.entries("DROP TABLE x2" if mariadb else "DROP TABLE x1, x2")
    text = "DROP TABLE `x1`,`nosuch`,`x2` /* generated by server */"
    assert sites.apply(entry._replace(statement=text))
    assert execute(sites.b, f"SHOW TABLES FROM {sites.db} LIKE 'x_'") == ()


class Opposite:
    """What the pipeline from the target back to the source would replicate."""

    def __init__(self, sites):
        self.sites = sites
        with sites.b.connect() as connection:
            self.start = end_of(connection)

    def passed_on(self):
        with self.sites.b.connect() as connection:
            entries = entries_between(self.sites.b, self.start, end_of(connection))
        extractor = Extractor(self.sites.router, MarkIdentity(17), BinlogRowCodec())
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
    "swapped": [
        (
            "CREATE TABLE _t_gho (id INT PRIMARY KEY, at TIMESTAMP(6) NULL, d DATETIME(6),"
            " n INT NULL, CONSTRAINT _few CHECK (n < 99))"
        ),
        "ALTER TABLE _t_gho ADD c INT",
        "RENAME TABLE t TO _t_del, _t_gho TO t",
        "DROP TABLE _t_del",
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


@pytest.mark.parametrize("which", ["all kinds", "swapped", REPLACED])
def test_nothing_comes_back(sites, which):
    opposite, ddl = (
        Opposite(sites),
        sites.ddl_context(marked_drops=True, accept=["replaced-table@*"]),
    )
    for statement in ECHOES[which]:
        for entry in sites.entries(statement):
            assert sites.apply(entry, ddl) or "_t_del" in statement
    assert opposite.passed_on() == []
    tables = f"SHOW TABLES FROM {sites.db}"
    assert execute(sites.a, tables) == execute(sites.b, tables)


@pytest.mark.family("mariadb", why="MySQL has no OR REPLACE")
def test_a_table_that_cannot_be_replaced_is_not_dropped_at_the_other_site(sites):
    execute(sites.a, f"CREATE TABLE {sites.db}.parent (id INT PRIMARY KEY)")  # the target lacks it
    opposite, ddl = Opposite(sites), sites.ddl_context(marked_drops=True)
    statement = (
        "CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, p INT,"
        f" FOREIGN KEY (p) REFERENCES {sites.db}.parent (id))"
    )
    (entry,) = sites.entries(statement)
    execute(sites.b, f"DELETE FROM {sites.db}.t")
    with pytest.raises(FatalError, match="refuses"):
        sites.apply(entry, ddl)
    assert opposite.passed_on() == []


FAILING = [
    "CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, p INT REFERENCES nosuch (id))",
    "CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, k INT) PARTITION BY KEY (k) PARTITIONS 3",
    "CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, k INT DEFAULT nosuch)",
    "CREATE OR REPLACE TABLE t (id INT PRIMARY KEY) SELECT 1 AS id UNION ALL SELECT 1",
]


@pytest.mark.family("mariadb", why="MySQL logs no statement that failed")
@pytest.mark.parametrize("both_ways", [False, True])
def test_a_table_is_gone_that_could_not_be_replaced_at_the_source(sites, both_ways):
    ddl = sites.ddl_context(marked_drops=both_ways, accept=["replaced-table@*"])
    opposite = Opposite(sites)
    for number, statement in enumerate(FAILING):
        before = sites.entries("CREATE TABLE t (id INT PRIMARY KEY)") if number else []
        with sites.a.connect(database=sites.db) as connection, connection.cursor() as cursor:
            start = end_of(connection)
            with pytest.raises(pymysql.MySQLError):
                cursor.execute(statement)
            found = entries_between(sites.a, start, end_of(connection))
        for entry in [*before, *(e for e in found if e.kind is EntryKind.DDL)]:
            assert sites.apply(entry, ddl)
        assert execute(sites.b, f"SHOW TABLES FROM {sites.db}") == (("nokey",),)
    assert not both_ways or opposite.passed_on() == []


@pytest.mark.family("mariadb", why="MySQL logs no statement that failed")
def test_a_table_that_somebody_ended_the_replacing_of_is_not_dropped(sites):
    (entry,) = sites.entries("CREATE TABLE other (id INT PRIMARY KEY)")
    text = f"CREATE OR REPLACE TABLE {sites.db}.t (id INT PRIMARY KEY)"
    ended = entry.session._replace(error=1317)
    sites.refused(
        entry._replace(statement=text),
        session=ended,
        why="half-way",
        hint="Compare the table with the source's",
    )
    assert sites.rows(sites.b)


def test_a_mark_that_got_lost_is_seen(sites):
    opposite = Opposite(sites)
    with sites.b.connect(database="retl") as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {sites.db}.nokey")
    with pytest.raises(FatalError, match="its mark is missing"):
        opposite.passed_on()


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE c (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES t (id) ON DELETE CASCADE)",
        "ALTER TABLE other ADD p INT, ADD FOREIGN KEY (p) REFERENCES t (id) ON DELETE SET NULL",
    ],
)
def test_foreign_keys_whose_actions_are_not_carried_out_are_refused(sites, statement, asked):
    """Where the source cannot be asked; else setl carries them out, or the source logs them."""
    for server in (sites.a, sites.b):
        execute(server, f"CREATE TABLE {sites.db}.other (id INT PRIMARY KEY)")
    (entry,) = sites.entries(statement)
    ddl = sites.ddl_context(marked_drops=False, source=asked)
    if asked:
        assert sites.apply(entry, ddl)
        sites.assert_same(entry.table)
        return
    sites.refused(entry, ddl, why=r"ON DELETE (CASCADE|SET NULL) are not in")


def test_foreign_keys_of_columns_are_not_the_same_to_all_servers(sites, mariadb):
    (entry,) = sites.entries(
        "CREATE TABLE c (id INT PRIMARY KEY REFERENCES t (id) ON DELETE CASCADE)"
    )
    ddl = sites.ddl_context(marked_drops=False)
    for source in (True, False):
        session = entry.session._replace(mariadb=source)
        if source and mariadb:
            assert sites.apply(entry, ddl, session=session)
        elif mariadb:
            with pytest.raises(FatalError, match="a part of a column's definition"):
                sites.apply(entry, ddl, session=session)


def test_foreign_keys_whose_actions_are_accepted_are_replicated(sites):
    """Not those of other tables."""
    (entry,) = sites.entries(
        "CREATE TABLE c (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES t (id) ON DELETE CASCADE)"
    )
    pattern = f"foreign-key-action@{sites.db}."
    other = sites.ddl_context(marked_drops=False, source=False, mark=18, accept=[f"{pattern}other"])
    with pytest.raises(FatalError, match="are not in the source's binlog"):
        sites.apply(entry, other)
    assert sites.apply(
        entry, sites.ddl_context(marked_drops=False, source=False, accept=[f"{pattern}*"])
    )
    sites.assert_same(entry.table)


def test_foreign_keys_do_not_follow_a_table_that_is_dropped(sites):
    child = f"CREATE TABLE {sites.db}.child (id INT PRIMARY KEY, FOREIGN KEY (id)"
    for server in (sites.a, sites.b):
        execute(server, f"{child} REFERENCES {sites.db}.t (id))")
    (entry,) = sites.entries("SET foreign_key_checks = 0", "DROP TABLE t")
    with pytest.raises(FatalError, match=r"foreign keys of .*child refer") as caught:
        sites.apply(entry, sites.ddl_context(marked_drops=True))
    assert "REFERENCES" in sites.shape(sites.b, "child")[0][1]
    assert "sql_log_bin" in caught.value.hint


COPIED = {
    "ADD c INT DEFAULT 7": "",
    "MODIFY d DATE NULL": "",
    "MODIFY d VARCHAR(40)": "",
    "MODIFY n BIGINT NULL": "",
    "MODIFY at TIMESTAMP(3) NULL": "converted at",
    "MODIFY d BIGINT": "converted d",
    "ADD c DATETIME DEFAULT CURRENT_TIMESTAMP": "nothing tells how",
    "ADD c INT AUTO_INCREMENT UNIQUE": "nothing tells how",
    "MODIFY d TIMESTAMP(6) NULL": "converted d",
    "CHANGE d d TIMESTAMP NULL": "converted d",
    "MODIFY at DATETIME(6)": "converted at",
    "MODIFY at DATE": "converted at",
    "MODIFY at VARCHAR(40)": "converted at",
    "ADD c DATETIME(6) DEFAULT (at)": "computed c",
    "ADD c TIMESTAMP NULL DEFAULT (d)": "computed c",
}


@pytest.mark.parametrize("change", COPIED)
def test_rows_that_an_online_schema_change_filled_while_it_copied_them(sites, change):
    """The server logs no time zone for the ALTER of an empty table, and none for rows."""
    *noted, swap = sites.entries(
        "SET time_zone = '+08:00'",
        "CREATE TABLE _t_gho LIKE t",
        f"ALTER TABLE _t_gho {change}",
        "INSERT INTO _t_gho (id, at, d, n) SELECT id, at, d, n FROM t",
        "RENAME TABLE t TO _t_del, _t_gho TO t",
    )
    for entry in noted:
        sites.apply(entry)
    before = sites.rows(sites.b)
    if not COPIED[change]:
        sites.apply(swap)
        sites.assert_same()
        return
    with pytest.raises(FatalError, match=COPIED[change]) as caught:
        sites.apply(swap)
    assert sites.rows(sites.b) == before
    assert "state = 'done'" in caught.value.hint
    assert "setl load --replace" in caught.value.hint
    # Without rows, or where all of them are to be read, nothing is open.
    assert sites.apply(swap, unread=lambda _: True)


@pytest.mark.parametrize(
    ("expression", "open_"),
    [
        ("DATE(at)", True),
        ("TO_DAYS(hour)", True),
        ("d RLIKE '^2'", True),
        ("HOUR(hour)", False),
        ("DATE(d)", False),
    ],
)
def test_stored_columns_that_copying_computes_again(sites, expression, open_):
    columns = "id INT PRIMARY KEY, at TIMESTAMP NULL, d DATETIME, hour TIME"
    for server in (sites.a, sites.b):
        execute(
            server,
            f"USE {sites.db}",
            "DROP TABLE t",
            f"CREATE TABLE t ({columns}, v BIGINT AS ({expression}) STORED)",
            "SET time_zone = '+08:00'",
            "INSERT INTO t (id, at, d, hour) VALUES (1, '2024-01-02 03:00', '2024-01-02', '3:00')",
        )
    *noted, swap = sites.entries(
        "SET time_zone = '+00:00'",
        "CREATE TABLE _t_gho LIKE t",
        "ALTER TABLE _t_gho ADD c INT",
        "INSERT INTO _t_gho (id, at, d, hour) SELECT id, at, d, hour FROM t",
        "RENAME TABLE t TO _t_del, _t_gho TO t",
    )
    for entry in noted:
        sites.apply(entry)
    if not open_:
        sites.apply(swap)
        sites.assert_same()
        return
    sites.refused(swap, why="computed v when it copied the rows", hint="setl load --replace")
    assert sites.apply(swap, unread=lambda _: True)


@pytest.mark.parametrize(
    "change",
    ["MODIFY d TIMESTAMP(6) NULL, MODIFY at DATETIME(6)", "ADD c DATETIME(6) DEFAULT (at)"],
)
def test_times_that_are_said_to_be_copied_under_utc(sites, change):
    *noted, swap = sites.entries(
        "SET time_zone = '+00:00'",
        "CREATE TABLE _t_gho LIKE t",
        f"ALTER TABLE _t_gho {change}",
        "INSERT INTO _t_gho (id, at, d, n) SELECT id, at, d, n FROM t",
        "RENAME TABLE t TO _t_del, _t_gho TO t",
    )
    for entry in noted:
        sites.apply(entry)
    sites.refused(swap, why="time zone", hint="copied-in-utc@schema.table")
    accept = [f"copied-in-utc@{sites.db}.t"]
    sites.apply(swap, sites.ddl_context(marked_drops=False, accept=accept), number=sites.number)
    sites.assert_same()
