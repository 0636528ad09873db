"""Which schema changes put rows of a table elsewhere, as far as a load is concerned."""

from dataclasses import replace

import pytest

from setl.model.entry import Entry, EntryKind
from setl.model.position import BinlogPosition
from setl.model.table_load import TableLoad
from setl.run.table_loads.rearranged_tables import mixed, read_again, read_whole_again, rearranged


def ddl(statement):
    return Entry(EntryKind.DDL, BinlogPosition("bin.000001", 300), 0.0, "s", statement=statement)


@pytest.mark.parametrize(
    ("statement", "again"),
    [
        ("ALTER TABLE t ADD COLUMN (a INT, b INT)", ()),
        ("ALTER TABLE t DROP COLUMN a, ADD KEY (c), DROP FOREIGN KEY d, COMMENT 'MODIFY'", ()),
        ("ALTER TABLE t RENAME INDEX a TO b, RENAME KEY c TO d", ()),
        ("CREATE TABLE t (id INT PRIMARY KEY)", ()),
        ("DROP TABLE t", ()),
        ("TRUNCATE t", ()),
        ("CREATE INDEX i ON t (a)", ()),
        ("CREATE VIEW v AS SELECT 1", ()),
        ("ALTER TABLE t MODIFY a INT", ("s.t",)),
        ("ALTER TABLE t ADD COLUMN a INT, DROP KEY b", ("s.t",)),
        ("ALTER TABLE t DROP CONSTRAINT b", ("s.t",)),
        ("DROP INDEX i ON t", ("s.t",)),
        ("ALTER TABLE t ADD COLUMN b INT, CHANGE a c INT", ("s.t",)),
        ("ALTER TABLE t RENAME COLUMN a TO b", ("s.t",)),
        ("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4", ("s.t",)),
        ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (b)", ("s.t",)),
        ("ALTER TABLE t RENAME o.u", ("s.t", "o.u")),
        ("ALTER TABLE t ADD COLUMN a INT, RENAME TO u", ("s.t", "s.u")),
        ("RENAME TABLE t TO u, o.v TO w", ("s.t", "s.u", "o.v", "s.w")),
        ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", ("s.t", "s.u")),
    ],
)
def test_what_is_read_again(statement, again):
    assert rearranged(ddl(statement)).again == again


def after(*statements):
    load = TableLoad("x")
    for statement in statements:
        load = read_again(load, ddl(statement), lambda _: True)
    return load


@pytest.mark.parametrize(
    ("statement", "again"),
    [
        ("TRUNCATE t", ("s.t",)),
        ("ALTER TABLE t DROP COLUMN a", ("s.t",)),
        ("DROP TABLE t, u", ("s.t", "s.n")),
        ("CREATE TABLE t (a INT)", ("s.t",)),
        ("RENAME TABLE t TO u", ("s.t", "s.u")),
        ("TRUNCATE u", ()),
        ("FLUSH TABLES", ()),
    ],
)
def test_a_table_that_is_read_as_a_whole_is_read_again_after_each_change(statement, again):
    entry = ddl(statement.replace("t, u", "t, n"))
    load = TableLoad("x", table="s.z", whole=("s.t", "s.n"), until=entry.position)
    moved = read_again(load, entry, lambda _: True)
    assert moved.again == again
    assert moved.reads == bool(again)
    ended = read_whole_again(replace(load, cancelled=True), entry)
    assert ended.only == tuple(name for name in again if name in load.whole)
    assert ended.left(["s.a", "s.n", "s.t", "s.u"]) == sorted(ended.only)
    assert ended.cancelled
    assert read_whole_again(replace(load, ended=1.0), entry).until


SWAP = "RENAME TABLE t TO x, u TO t, x TO u"


@pytest.mark.parametrize(
    ("statements", "there", "names"),
    [
        (["RENAME TABLE t TO u"], {"s.u"}, ()),
        (["RENAME TABLE t TO u", "RENAME TABLE n TO t"], {"s.t", "s.u"}, ("s.u",)),
        (["RENAME TABLE t TO u, n TO t"], {"s.t", "s.u"}, ("s.u",)),
        (["RENAME TABLE t TO _t_del, _t_gho TO t"], {"s.t"}, ()),
        (["RENAME TABLE t TO x, u TO t, x TO u"], {"s.t", "s.u"}, ("s.t", "s.u")),
        (["RENAME TABLE t TO u", "RENAME TABLE u TO t"], {"s.t"}, ()),
        ([SWAP, SWAP], {"s.t", "s.u"}, ("s.t", "s.u")),
        ([SWAP, "DROP TABLE u"], {"s.t"}, ("s.t",)),
        ([SWAP, "RENAME TABLE t TO v", "RENAME TABLE u TO t"], {"s.t", "s.v"}, ("s.t", "s.v")),
        (["RENAME TABLE t TO _t_del, _t_gho TO t"] * 2, {"s.t"}, ()),
        (["ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u"], {"s.t", "s.u"}, ("s.t", "s.u")),
    ],
)
def test_tables_that_may_have_stored_rows_of_another_one(statements, there, names):
    assert sorted(mixed(after(*statements), there.__contains__)) == sorted(names)
