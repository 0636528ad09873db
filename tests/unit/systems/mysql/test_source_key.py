"""Whether a table had another primary key when a statement ran."""

import pytest

from setl.codec.sql.table_ddl import parse_table_ddl
from setl.systems.mysql.ddl.source_key import changes_key, made_by


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (b)", True),
        ("ALTER TABLE d.T ADD b INT KEY", True),
        ("ALTER TABLE t ADD b INT PRIMARY KEY", True),
        ("ALTER TABLE t DROP id", True),
        ("ALTER TABLE t DROP COLUMN id", True),
        ("ALTER TABLE t DROP KEY `PRIMARY`", True),
        ("DROP INDEX `primary` ON t", True),
        ("ALTER TABLE t CHANGE id number INT", True),
        ("ALTER TABLE t RENAME COLUMN id TO number", True),
        ("RENAME TABLE t TO t_old, t_new TO t", True),
        ("RENAME TABLE other TO t", True),
        ("ALTER TABLE t RENAME u", True),
        ("ALTER TABLE t RENAME TO u", True),
        ("ALTER TABLE t RENAME = u", True),
        ('ALTER TABLE "t" DROP PRIMARY KEY', True),
        ("DROP TABLE t", True),
        ("CREATE TABLE t (id INT)", True),
        ("ALTER TABLE t ADD KEY (b), ADD UNIQUE KEY (c), ADD d INT UNIQUE KEY", False),
        ("ALTER TABLE t DROP KEY b, DROP FOREIGN KEY f, MODIFY id BIGINT, ENGINE = InnoDB", False),
        ("ALTER TABLE t ADD `primary key` INT", False),
        ("ALTER TABLE t RENAME KEY b TO c, RENAME INDEX d TO e", False),
        ("CREATE INDEX b ON t (b)", False),
        ("TRUNCATE TABLE t", False),
        ("ALTER TABLE e.t DROP PRIMARY KEY", False),
        ("ALTER TABLE u DROP PRIMARY KEY /* of t */", False),
        ("BEGIN", False),
    ],
)
def test_which(text, changes):
    assert changes_key(("D", "t"), "d", text) is changes


@pytest.mark.parametrize(
    ("done", "made"),
    [
        (["CREATE TABLE t (id INT)", "ALTER TABLE t ADD b INT", "TRUNCATE TABLE t"], {"t"}),
        (["CREATE TABLE t (id INT)", "DROP TABLE t"], set()),
        (["CREATE TABLE IF NOT EXISTS t (id INT)"], set()),
        (["CREATE TABLE t LIKE u"], set()),
        (["CREATE TABLE u (id INT)", "CREATE TABLE t LIKE u"], {"t", "u"}),
        (["CREATE TABLE t (id INT)", "RENAME TABLE t TO old, u TO t"], {"old"}),
        (["CREATE TABLE t (id INT)", "RENAME TABLE t TO x, u TO t, x TO u"], {"u"}),
        (["CREATE TABLE u (id INT)", "ALTER TABLE u ADD b INT, RENAME TO t"], {"t"}),
        (["CREATE TABLE t (id INT)", "DROP TABLE t", "ALTER TABLE u RENAME t"], set()),
    ],
)
def test_which_tables_are_from_the_stream(done, made):
    parsed = [ddl for text in done if (ddl := parse_table_ddl(text, "d"))]
    assert len(parsed) == len(done)
    assert made_by(parsed) == {("d", name) for name in made}
