"""Target tables that setl creates: they are as the source's, and a load makes them equal."""

import re
import time

import pymysql
import pytest
from pymysql.constants import ER

from arbiter.values import PipelineId
from setl.bulk.verify_target import VerifySettings
from setl.channel.reading import parse_channel
from setl.codec.sql.created_table import definitions_of
from setl.errors import ConfigurationError, TargetReplacedError
from setl.model.load_request import LoadRequest
from setl.operate.verify import verify_pipeline
from setl.run.measured.figures import RunState
from setl.run.table_loads.requests import StoredLoadRequests
from tests.checking import check_channel
from tests.held_points import held
from tests.integration.pipelines import binlog_end, execute, fresh_name, mysql, rows, two_way
from tests.integration.table_loads.test_table_load import loading, wait_until_loaded
from tests.integration.type_catalogue import KEYS
from tests.integration.types.test_types_mysql import (
    LENIENT,
    Writer,
    columns,
    fill_types,
    known,
    on_all,
    quoted,
    same,
)
from tests.mysql_servers import logs_no_generated
from tests.waiting import eventually

COLUMNS = 12
UNSURE = re.compile("[\U00010000-\U0010ffff?]")  # what servers cannot show in labels


@pytest.fixture
def source_db(servers):
    """A database that only the source has; its name."""
    name = fresh_name("created")
    execute(servers[0], f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    yield name
    for server in servers:
        execute(server, f"DROP DATABASE IF EXISTS {name}")


def one_family(servers):
    return type(servers[0]) is type(servers[1])


def creating(source, target, tables, **options):
    return loading(source, mysql(target), tables, **{"create": True, **options})


def passing_from(a, b, schema, start):
    """A channel that creates a database's tables, and reads from a position before they were so."""
    pipeline = {
        "name": "p",
        "source": {**mysql(a), "start": start, "heartbeat": 0},
        "target": mysql(b),
        "tables": [{"from": f"{schema}.*"}],
        "ddl": "pass",
        "create": True,
    }
    return parse_channel({"channel": fresh_name("passed"), "pipelines": [pipeline]})


def errors_of(file):
    return [(f.where, f.what) for f in check_channel(file) if f.level == "error"]


def text_of(server, table):
    text = execute(server, f"SHOW CREATE TABLE {table}")[0][1]
    found = list(definitions_of(text))
    stored = [d.text for d in found if not d.is_foreign_key]
    # Keys that come after the rows stand behind those that came before.
    keys = sorted(k for k in stored if not k.startswith("`"))
    rest = " ".join(w for w in text[found[-1].end :].split() if "AUTO_INCREMENT=" not in w)
    return [k for k in stored if k.startswith("`")], keys, rest


def keys_of(server, schema, table):
    return execute(
        server,
        "SELECT INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME, SUB_PART, NON_UNIQUE FROM"
        f" information_schema.STATISTICS WHERE TABLE_SCHEMA = '{schema}' AND"
        f" TABLE_NAME = '{table}' ORDER BY 1, 2",
    )


def test_every_type_and_key(servers, source_db, position):
    a, b = servers
    found = [
        (name, (definition, values))
        for name, (definition, values) in on_all(servers, columns).items()
        if not (definition.startswith(("ENUM", "SET")) and UNSURE.search(definition))
    ]
    keys = on_all(servers, lambda connection: known(KEYS, connection))
    writer = Writer(a)
    tables = {}
    for first in range(0, len(found), COLUMNS):
        some = found[first : first + COLUMNS]
        table = quoted(source_db, f"from_{some[0][0]}")
        text = ", ".join(f"`{name}` {definition}" for name, (definition, _) in some)
        execute(a, LENIENT, f"CREATE TABLE {table} (id INT PRIMARY KEY, {text})")
        tables[table] = {name: values for name, (_, values) in some}
    fill_types(tables, writer)
    for name, (definition, values) in keys.items():
        table = quoted(source_db, f"key_{name}")
        execute(a, LENIENT, f"CREATE TABLE {table} (k {definition} PRIMARY KEY, v INT)")
        for i, value in enumerate(values):
            writer.change(f"INSERT INTO {table} VALUES ({value}, {i})")
    writer.connection.close()
    file = creating(a, b, [{"from": f"{source_db}.*"}])
    assert errors_of(file) == []
    running = position.lead(file)
    wait_until_loaded(running, 180)
    for table in (*tables, *(quoted(source_db, f"key_{name}") for name in keys)):
        same(servers, table)
        if one_family(servers):
            assert text_of(b, table) == text_of(a, table)
    assert errors_of(file) == []


SHAPES = """CREATE TABLE {db}.shapes (
    id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
    `odd ``name` VARCHAR(30) NOT NULL DEFAULT 'it''s, (x)' COMMENT 'a \\\\ comment, it''s',
    price DECIMAL(12,4) NOT NULL DEFAULT 1.5000,
    twice DECIMAL(14,4) GENERATED ALWAYS AS (price * 2) STORED,
    shown VARCHAR(60) GENERATED ALWAYS AS (concat('<', price, '>')) VIRTUAL,
    loud VARCHAR(60) GENERATED ALWAYS AS (upper(`odd ``name`)) STORED,
    made TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
    zero DATETIME NOT NULL DEFAULT '0000-00-00 00:00:00',
    flag BIT(3) NOT NULL DEFAULT b'101',
    hidden INT INVISIBLE DEFAULT 3,
    parent BIGINT UNSIGNED NULL,
    label ENUM('b','a','it''s') NOT NULL DEFAULT 'a',
    note TEXT,
    plain VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_german1_ci DEFAULT NULL,
    uid VARCHAR(40) NOT NULL DEFAULT (uuid()),
    PRIMARY KEY (id), UNIQUE KEY price_and_name (price, `odd ``name`),
    KEY by_label (label, made DESC), KEY by_note (note(20)), FULLTEXT KEY words (note),
    CONSTRAINT self FOREIGN KEY (parent) REFERENCES {db}.shapes (id),
    CONSTRAINT positive CHECK (price >= 0)
) COMMENT='all, (kinds)' DEFAULT CHARSET=utf8mb4"""
PARTED = """CREATE TABLE {db}.parted (
    id INT NOT NULL, at DATE NOT NULL, v INT, PRIMARY KEY (id, at), KEY by_v (v))
    PARTITION BY RANGE (YEAR(at)) (PARTITION p1 VALUES LESS THAN (2020),
    PARTITION y2 VALUES LESS THAN MAXVALUE)"""
# MySQL shows ? for some of these characters, and MariaDB keeps others wrong if it is given them as
# MySQL shows them.
SPELT = """CREATE TABLE {db}.spelt (
    id INT PRIMARY KEY, a VARCHAR(40) GENERATED ALWAYS AS (concat('🦊', id)) STORED,
    b VARCHAR(40) GENERATED ALWAYS AS (concat('é', id)) VIRTUAL,
    c VARCHAR(40) GENERATED ALWAYS AS (concat('\\\\b\\'', id)) STORED,
    raw VARBINARY(9) DEFAULT X'00FF5C270A') CHARACTER SET utf8mb4"""


def test_every_shape(servers, source_db, position, spark):
    a, b = servers
    execute(a, LENIENT, SHAPES.format(db=source_db), PARTED.format(db=source_db))
    execute(a, f"CREATE TABLE {source_db}.memory (id INT PRIMARY KEY, v INT) ENGINE=MyISAM")
    execute(a, SPELT.format(db=source_db), f"INSERT INTO {source_db}.spelt (id) VALUES (1)")
    for i in range(50):
        execute(
            a,
            LENIENT,
            f"INSERT INTO {source_db}.shapes (`odd ``name`, price, note, parent, plain) VALUES"
            f" ('ä{i}', {i}.25, 'note {i}', {i or 'NULL'}, 'ß')",
            f"INSERT INTO {source_db}.parted VALUES ({i}, '{2000 + i}-01-01', {i})",
            f"INSERT INTO {source_db}.memory VALUES ({i}, {i})",
        )
    file = creating(a, b, [{"from": f"{source_db}.*"}])
    found = {f.where.rpartition(", ")[2]: f for f in check_channel(file) if f.statements}
    assert "no foreign keys" in found[f"{source_db}.shapes"].what
    assert "InnoDB" in found[f"{source_db}.memory"].what
    wait_until_loaded(position.lead(file))
    for table in ("shapes", "parted", "memory", "spelt"):
        assert rows(a, f"{source_db}.{table}") == rows(b, f"{source_db}.{table}"), table
        assert keys_of(a, source_db, table) == keys_of(b, source_db, table)
    assert errors_of(file) == []
    verdicts = verify_pipeline(spark, file.pipelines[0], settings=VerifySettings(rechecks=0))
    assert [verdict.equal for verdict in verdicts] == [True] * 4
    count = "SELECT COUNT(*) FROM information_schema.PARTITIONS WHERE PARTITION_NAME IS NOT NULL"
    assert execute(b, f"{count} AND TABLE_SCHEMA = '{source_db}'") == ((2,),)
    if one_family(servers):
        columns, _, rest = text_of(a, f"{source_db}.shapes")
        assert text_of(b, f"{source_db}.shapes")[0] == columns
        assert text_of(b, f"{source_db}.shapes")[2] == rest
        assert text_of(b, f"{source_db}.parted") == text_of(a, f"{source_db}.parted")
    assert "FOREIGN" not in execute(b, f"SHOW CREATE TABLE {source_db}.shapes")[0][1]
    execute(b, f"INSERT INTO {source_db}.spelt (id) VALUES (2)")
    raw = execute(b, f"SELECT raw FROM {source_db}.spelt")
    assert raw == ((b"\0\xff\\'\n",), (b"\0\xff\\'\n",))
    execute(b, LENIENT, f"INSERT INTO {source_db}.shapes (`odd ``name`) VALUES ('own')")
    own = f"SELECT id, twice, shown, hidden, flag + 0, zero, label FROM {source_db}.shapes"
    (made,) = execute(b, f"{own} WHERE `odd ``name` = 'own'")
    assert [str(value) for value in made[1:]] == [
        "3.0000",
        "<1.5000>",
        "3",
        "5",
        str(execute(a, f"SELECT zero FROM {source_db}.shapes LIMIT 1")[0][0]),
        "a",
    ]


def test_a_mapping_shapes_the_table(servers, source_db, position):
    a, b = servers
    execute(
        a,
        f"CREATE TABLE {source_db}.people (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40),"
        " secret BLOB, born DATE, price DECIMAL(10,2), qty INT, next INT AS (qty + 1) STORED,"
        " off INT AS (LENGTH(secret)) VIRTUAL, UNIQUE KEY u (name, born), KEY s (secret(9), name),"
        " KEY n (name), CHECK (qty > 0), CHECK (LENGTH(secret) < 100))",
        f"CREATE TABLE {source_db}.keyless (a INT NOT NULL, b VARCHAR(9) NOT NULL, c TEXT)",
        f"INSERT INTO {source_db}.people (name, secret, born, price, qty) VALUES"
        " ('ann', 'x', '2000-02-03', 1.5, 2), ('bob', 'y', NULL, 2.5, 4)",
        f"INSERT INTO {source_db}.keyless VALUES (1, 'x', 'one'), (2, 'y', 'two')",
    )
    mapped = {
        "from": f"{source_db}.people",
        "to": f"{source_db}_x.persons",
        "exclude": ["secret"],
        "columns": {
            "who": "name",
            "birth": "born",
            "total": "price * qty",
            "loud": "upper(name)",
            "many": "qty > 3",
            "day": "to_date(born)",
            "half": "qty / 2.0D",
        },
        "where": "qty > 1",
    }
    with a.connect() as connection:
        if logs_no_generated(connection):
            found = check_channel(creating(a, b, [mapped]))
            assert [f.location for f in found if f.code == "generated-columns"]
            mapped["read"] = "source"  # which is what this finding asks for
    keyless = {"from": f"{source_db}.keyless", "key": ["b", "a"]}
    left = {"from": f"{source_db}.keyless", "to": f"{source_db}.left_alone", "create": False}
    try:
        file = creating(a, b, [mapped, keyless])
        assert errors_of(file) == []
        refused = errors_of(creating(a, b, [mapped, {**keyless, **left}]))
        assert [what for _, what in refused] == [
            "the target table does not exist, or the account may not see it"
        ]
        wait_until_loaded(position.lead(file))
        table = f"{source_db}_x.persons"
        execute(
            a,
            f"INSERT INTO {source_db}.people (name, secret, qty) VALUES ('cat', 'long', 9)",
            f"UPDATE {source_db}.people SET secret = 'longer' WHERE id = 1",
        )
        came = f"SELECT off FROM {table} ORDER BY id"
        eventually(lambda: execute(b, came) == ((6,), (1,), (4,)), 60)
        assert execute(
            b, f"SELECT id, who, birth, total + 0e0, loud, many, half, next FROM {table} ORDER BY 1"
        )[1] == (2, "bob", None, 10.0, "BOB", 1, 2.0, 5)
        names = [row[0] for row in execute(b, f"SHOW COLUMNS FROM {table}")]
        assert " ".join(names) == "id who birth price qty next off total loud many day half"
        text = execute(b, f"SHOW CREATE TABLE {table}")[0][1]
        assert "UNIQUE KEY `u` (`who`,`birth`)" in text
        assert "KEY `n` (`who`)" in text
        assert "KEY `s`" not in text
        assert "secret" not in text
        keys = keys_of(b, source_db, "keyless")
        assert [(k[0], k[2]) for k in keys] == [("PRIMARY", "b"), ("PRIMARY", "a")]
        assert rows(b, f"{source_db}.keyless") == rows(a, f"{source_db}.keyless")
        assert errors_of(file) == []
    finally:
        execute(b, f"DROP DATABASE IF EXISTS {source_db}_x")


def test_tables_that_come_together(servers, source_db, position):
    a, b = servers
    for number, width in ((1, 20), (2, 9), (3, 99)):
        execute(
            a,
            f"CREATE TABLE {source_db}.o_{number} (id INT PRIMARY KEY, v VARCHAR({width}),"
            f" CONSTRAINT c_{number} CHECK (id > 0))",
            f"INSERT INTO {source_db}.o_{number} VALUES ({number}, 'x{number}')",
        )
    tables = [{"from": f"{source_db}.o_[1-2]", "to": f"{source_db}.all_of_them"}]
    wider = [{"from": f"{source_db}.o_[1-3]", "to": f"{source_db}.all_of_them"}]
    (problem,) = errors_of(creating(a, b, wider))
    assert problem[1] == "the column v is varchar(20), too small for the source's varchar(99)"
    file = creating(a, b, tables)
    assert errors_of(file) == []
    wait_until_loaded(position.lead(file))
    assert rows(b, f"{source_db}.all_of_them") == ((1, "x1"), (2, "x2"))


INDEXED = (
    "CREATE TABLE {db}.{t} (id INT PRIMARY KEY, a INT, b VARCHAR(20), UNIQUE KEY u (b),"
    " KEY by_a (a), KEY by_ba (b, a))"
)


@pytest.mark.not_mixed(why="the statements are the same ones")
@pytest.mark.parametrize("point", ["create.begun", "create.made", "create.keys"])
def test_a_leader_that_dies_between_two_steps(servers, source_db, position, point):
    a, b = servers
    for t in ("one", "two"):
        execute(a, INDEXED.format(db=source_db, t=t))
        execute(a, *(f"INSERT INTO {source_db}.{t} VALUES ({i}, {i}, 'n{i}')" for i in range(20)))
    file = creating(a, b, [{"from": f"{source_db}.*"}])
    with held(point) as there:
        first = position.lead(file)
        assert there.wait(60)
        second = position.lead(file, nid="n2")
        wait_until_loaded(second)
    assert first.ends() is not None
    for t in ("one", "two"):
        assert rows(b, f"{source_db}.{t}") == rows(a, f"{source_db}.{t}")
        assert keys_of(b, source_db, t) == keys_of(a, source_db, t)
    stored = f"SELECT state FROM retl.setl_ddl WHERE pipeline = '{file.channel}/p' ORDER BY id"
    assert execute(b, stored) == (("there",), ("there",))


@pytest.mark.not_mixed(why="the statements are the same ones")
def test_keys_come_after_the_rows(servers, source_db, position):
    a, b = servers
    execute(a, INDEXED.format(db=source_db, t="one"))
    execute(a, f"INSERT INTO {source_db}.one VALUES (1, 1, 'x')")
    file = creating(a, b, [{"from": f"{source_db}.*"}])
    with held("tables.after_job") as there:
        running = position.lead(file)
        assert there.wait(60)
        assert {k[0] for k in keys_of(b, source_db, "one")} == {"PRIMARY", "u"}
    wait_until_loaded(running)
    assert keys_of(b, source_db, "one") == keys_of(a, source_db, "one")
    # What somebody drops later stays dropped.
    execute(b, f"ALTER TABLE {source_db}.one DROP KEY by_a")
    running.stop()
    position.lead(file)
    execute(a, f"INSERT INTO {source_db}.one VALUES (2, 2, 'y')")
    eventually(lambda: len(rows(b, f"{source_db}.one")) == 2, 60)
    assert "by_a" not in {k[0] for k in keys_of(b, source_db, "one")}


@pytest.mark.not_mixed(why="who makes them is the same")
def test_what_is_there_is_left_alone(servers, source_db, position):
    a, b = servers
    execute(a, INDEXED.format(db=source_db, t="one"))
    execute(b, f"CREATE DATABASE {source_db}")
    execute(b, f"CREATE TABLE {source_db}.one (id INT PRIMARY KEY, a INT, b VARCHAR(20), own INT)")
    before = execute(b, f"SHOW CREATE TABLE {source_db}.one")
    execute(a, f"INSERT INTO {source_db}.one VALUES (1, 1, 'x')")
    wait_until_loaded(position.lead(creating(a, b, [{"from": f"{source_db}.*"}])))
    assert execute(b, f"SHOW CREATE TABLE {source_db}.one") == before
    assert rows(b, f"{source_db}.one") == ((1, 1, "x", None),)


@pytest.mark.not_mixed(why="who makes them is the same")
def test_a_table_that_is_gone_is_not_made_again_without_its_rows(servers, source_db, position):
    a, b = servers
    execute(a, INDEXED.format(db=source_db, t="one"), INDEXED.format(db=source_db, t="two"))
    execute(a, *(f"INSERT INTO {source_db}.one VALUES ({i}, {i}, 'n{i}')" for i in range(3)))
    file = creating(a, b, [{"from": f"{source_db}.*"}])
    running = position.lead(file)
    wait_until_loaded(running)
    running.stop()
    execute(b, f"DROP TABLE {source_db}.one")
    execute(a, f"INSERT INTO {source_db}.one VALUES (7, 7, 'x')")
    for _ in range(2):
        error = position.lead(file).ends()
        assert isinstance(error, TargetReplacedError), error
        assert f"{source_db}.one." in str(error)
        assert not execute(b, f"SHOW TABLES FROM {source_db} LIKE 'one'")
    # The hint that the error names.
    ident = PipelineId(file.channel, "p")
    StoredLoadRequests(position.arbiter, ident).add(LoadRequest(sent=time.time()))
    running = position.lead(file)
    eventually(lambda: filled(b, source_db, "one") == rows(a, f"{source_db}.one"), 60)
    assert running.error is None


@pytest.mark.not_mixed(why="the statements are the same ones")
@pytest.mark.parametrize("point", ["ddl.begun", "ddl.ran", "ddl.done"])
def test_a_table_that_the_stream_drops_is_made_again(servers, source_db, position, point):
    a, b = servers
    execute(a, INDEXED.format(db=source_db, t="one"))
    execute(a, f"INSERT INTO {source_db}.one VALUES (1, 1, 'x')")
    file = creating(a, b, [{"from": f"{source_db}.*"}], ddl="pass")
    running = position.lead(file)
    wait_until_loaded(running)
    running.stop()
    execute(
        a,
        f"DROP TABLE {source_db}.one",
        f"CREATE TABLE {source_db}.one (id INT PRIMARY KEY, again INT)",
        f"INSERT INTO {source_db}.one VALUES (4, 4)",
    )
    with held(point) as there:
        first = position.lead(file)
        assert there.wait(60)
        second = position.lead(file, nid="n2")
        eventually(lambda: filled(b, source_db, "one") == ((4, 4),), 60)
    assert first.ends() is not None
    assert second.error is None


def filled(server, schema, table):
    """Its rows; none while it is not there, which may begin or end at any time."""
    try:
        return rows(server, f"{schema}.{table}")
    except pymysql.ProgrammingError as error:
        if error.args[0] != ER.NO_SUCH_TABLE:
            raise
        return ()


@pytest.mark.not_mixed(why="who makes them is the same")
def test_a_table_that_comes_later_and_both_ways(servers, source_db, position):
    a, b = servers
    execute(b, f"CREATE DATABASE {source_db} CHARACTER SET utf8mb4")
    file = two_way(a, b, [{"from": f"{source_db}.*"}], create=True)
    there, back = position.lead(file, "ab"), position.lead(file, "ba")
    eventually(lambda: {there.figures.state, back.figures.state} == {RunState.RUNNING}, 60)
    for here, table in ((a, "of_a"), (b, "of_b")):
        execute(
            here,
            INDEXED.format(db=source_db, t=table),
            f"INSERT INTO {source_db}.{table} VALUES (1, 2, 'x')",
        )
    for table in ("of_a", "of_b"):
        eventually(lambda table=table: all(filled(s, source_db, table) for s in servers), 60)
        assert rows(a, f"{source_db}.{table}") == rows(b, f"{source_db}.{table}")
        assert keys_of(a, source_db, table) == keys_of(b, source_db, table)
    assert there.thread.is_alive(), there.error
    assert back.thread.is_alive(), back.error


def test_labels_that_the_server_does_not_show_are_refused(servers, source_db, position):
    a, b = servers
    execute(a, f"CREATE TABLE {source_db}.t (id INT PRIMARY KEY, e ENUM('🦊','b'))")
    file = creating(a, b, [{"from": f"{source_db}.t"}])
    assert "a label of the column e holds a question mark" in str(errors_of(file))
    error = position.lead(file).ends()
    assert isinstance(error, ConfigurationError)
    assert "exclude" in error.hint


def test_rows_that_a_foreign_key_changes_unseen_are_refused_unless_accepted(
    servers, source_db, position
):
    a, b = servers
    execute(
        a,
        f"CREATE TABLE {source_db}.p (id INT PRIMARY KEY)",
        f"CREATE TABLE {source_db}.c (id INT PRIMARY KEY, CONSTRAINT own FOREIGN KEY (id)"
        f" REFERENCES {source_db}.p (id) ON DELETE CASCADE)",
    )
    tables = [{"from": f"{source_db}.c"}]
    if not execute(a, "SHOW VARIABLES LIKE 'innodb_native_foreign_keys'"):  # MySQL 9.7 logs them
        error = position.lead(creating(a, b, tables)).ends()
        assert isinstance(error, ConfigurationError)
        assert "own has ON DELETE CASCADE" in error.message
        assert f"foreign-key-action@{source_db}.c under `accept`" in error.hint
    accept = [f"foreign-key-action@{source_db}.c"]
    wait_until_loaded(position.lead(creating(a, b, tables, accept=accept)))
    assert execute(b, f"SELECT * FROM {source_db}.c") == ()


@pytest.mark.not_mixed(why="statements that pass between the families have tests of their own")
def test_schema_changes_that_the_table_has_already(servers, source_db, position):
    a, b = servers
    start = binlog_end(a)
    execute(
        a,
        INDEXED.format(db=source_db, t="one"),
        f"INSERT INTO {source_db}.one VALUES (1, 1, 'x')",
        f"ALTER TABLE {source_db}.one ADD COLUMN more INT DEFAULT 7",
        f"CREATE INDEX by_more ON {source_db}.one (more)",
        f"INSERT INTO {source_db}.one VALUES (2, 2, 'y', 8)",
    )
    running = position.lead(passing_from(a, b, source_db, start))
    running.applied(2)
    assert rows(b, f"{source_db}.one") == ((1, 1, "x", 7), (2, 2, "y", 8))
    execute(
        a,
        f"ALTER TABLE {source_db}.one DROP COLUMN a, ADD COLUMN last INT",
        f"INSERT INTO {source_db}.one (id, last) VALUES (3, 3)",
        f"DROP TABLE {source_db}.one",
        f"CREATE TABLE {source_db}.one (id INT PRIMARY KEY, again INT)",
        f"INSERT INTO {source_db}.one VALUES (4, 4)",
        f"CREATE TABLE {source_db}.two (id INT PRIMARY KEY)",
        f"INSERT INTO {source_db}.two VALUES (5)",
    )
    running.applied(5)
    for table in ("one", "two"):
        assert text_of(b, f"{source_db}.{table}") == text_of(a, f"{source_db}.{table}")
        assert rows(b, f"{source_db}.{table}") == rows(a, f"{source_db}.{table}")


LATER = {
    "a default that became another one": (
        ["ALTER TABLE {t} ADD c INT DEFAULT 5", "ALTER TABLE {t} ALTER c SET DEFAULT 7"],
        "gave them a value in c",
    ),
    "a column made again": (
        ["ALTER TABLE {t} DROP b", "ALTER TABLE {t} ADD b INT"],
        "b is another column by now",
    ),
    "rows of a partition": (["ALTER TABLE {t} TRUNCATE PARTITION low"], "it removed rows"),
    "times of another zone": (
        ["SET time_zone = '+05:30'", "ALTER TABLE {t} MODIFY at TIMESTAMP NULL"],
        "converted values of at",
    ),
}


@pytest.mark.parametrize("which", LATER)
def test_rows_from_before_a_change_that_the_created_table_has(servers, source_db, position, which):
    a, b = servers
    t = f"{source_db}.one"
    changes, why = LATER[which]
    execute(
        a,
        f"CREATE TABLE {t} (id INT PRIMARY KEY, b INT, at DATETIME) PARTITION BY RANGE (id)"
        " (PARTITION low VALUES LESS THAN (9), PARTITION high VALUES LESS THAN MAXVALUE)",
    )
    start = binlog_end(a)
    execute(
        a,
        f"INSERT INTO {t} VALUES (1, 1, '2026-01-02 03:04:05'), (10, 10, NULL)",
        *(change.format(t=t) for change in changes),
    )
    file = passing_from(a, b, source_db, start)
    error = position.lead(file).ends()
    assert why in error.message
    assert "setl load --replace" in error.hint
    # Where no row came before the change, or all rows are loaded after it, nothing is to be said.
    execute(b, f"DELETE FROM {t}")
    running = position.lead(file)
    execute(a, f"INSERT INTO {t} (id) VALUES (11)")
    eventually(lambda: len(rows(b, t)) == 1, 60)
    assert running.error is None


def test_tables_that_were_created_under_the_names_that_they_got_later(servers, source_db, position):
    a, b = servers
    start = binlog_end(a)
    one, two = f"{source_db}.one", f"{source_db}.two"
    swap = f"RENAME TABLE {one} TO {source_db}.x, {two} TO {one}, {source_db}.x TO {two}"
    execute(
        a,
        f"CREATE TABLE {one} (id INT PRIMARY KEY, a INT)",
        f"CREATE TABLE {two} (id INT PRIMARY KEY, b INT)",
        swap,
        f"INSERT INTO {one} (id, b) VALUES (1, 2)",
    )
    running = position.lead(passing_from(a, b, source_db, start))
    running.applied(1)
    columns = [[text.split()[0] for text in text_of(b, t)[0]] for t in (one, two)]
    assert columns == [["`id`", "`b`"], ["`id`", "`a`"]]
    running.stop()
    execute(a, f"ALTER TABLE {one} ADD a INT", f"ALTER TABLE {two} ADD b INT")
    start = binlog_end(a)
    execute(a, f"INSERT INTO {two} (id) VALUES (3)", swap)
    execute(b, f"DROP TABLE {one}, {two}")
    error = position.lead(passing_from(a, b, source_db, start)).ends()
    assert "had another name before" in error.message


@pytest.mark.family("mariadb", why="MySQL has no OR REPLACE")
def test_a_created_table_that_the_stream_replaces(servers, source_db, position):
    a, b = servers
    t, start = f"{source_db}.one", binlog_end(a)
    execute(
        a,
        f"CREATE TABLE {t} (id INT PRIMARY KEY, b INT)",
        f"INSERT INTO {t} VALUES (1, 1)",
        f"CREATE OR REPLACE TABLE {t} (id INT PRIMARY KEY, b INT)",
        f"ALTER TABLE {t} ADD c INT DEFAULT 3",
        f"INSERT INTO {t} VALUES (2, 2, 2)",
    )
    running = position.lead(passing_from(a, b, source_db, start))
    eventually(lambda: filled(b, source_db, "one") == ((2, 2, 2),), 60)
    assert running.error is None
    assert text_of(a, t) == text_of(b, t)


@pytest.mark.not_mixed(why="privileges are those of the target alone")
def test_check_names_the_privileges_that_creating_takes(servers, source_db, position):
    a, b = servers
    user = fresh_name("u")[:12]
    execute(a, INDEXED.format(db=source_db, t="one"))
    execute(a, f"INSERT INTO {source_db}.one VALUES (1, 1, 'x')")
    rights = "SELECT, INSERT, UPDATE, DELETE"
    execute(b, f"CREATE USER {user}@'%' IDENTIFIED BY ''", f"GRANT {rights} ON retl.* TO {user}")
    try:
        target = {**mysql(b), "user": user, "password": ""}
        file = loading(a, target, [{"from": f"{source_db}.one"}], create=True)
        (problem,) = [f for f in check_channel(file) if f.level == "error"]
        assert "lacks ALTER, CREATE, INDEX, SELECT, INSERT, UPDATE, DELETE on" in problem.what
        execute(b, *problem.statements)
        assert errors_of(file) == []
        wait_until_loaded(position.lead(file))
        assert keys_of(b, source_db, "one") == keys_of(a, source_db, "one")
    finally:
        execute(b, f"DROP USER {user}@'%'")


@pytest.mark.not_mixed(why="statements that pass between the families have tests of their own")
def test_tables_with_rows_that_were_renamed_while_nothing_was_applied(servers, source_db, position):
    a, b = servers
    one, two, three, four, five, six, seven = tables = [f"{source_db}.t{n}" for n in range(1, 8)]
    shadow, former = f"{source_db}._t7_gho", f"{source_db}._t7_del"
    file = passing_from(a, b, source_db, binlog_end(a))
    execute(
        a,
        f"CREATE TABLE {one} (id INT PRIMARY KEY, CONSTRAINT few CHECK (id < 99))",
        f"CREATE TABLE {two} (id INT PRIMARY KEY, other INT)",
        f"INSERT INTO {one} VALUES (1)",
        f"INSERT INTO {two} VALUES (2, 2)",
    )
    running = position.lead(file)
    running.applied(2)
    running.stop()
    execute(
        a,
        f"ALTER TABLE {one} RENAME TO {three}",
        f"RENAME TABLE {two} TO {one}",
        f"CREATE TABLE {two} (id INT PRIMARY KEY, again INT)",
        # Made twice, with other columns.
        f"CREATE TABLE {four} (id INT PRIMARY KEY, a INT)",
        f"INSERT INTO {four} VALUES (4, 4)",
        f"RENAME TABLE {four} TO {five}",
        f"ALTER TABLE {five} ADD at DATETIME DEFAULT CURRENT_TIMESTAMP",
        f"CREATE TABLE {four} (id INT PRIMARY KEY)",
        f"CREATE TABLE IF NOT EXISTS {six} (id INT PRIMARY KEY, day CHAR(4))",
        f"INSERT INTO {six} VALUES (6, 'ab')",
        f"ALTER TABLE {six} DROP day",
        # New, and changed online by the time that it comes.
        f"CREATE TABLE {seven} (id INT PRIMARY KEY, a INT)",
        f"INSERT INTO {seven} VALUES (7, 7)",
        f"CREATE TABLE {shadow} LIKE {seven}",
        f"ALTER TABLE {shadow} ADD twice INT AS (a + a) STORED",
        f"INSERT INTO {shadow} (id, a) SELECT id, a FROM {seven}",
        f"RENAME TABLE {seven} TO {former}, {shadow} TO {seven}",
        *(f"INSERT INTO {table} (id) VALUES (3)" for table in tables),
    )
    # The leader creates those that are missing, before the stream comes to the statements.
    position.lead(file).applied(10)
    for table in tables:
        assert text_of(b, table) == text_of(a, table)
        assert rows(b, table) == rows(a, table)


@pytest.mark.not_mixed(why="statements that pass between the families have tests of their own")
def test_a_copy_of_a_table_that_was_created_as_it_is_later(servers, source_db, position):
    a, b = servers
    one, two = (f"{source_db}.{name}" for name in ("one", "two"))
    execute(a, f"CREATE TABLE {one} (id INT PRIMARY KEY)")
    file = passing_from(a, b, source_db, binlog_end(a))
    execute(
        a,
        f"CREATE TABLE {two} LIKE {one}",
        f"RENAME TABLE {two} TO {source_db}.three",
        f"ALTER TABLE {one} ADD more INT",
    )
    error = position.lead(file).ends()
    assert "is like" in error.message
    assert f"{source_db}.one" in error.message
