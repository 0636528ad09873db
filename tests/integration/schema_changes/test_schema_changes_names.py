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
    sites.ddl = sites.passing(marked_drops=False)
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
def test_names_begin_with_a_dot(renamed, mariadb):
    if not mariadb:
        pytest.skip("MySQL takes no name that begins with a dot")
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
