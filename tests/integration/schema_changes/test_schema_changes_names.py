"""Names in schema changes as servers of each family take them, to a schema of another name."""

import pytest

from setl.channel.routes.routing import Router
from setl.codec.sql.created_table import without_next_number
from setl.errors import FatalError
from tests.integration.pipelines import execute, mysql, one_way

EITHER = [
    "ALTER TABLE t ADD g INT AS (t.n + 1), ADD h INT AS ({db}.t.n + 2) STORED",
    "ALTER TABLE t ADD CHECK ({db}.t.n < 99), ADD k INT DEFAULT (t.n + 1)",
    "CREATE TABLE u (id INT PRIMARY KEY, n INT, CHECK (u.n <> {db}.u.id))",
    "ALTER TABLE u ORDER BY {db}.u.n, u.id",
]
MARIADB = [
    "ALTER TABLE .t ADD COLUMN {db}.t.x1 INT, ADD t.x2 INT DEFAULT .5, ADD .x3 INT",
    "ALTER TABLE t CHANGE {db}.t.x1 {db}.t.y1 BIGINT, MODIFY t.x2 BIGINT, ALTER t.x3 SET DEFAULT 1",
    "ALTER TABLE t DROP t.x3, ADD c INT AS (.t.n)",
    "CREATE TABLE .p (p.id INT PRIMARY KEY, {db}.p.b INT, .c INT)",
    "CREATE TABLE q (id INT PRIMARY KEY REFERENCES .p (id))",
    "CREATE INDEX i ON .p (b)",
    "DROP INDEX i ON .p",
    "RENAME TABLE q TO .q2",
    "ALTER TABLE q2 RENAME .q3",
    "ALTER TABLE q3 RENAME TO .q",
    "CREATE TABLE q4 LIKE .p",
    "CREATE TABLE .q5 (LIKE .p)",
    "CREATE OR REPLACE TABLE .q5 (id INT PRIMARY KEY)",
    "TRUNCATE .q5",
    "DROP TABLE .q4, .q5",
]


@pytest.fixture
def renamed(sites):
    """The sites with a target whose schema has another name."""
    other = f"{sites.db}x"
    execute(sites.b, f"CREATE DATABASE {other}", f"RENAME TABLE {sites.db}.t TO {other}.t")
    file = one_way(sites.a, mysql(sites.b), [{"from": f"{sites.db}.*", "to": f"{other}.*"}])
    sites.router = Router(file.pipelines[0])
    sites.ddl = sites.ddl_context(marked_drops=False)
    yield sites
    execute(sites.b, f"DROP DATABASE {other}")


def tables(server, schema):
    names = [name for (name,) in execute(server, f"SHOW TABLES FROM {schema}")]
    made = {n: execute(server, f"SHOW CREATE TABLE {schema}.{n}")[0][1] for n in names}
    made.pop("nokey", None)
    return {name: without_next_number(text) for name, text in made.items()}


def assert_same_tables(renamed):
    here, there = tables(renamed.a, renamed.db), tables(renamed.b, f"{renamed.db}x")
    assert there == here


def test_columns_are_named_with_their_table(renamed):
    for statement in EITHER:
        renamed.run(statement.format(db=renamed.db))
    assert_same_tables(renamed)


@pytest.mark.family("mariadb", why="MySQL takes no name that begins with a dot")
def test_names_begin_with_a_dot(renamed):
    for statement in MARIADB:
        renamed.run(statement.format(db=renamed.db))
    assert_same_tables(renamed)


def test_a_statement_whose_tables_are_not_found_stops_only_if_it_may_be_about_mapped_ones(sites):
    (entry,) = sites.entries("CREATE TABLE t2 (a INT)")
    text = "DROP TABLE `other`.`x` !! `t`"  # as no server of today takes it
    elsewhere = entry.session._replace(schema="other")
    assert sites.apply(entry._replace(statement=text), session=elsewhere) == ()
    with pytest.raises(FatalError, match="cannot be read from it") as caught:
        sites.apply(entry._replace(statement=text))
    assert caught.value.where["position"] == str(entry.position)
    assert text in caught.value.message
    done = caught.value.hint.partition("UPDATE ")[2].partition(";")[0]
    execute(sites.b, f"UPDATE {done}")
    assert sites.apply(entry._replace(statement=text), number=sites.number)


def test_a_schema_that_is_dropped_can_be_passed_over(sites):
    (entry,) = sites.entries("CREATE TABLE t2 (a INT)")
    dropped = entry._replace(statement=f"DROP DATABASE `{sites.db}`")
    with pytest.raises(FatalError, match="mapped") as caught:
        sites.apply(dropped)
    assert caught.value.where["position"] == str(entry.position)
    done = caught.value.hint.partition("UPDATE ")[2].partition(";")[0]
    execute(sites.b, f"UPDATE {done}")
    assert sites.apply(dropped, number=sites.number)


DROPPED = {
    "alone": "ALTER TABLE c DROP FOREIGN KEY f",
    "with others": "ALTER TABLE c ADD x INT DEFAULT 3, DROP FOREIGN KEY `F`, DROP n",
    "made again": (
        "ALTER TABLE c DROP FOREIGN KEY f, ADD CONSTRAINT g FOREIGN KEY (p) REFERENCES t (id)"
    ),
    "as a constraint": "ALTER TABLE c DROP CONSTRAINT f, DROP KEY f",
    "without a name": "ALTER TABLE c DROP FOREIGN KEY c_ibfk_1",
}


@pytest.fixture
def child(sites):
    """A table whose foreign keys only the source has, as after `create: true`."""
    columns = "id INT PRIMARY KEY, p INT, n INT, q INT, KEY f (p), KEY (q)"
    both = f"CREATE TABLE {sites.db}.c ({columns}"
    foreign = "CONSTRAINT f FOREIGN KEY (p) REFERENCES t (id), FOREIGN KEY (q) REFERENCES t (id)"
    execute(sites.a, f"USE {sites.db}", f"{both}, {foreign})")
    execute(sites.b, f"{both})")
    return sites


@pytest.mark.parametrize("how", DROPPED)
def test_foreign_keys_that_the_target_has_not_need_no_dropping(child, how):
    child.run(DROPPED[how])
    shapes = (child.shape(server, "c")[0][1].splitlines() for server in (child.a, child.b))
    here, there = (
        [line for line in s if "`f` FOR" not in line and "_ibfk_" not in line] for s in shapes
    )
    assert [line.rstrip(",") for line in here] == [line.rstrip(",") for line in there]


def test_another_foreign_key_without_a_name_may_be_meant(child):
    child.run("ALTER TABLE c ADD FOREIGN KEY (n) REFERENCES t (id)")  # number 1 there, 2 here
    (entry,) = child.entries("ALTER TABLE c DROP FOREIGN KEY c_ibfk_2")
    with pytest.raises(FatalError, match="c_ibfk_2"):
        child.apply(entry)


CREATED = {
    "there": "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY, other INT)",
    "there, like one that is not mapped": "CREATE TABLE IF NOT EXISTS t LIKE mysql.general_log",
    "there, with an engine": "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY) ENGINE = `InnoDB`",
    "not there": "CREATE TABLE IF NOT EXISTS made (id INT PRIMARY KEY, other INT)",
    "not there, like one that is mapped": "CREATE TABLE IF NOT EXISTS made LIKE nokey",
    "not there, with rows": "CREATE TABLE IF NOT EXISTS made (PRIMARY KEY (v)) SELECT 1 AS v",
    "not there, and of MyISAM": "CREATE TABLE IF NOT EXISTS made (id INT KEY) ENGINE=MyISAM",
}


@pytest.mark.family("mysql", why="MariaDB does not log one that did nothing")
@pytest.mark.parametrize("how", CREATED)
@pytest.mark.parametrize("lacking", [False, True])
def test_if_not_exists_does_what_it_did_at_the_source(sites, how, lacking):
    if lacking:
        execute(sites.b, f"DROP TABLE {sites.db}.t")
    (entry,) = sites.entries(CREATED[how])
    assert sites.apply(entry)
    there = {name for (name,) in execute(sites.b, f"SHOW TABLES FROM {sites.db}")}
    assert there == {"nokey"} | ({"made"} if "not there" in how else set()) | {"t"} - (
        {"t"} if lacking else set()
    )
    if "MyISAM" in how:  # setl writes into tables with transactions only
        ((_, shape),) = sites.shape(sites.b, "made")
        assert "ENGINE=InnoDB" in shape
    elif "made" in there and "rows" not in how:
        sites.assert_same("made")
    if not lacking:
        sites.assert_same("t")


STOPPED = {
    "a row twice in a copied table": (
        [
            "INSERT INTO t (id, n) VALUES (11, 7)",
            "CREATE TABLE _t_new LIKE t",
            "ALTER TABLE _t_new ADD UNIQUE KEY (n)",
            "INSERT IGNORE INTO _t_new SELECT * FROM t",
            "RENAME TABLE t TO _t_old, _t_new TO t",
        ],
        ["Delete such rows", "setl load --replace"],
        ["DELETE FROM {db}.t WHERE id = 11", "ALTER TABLE {db}.t ADD UNIQUE KEY (n)"],
    ),
    "a table from outside": (
        ["CREATE TABLE {db}_more.u (id INT PRIMARY KEY)", "RENAME TABLE {db}_more.u TO u"],
        ["as the source's are now", "setl load --replace"],
        ["CREATE TABLE {db}.u (id INT PRIMARY KEY)"],
    ),
    "a table that leaves": (
        ["RENAME TABLE t TO {db}_more.t"],
        ["map the new name", "rename or drop"],
        ["DROP TABLE {db}.t"],
    ),
}


@pytest.mark.parametrize("which", STOPPED)
def test_what_a_stop_asks_for_is_enough(sites, which):
    statements, said, by_hand = STOPPED[which]
    execute(sites.b, f"INSERT INTO {sites.db}.t (id, n) VALUES (11, 7)")
    execute(sites.a, f"CREATE DATABASE {sites.db}_more")
    try:
        entries = sites.entries(*(statement.format(db=sites.db) for statement in statements))
        named = entries[-1:] if "outside" in which else entries
        for entry in named[:-1]:
            sites.apply(entry)
        with pytest.raises(FatalError) as caught:
            sites.apply(named[-1])
        assert all(text in caught.value.hint for text in said), caught.value.hint
        assert "{" not in caught.value.hint
        execute(sites.b, *(statement.format(db=sites.db) for statement in by_hand))
        execute(sites.b, "UPDATE " + caught.value.hint.partition("UPDATE ")[2].partition(";")[0])
        assert sites.apply(named[-1], number=sites.number)
    finally:
        execute(sites.a, f"DROP DATABASE {sites.db}_more")
