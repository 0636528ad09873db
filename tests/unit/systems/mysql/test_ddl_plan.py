"""What schema changes become on a target, by the text alone."""

import pytest

from setl.channel.reading import parse_channel
from setl.channel.routes.routing import Router
from setl.codec.sql.table_ddl import parse_table_ddl
from setl.codec.sql.tokens import Quoting
from setl.errors import FatalError
from setl.systems.mysql.ddl.left_out import without_keys
from setl.systems.mysql.ddl.plan import Swap, plan_ddl


def router(*tables):
    ends = {
        "source": {"type": "mysql", "host": "a", "user": "u"},
        "target": {"type": "mysql", "host": "b", "user": "u"},
    }
    pipeline = {"name": "p", **ends, "tables": [dict(t) for t in tables]}
    return Router(parse_channel({"channel": "c", "pipelines": [pipeline]}).pipelines[0])


ALL = router({"from": "shop.*", "to": "copy.*"})
EXACT = router(
    {"from": "shop.a", "to": "copy.a2"},
    {"from": "shop.b"},
    {"from": "shop.two", "to": "x.one"},
    {"from": "shop.two", "to": "y.one"},
)

ENDS = [{"type": "mysql", "host": host, "user": "u"} for host in "ab"]
CONTESTED = Router(
    parse_channel({
        "channel": "c",
        "pipelines": [
            {
                "name": f"p{i}",
                "source": ENDS[i],
                "target": ENDS[1 - i],
                "tables": [{"from": "shop.t", "conflict": "home"}, {"from": "shop.*"}],
            }
            for i in (0, 1)
        ],
    }).pipelines[0]
)  # fmt: skip


def plan(text, routing=ALL, schema="shop", *, marked=False, quoting=Quoting(), **more):  # noqa: B008
    ddl = parse_table_ddl(text, schema, quoting)
    assert ddl is not None, f"not taken for DDL of tables: {text}"
    return plan_ddl(ddl, routing, marked_drops=marked, **more)


def statements(text, routing=ALL, **options):
    return [step.statement for step in plan(text, routing, **options).steps]


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("ALTER TABLE t ADD c INT", "ALTER TABLE `copy`.`t` ADD c INT"),
        ("alter table shop.t add c int", "alter table `copy`.`t` add c int"),
        ("ALTER TABLE `shop` . `t` DROP c", "ALTER TABLE `copy`.`t` DROP c"),
        ("ALTER TABLE/**/t/* t */ADD t INT", "ALTER TABLE/**/`copy`.`t`/* t */ADD t INT"),
        ("ALTER TABLE t -- t\n ADD c INT # t", "ALTER TABLE `copy`.`t` -- t\n ADD c INT # t"),
        (
            "ALTER TABLE t ADD c CHAR(9) DEFAULT 'it''s \\' t' COMMENT \"REFERENCES t\"",
            "ALTER TABLE `copy`.`t` ADD c CHAR(9) DEFAULT 'it''s \\' t' COMMENT \"REFERENCES t\"",
        ),
        ("ALTER ONLINE IGNORE TABLE t ADD c INT", "ALTER ONLINE IGNORE TABLE `copy`.`t` ADD c INT"),
        (
            "ALTER TABLE t ADD c INT DEFAULT NEXTVAL(`shop`.s), ADD next INT",
            "ALTER TABLE `copy`.`t` ADD c INT DEFAULT NEXTVAL(`shop`.s), ADD next INT",
        ),
        ("ALTER TABLE IF EXISTS t WAIT 5 FORCE", "ALTER TABLE IF EXISTS `copy`.`t` WAIT 5 FORCE"),
        (
            "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES other.p (id)".replace(
                "other.", ""
            ),
            "ALTER TABLE `copy`.`t` ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES `copy`.`p` (id)",
        ),
        (
            "ALTER TABLE t ADD c INT, RENAME COLUMN a TO b, RENAME TO `u`, RENAME KEY i TO j",
            (
                "ALTER TABLE `copy`.`t` ADD c INT, RENAME COLUMN a TO b, RENAME TO `copy`.`u`,"
                " RENAME KEY i TO j"
            ),
        ),
        ("ALTER TABLE t RENAME u", "ALTER TABLE `copy`.`t` RENAME `copy`.`u`"),
        (
            "ALTER TABLE t ADD `rename` INT AFTER `to`, ALGORITHM=INSTANT",
            "ALTER TABLE `copy`.`t` ADD `rename` INT AFTER `to`, ALGORITHM=INSTANT",
        ),
        ("ALTER TABLE t TRUNCATE PARTITION p0", "ALTER TABLE `copy`.`t` TRUNCATE PARTITION p0"),
        (
            "ALTER TABLE t ALTER INDEX i INVISIBLE, ALTER c SET DEFAULT (uuid())",
            "ALTER TABLE `copy`.`t` ALTER INDEX i INVISIBLE, ALTER c SET DEFAULT (uuid())",
        ),
        (
            "CREATE TABLE IF NOT EXISTS t (id INT, p INT REFERENCES p(id), CHECK (id > 0))",
            (
                "CREATE TABLE IF NOT EXISTS `copy`.`t`"
                " (id INT, p INT REFERENCES `copy`.`p`(id), CHECK (id > 0))"
            ),
        ),
        ("CREATE TABLE t LIKE u", "CREATE TABLE `copy`.`t` LIKE `copy`.`u`"),
        ("CREATE TABLE t (LIKE u)", "CREATE TABLE `copy`.`t` (LIKE `copy`.`u`)"),
        ("CREATE OR REPLACE TABLE t (a INT)", "CREATE OR REPLACE TABLE `copy`.`t` (a INT)"),
        (
            "CREATE TABLE `t` (\n  `a` int NOT NULL\n) ENGINE=InnoDB START TRANSACTION",
            "CREATE TABLE `copy`.`t` (\n  `a` int NOT NULL\n) ENGINE=InnoDB",
        ),
        (
            "CREATE TABLE `t` (`a` int) START TRANSACTION COMMENT='START TRANSACTION'",
            "CREATE TABLE `copy`.`t` (`a` int) COMMENT='START TRANSACTION'",
        ),
        (
            "CREATE TABLE `t` (`a` int) START TRANSACTION /*!50100 PARTITION BY KEY (`a`) */",
            "CREATE TABLE `copy`.`t` (`a` int)          PARTITION BY KEY (`a`)   ",
        ),
        (
            "CREATE /*!50003 TABLE */ t (a INT) /*!40100 DEFAULT CHARSET=utf8mb4 */",
            "CREATE          TABLE    `copy`.`t` (a INT)          DEFAULT CHARSET=utf8mb4   ",
        ),
        (
            "CREATE TABLE t (a INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (10))",
            (
                "CREATE TABLE `copy`.`t` (a INT) PARTITION BY RANGE (a)"
                " (PARTITION p VALUES LESS THAN (10))"
            ),
        ),
        (
            "CREATE UNIQUE INDEX `on` USING BTREE ON shop.t (a(10) DESC, (a + 1))",
            "CREATE UNIQUE INDEX `on` USING BTREE ON `copy`.`t` (a(10) DESC, (a + 1))",
        ),
        ("DROP INDEX i ON t ALGORITHM=INPLACE", "DROP INDEX i ON `copy`.`t` ALGORITHM=INPLACE"),
        ("TRUNCATE t", "TRUNCATE `copy`.`t`"),
        ("TRUNCATE TABLE shop.t", "TRUNCATE TABLE `copy`.`t`"),
        ("DROP TABLE IF EXISTS t RESTRICT", "DROP TABLE IF EXISTS `copy`.`t`"),
        ("RENAME TABLE t TO u", "RENAME TABLE `copy`.`t` TO `copy`.`u`"),
        (
            "RENAME TABLES t TO x, u TO t, x TO u",
            (
                "RENAME TABLE `copy`.`t` TO `copy`.`x`, `copy`.`u` TO `copy`.`t`,"
                " `copy`.`x` TO `copy`.`u`"
            ),
        ),
        (
            "SET STATEMENT max_statement_time=1 FOR ALTER TABLE t ADD c INT",
            "ALTER TABLE `copy`.`t` ADD c INT",
        ),
        ("ALTER TABLE größe ADD `naïve``x` INT", "ALTER TABLE `copy`.`größe` ADD `naïve``x` INT"),
        ("ALTER TABLE t ADD v VECTOR(3)", "ALTER TABLE `copy`.`t` ADD v VECTOR(3)"),
    ],
)
def test_names_are_replaced_and_nothing_else(text, becomes):
    assert statements(text) == [becomes]


def test_quotes_mean_what_they_meant_in_the_session():
    text = """ALTER TABLE "t" ADD c CHAR(3) DEFAULT 'x\\'"""
    becomes = """ALTER TABLE `copy`.`t` ADD c CHAR(3) DEFAULT 'x\\'"""
    assert statements(text, quoting=Quoting(ansi=True, no_backslash=True)) == [becomes]


def test_names_without_a_schema_are_of_the_session():
    assert statements("ALTER TABLE t ADD c INT", schema="elsewhere") == []
    assert statements("RENAME TABLE shop.t TO shop.u", schema="elsewhere") == [
        "RENAME TABLE `copy`.`t` TO `copy`.`u`"
    ]
    # A foreign key without a schema means the one of its own table.
    text = "ALTER TABLE shop.t ADD FOREIGN KEY (a) REFERENCES p (id)"
    assert "REFERENCES `copy`.`p`" in statements(text, schema="elsewhere")[0]


def test_each_target_gets_its_statement():
    assert statements("ALTER TABLE two ADD c INT", EXACT) == [
        "ALTER TABLE `x`.`one` ADD c INT",
        "ALTER TABLE `y`.`one` ADD c INT",
    ]


def test_what_is_not_mapped_is_left_out():
    assert statements("DROP TABLE a, other, x.y, b", EXACT) == [
        "DROP TABLE `copy`.`a2`",
        "DROP TABLE `shop`.`b`",
    ]
    assert statements("RENAME TABLE a TO b, other TO another", EXACT) == [
        "RENAME TABLE `copy`.`a2` TO `shop`.`b`"
    ]
    assert plan("ALTER TABLE other ADD c INT", EXACT).empty
    (step,) = plan("ALTER TABLE a RENAME a", EXACT).steps
    assert (step.statement, step.tables) == (
        "ALTER TABLE `copy`.`a2` RENAME `copy`.`a2`",
        (("copy", "a2"),),
    )


@pytest.mark.parametrize(
    "text",
    [
        "RENAME TABLE a TO other",
        "RENAME TABLE other TO a",
        "ALTER TABLE a RENAME other",
        "ALTER TABLE other RENAME a",
        "ALTER TABLE a ADD FOREIGN KEY (x) REFERENCES other (id)",
        "CREATE TABLE a LIKE other",
        "CREATE TABLE a AS SELECT 1",
        "CREATE TABLE a (id INT) SELECT 1 AS id",
        "ALTER TABLE a EXCHANGE PARTITION p WITH TABLE other",
        "ALTER TABLE other EXCHANGE PARTITION p WITH TABLE a",
        "ALTER TABLE a CONVERT PARTITION p TO TABLE other",
        "ALTER TABLE a UNION = (b, other)",
        "RENAME TABLE two TO a",
        "RENAME TABLE a TO _b_old",
        "RENAME TABLE _a_old TO a",
    ],
)
def test_what_cannot_be_replicated_is_refused(text):
    with pytest.raises(FatalError, match="cannot be replicated"):
        plan(text, EXACT)


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        (
            "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u WITHOUT VALIDATION",
            "ALTER TABLE `copy`.`t` EXCHANGE PARTITION p WITH TABLE `copy`.`u` WITHOUT VALIDATION",
        ),
        (
            "ALTER TABLE t CONVERT PARTITION p TO TABLE u",
            "ALTER TABLE `copy`.`t` CONVERT PARTITION p TO TABLE `copy`.`u`",
        ),
        (
            "ALTER TABLE t CONVERT TABLE u TO PARTITION p VALUES IN (1)",
            "ALTER TABLE `copy`.`t` CONVERT TABLE `copy`.`u` TO PARTITION p VALUES IN (1)",
        ),
    ],
)
def test_rows_move_between_tables_that_are_both_at_the_target(text, becomes):
    (step,) = plan(text).steps
    assert (step.statement, step.tables) == (becomes, (("copy", "t"), ("copy", "u")))
    with pytest.raises(FatalError, match="on their way") as caught:
        plan(text, marked=True)
    assert "sql_log_bin = 0" in caught.value.hint


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        ([{"from": "shop.t"}], "shop.u is not mapped"),
        ([{"from": "shop.u"}], "shop.t is not mapped"),
        ([{"from": "shop.t", "where": "id > 1"}, {"from": "shop.u"}], "not all of shop.t"),
        ([{"from": "shop.t"}, {"from": "shop.u", "exclude": ["c"]}], "not all of shop.u"),
        ([{"from": "shop.t"}, {"from": "shop.u*", "to": "x.y"}], "beside rows of other tables"),
        ([{"from": "shop.t"}, {"from": "shop.u"}, {"from": "shop.u", "to": "x.u"}], "not all of"),
    ],
)
def test_rows_do_not_move_where_the_target_has_others(tables, why):
    with pytest.raises(FatalError, match=why) as caught:
        plan("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", router(*tables))
    assert "setl load --replace" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "TRUNCATE t",
        "TRUNCATE TABLE shop.t",
        "CREATE OR REPLACE TABLE t (id INT PRIMARY KEY)",
        "ALTER TABLE t TRUNCATE PARTITION p0, p1",
        "ALTER TABLE t DROP PARTITION IF EXISTS p0",
    ],
)
def test_rows_that_both_sites_write_are_not_removed_by_schema_changes(text):
    with pytest.raises(FatalError, match="it removes rows of a table with a conflict policy"):
        plan(text, CONTESTED)
    assert statements(text) != []


JOINED = router(
    {"from": "shop.t[1-9]", "to": "copy.all"},
    {"from": "shop.one", "to": "copy.both"},
    {"from": "shop.two", "to": "copy.both"},
    {"from": "shop.w*", "to": "copy.v*"},
    {"from": "other.*"},
)


@pytest.mark.parametrize(
    "text",
    [
        "TRUNCATE t1",
        "CREATE OR REPLACE TABLE one (id INT PRIMARY KEY)",
        "ALTER TABLE t2 DROP PARTITION p0",
        "DROP TABLE t1",
        "DROP TABLE w1, two",
        "RENAME TABLE t1 TO _t1_old",
        "RENAME TABLE t1 TO other.t",
        "RENAME TABLE t1 TO one",
        "RENAME TABLE one TO x, w1 TO one, x TO w1",
        "RENAME TABLE w1 TO w2, two TO w1",
        "RENAME TABLE t1 TO _setl_dropped_1",
        "ALTER TABLE t1 RENAME other.t",
        "ALTER TABLE one ADD c INT, RENAME TO w1",
        "ALTER TABLE one ADD c INT, DROP d",
        "ALTER TABLE t1 DROP COLUMN IF EXISTS d",
    ],
)
@pytest.mark.parametrize("marked", [False, True])
def test_rows_of_other_tables_do_not_go_with_one(text, marked):
    with pytest.raises(FatalError, match=r"rows of other tables go.*, too") as caught:
        plan(text, JOINED, marked=marked)
    assert (
        "drop it" if "DROP COLUMN" in text or ", DROP" in text else "DELETE"
    ) in caught.value.hint


@pytest.mark.parametrize(
    "text", ["RENAME TABLE t1 TO t2", "RENAME TABLE one TO two", "ALTER TABLE t1 RENAME t2"]
)
def test_names_of_tables_change_within_one_table_of_the_target(text):
    (step,) = plan(text, JOINED).steps
    assert (step.statement, bool(step.notes)) == ("", True)


def test_rows_of_other_tables_are_not_filled_with_those_of_one():
    alter = "ALTER TABLE {} ADD n INT"
    said = [plan(alter.format(t), JOINED).steps[0] for t in ("t1", "two", "w1")]
    assert [(step.gathered, step.whole) for step in said] == [(True, False)] * 2 + [(False, True)]


@pytest.mark.parametrize("text", ["TRUNCATE w1", "DROP TABLE w1", "TRUNCATE other.w1"])
def test_a_table_that_has_a_target_of_its_own_is_emptied(text):
    assert statements(text, JOINED)


def test_other_changes_of_tables_that_both_sites_write_pass():
    alter = "ALTER TABLE t DROP c, ADD PARTITION (PARTITION p2 VALUES IN (2))"
    assert len(statements(alter, CONTESTED)) == len(statements("TRUNCATE u", CONTESTED)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE s CHANGE old other INT",
        "ALTER TABLE s RENAME COLUMN x TO new",
        "ALTER TABLE s DROP total",
        "CREATE INDEX i ON s (old)",
        "CREATE TABLE s (id INT)",
        "ALTER TABLE s ADD g INT AS (secret + 1) STORED",
        "ALTER TABLE s CHANGE secret shown INT",
        "ALTER TABLE only RENAME COLUMN a TO c",
    ],
)
def test_columns_that_the_mapping_changes_are_refused(text):
    with pytest.raises(FatalError, match=r"mapping|include"):
        plan(text, COLUMNS)


COLUMNS = router(
    {
        "from": "shop.s",
        "exclude": ["secret"],
        "columns": {"new": "old", "total": "price * quantity"},
        "where": "id > 0",
    },
    {"from": "shop.only", "include": ["id", "a"]},
)


@pytest.mark.parametrize(
    ("text", "becomes", "note"),
    [
        ("ALTER TABLE s ADD secret INT", "", "secret does not reach"),
        ("ALTER TABLE s MODIFY `Secret` BIGINT, ALGORITHM=COPY", "", "Secret does not reach"),
        ("ALTER TABLE s ADD INDEX i (id, secret(9))", "", "INDEX i, since secret does not reach"),
        ("ALTER TABLE s DROP secret, ADD n INT AFTER secret, ADD KEY (n)",
         "ALTER TABLE shop.s ADD n INT , ADD KEY (n)", "secret does not reach"),
        ("ALTER TABLE s ADD n INT, ADD CONSTRAINT c CHECK (`secret` > 0), DROP secret",
         "ALTER TABLE shop.s ADD n INT", "CONSTRAINT c CHECK, since secret"),
        ("CREATE INDEX i ON s (id, secret)", "", "INDEX i ON s, since secret does not reach"),
        ("ALTER TABLE only ADD c INT", "", "c does not reach"),
        ("ALTER TABLE only DROP COLUMN c, ENGINE=InnoDB", "ALTER TABLE shop.only ENGINE=InnoDB",
         "c does not reach"),
        ("ALTER TABLE only ADD COLUMN IF NOT EXISTS (c INT)", "", "c does not reach"),
        ("ALTER TABLE only ADD (c INT, a INT, KEY k (c), KEY l (a), d INT)",
         "ALTER TABLE shop.only ADD (a INT, KEY l (a))", "KEY k, since c does not reach"),
        ("ALTER TABLE only CHANGE b c INT, ADD UNIQUE KEY (a, c), ADD CHECK (c > 0 AND a > 0)",
         "", "UNIQUE KEY, since c"),
        ("ALTER TABLE only ADD FOREIGN KEY (c) REFERENCES away.p (id), MODIFY a BIGINT",
         "ALTER TABLE shop.only MODIFY a BIGINT", "FOREIGN KEY, since c does not reach"),
        ("ALTER TABLE only ADD CHECK (a > 0)", "ALTER TABLE shop.only ADD CHECK (a > 0)", ""),
    ],
)  # fmt: skip
def test_what_is_only_about_columns_that_are_left_out_is_passed_over(text, becomes, note):
    (step,) = plan(text, COLUMNS).steps
    assert step.statement.replace("`", "") == becomes
    assert note in "; ".join(step.notes)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("ALTER TABLE t DROP KEY i, DROP INDEX j", "ALTER TABLE t DROP INDEX j"),
        ("ALTER TABLE t DROP CONSTRAINT c, RENAME KEY i TO k, ALTER INDEX i INVISIBLE", None),
        ("ALTER TABLE t DROP FOREIGN KEY f, DROP PRIMARY KEY", "ALTER TABLE t DROP PRIMARY KEY"),
        (
            "ALTER TABLE t DROP i, RENAME COLUMN i TO k",
            "ALTER TABLE t DROP i, RENAME COLUMN i TO k",
        ),
        ("DROP INDEX i ON t", None),
        ("DROP INDEX `J` ON t", "DROP INDEX `J` ON t"),
    ],
)
def test_keys_that_were_left_out_are_not_dropped_later(text, left):
    ddl = parse_table_ddl(text, "shop")
    assert ddl is not None
    found = without_keys(ddl, {"j", "primary"})
    assert left == (found.ddl.text if found.ddl else None)


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE s ADD another INT COMMENT 'secret'",
        "TRUNCATE s",
        "ALTER TABLE only MODIFY a BIGINT",
        "ALTER TABLE only ADD PRIMARY KEY (id), ENGINE=InnoDB",
        "DROP TABLE only",
    ],
)
def test_other_columns_of_such_tables_pass(text):
    assert len(plan(text, COLUMNS).steps) == 1


def test_drops_that_have_to_be_recognised_go_by_way_of_a_rename():
    rename, drop = plan("DROP TABLE t", marked=True).steps
    assert rename.statement.startswith("RENAME TABLE `copy`.`t` TO `copy`.`_setl_dropped_")
    assert drop.statement.startswith("DROP TABLE IF EXISTS `copy`.`_setl_dropped_")
    assert not rename.may_lack
    assert plan("DROP TABLE IF EXISTS t", marked=True).steps[0].may_lack
    # What another channel has dropped so.
    (drop,) = plan("RENAME TABLE t TO _setl_dropped_01").steps
    assert drop.statement == "DROP TABLE IF EXISTS `copy`.`t`"
    assert plan("DROP TABLE _setl_dropped_01").empty


SHADOW, TABLE = ("shop", "_t_gho"), ("shop", "t")


@pytest.mark.parametrize(
    ("text", "keep", "created"),
    [
        ("create /* gh-ost */ table `shop`.`_t_gho` like `shop`.`t`", SHADOW, True),
        ("alter /* gh-ost */ table `shop`.`_t_gho` ADD c INT", SHADOW, False),
        ("CREATE TABLE `shop`.`_t_new` (\n id int\n)", ("shop", "_t_new"), True),
        ("ALTER TABLE `shop`.`__t_new` ADD c INT", ("shop", "__t_new"), False),
        ("CREATE INDEX i ON _t_new (a)", ("shop", "_t_new"), False),
        ("create table _t_ghc (id bigint)", None, False),
        ("create table _t_20260101120000_del (id int)", None, False),
        ("TRUNCATE _t_gho", None, False),
    ],
)
def test_what_is_done_to_a_shadow_is_stored(text, keep, created):
    made = plan(text)
    assert (made.steps, made.keep, made.created) == ((), keep, created)


@pytest.mark.parametrize(
    "text",
    [
        "rename /* gh-ost */ table `shop`.`t` to `shop`.`_t_del`, `shop`.`_t_gho` to `shop`.`t`",
        "RENAME TABLE `t` TO `_t_20260101120000_del`, `_t_gho` TO `t`",
        "alter /* gh-ost */ table `shop`.`_t_gho` rename `t`",
    ],
)
def test_a_shadow_replaces_its_table(text):
    made = plan(text)
    assert (made.steps, made.swaps) == ((), (Swap(SHADOW, TABLE),))


def test_a_table_makes_room_for_its_shadow():
    text = "alter /* gh-ost */ table `shop`.`t` rename `_t_del`"
    assert plan(text, shadows=[("shop", "_t_gho")]).empty
    assert plan("RENAME TABLE t TO _t_old", shadows=[("shop", "_t_new")]).empty
    assert plan("DROP TABLE IF EXISTS `shop`.`_t_old`").forget == (("shop", "_t_old"),)


OTHER_SHADOWS = [("shop", "_other_new"), ("x", "_t_new"), ("shop", "_t_ghc")]


@pytest.mark.parametrize("shadows", [[], OTHER_SHADOWS])
@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("RENAME TABLE t TO _t_old", "`copy`.`t` TO `copy`.`_t_old`"),
        ("ALTER TABLE t RENAME _t_del", "`copy`.`t` TO `copy`.`_t_del`"),
        (
            "RENAME TABLE t TO _t_old, t_new TO t",
            "`copy`.`t` TO `copy`.`_t_old`, `copy`.`t_new` TO `copy`.`t`",
        ),
    ],
)
def test_a_table_without_a_shadow_is_renamed_as_the_statement_says(text, becomes, shadows):
    (step,) = plan(text, shadows=shadows).steps
    assert step.statement == f"RENAME TABLE {becomes}"
    assert step.aside == (("copy", "_t_del" if "_t_del" in text else "_t_old"),)


def test_what_was_set_aside_is_dropped_with_the_source_s_own():
    (step,) = plan("DROP TABLE _t_old, _u_old", aside=[("copy", "_t_old")]).steps
    assert step.statement == "DROP TABLE `copy`.`_t_old`"
    assert step.may_lack


def test_rows_of_shadows_go_nowhere_unless_they_are_named():
    assert ALL.route("shop", "_t_gho") == ()
    assert ALL.route("shop", "_t") != ()
    named = router({"from": "shop.*"}, {"from": "shop._t_new"})
    assert named.route("shop", "_t_new") != ()
    assert named.shadow("shop", "_t_new") is None
    # Only shadows of mapped tables are shadows.
    assert router({"from": "shop._*"}).route("shop", "_t_new") != ()


@pytest.mark.parametrize(
    "text",
    [
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE DEFINER=`a`@`b` TRIGGER x AFTER INSERT ON t FOR EACH ROW SET @a = 1",
        "CREATE DATABASE shop",
        "DROP DATABASE shop",
        "ALTER DATABASE shop CHARACTER SET utf8mb4",
        "CREATE TEMPORARY TABLE t (a INT)",
        "CREATE SEQUENCE t",
        "DROP PROCEDURE p",
        "CREATE USER u",
        "",
    ],
)
def test_other_statements_are_not_about_tables(text):
    assert parse_table_ddl(text, "shop") is None


def test_a_table_is_never_dropped_under_its_own_name_where_marks_matter():
    steps = plan("CREATE OR REPLACE TABLE t (a INT, KEY (a))", marked=True).steps
    aside, created, dropped = (step.statement for step in steps)
    gone = aside.rpartition(" TO ")[2]
    assert aside.startswith("RENAME TABLE `copy`.`t` TO `copy`.`_setl_dropped_")
    assert created == "CREATE TABLE `copy`.`t` (a INT, KEY (a))"
    assert dropped == f"DROP TABLE IF EXISTS {gone}"
    assert steps[0].may_lack
    text = "/* OR */ create  or /* x */ replace table t LIKE u"
    assert plan(text, marked=True).steps[1].statement.split() == (
        ["/*", "OR", "*/", "create", "table", "`copy`.`t`", "LIKE", "`copy`.`u`"]
    )
    assert statements("CREATE OR REPLACE TABLE t (a INT)") == [
        "CREATE OR REPLACE TABLE `copy`.`t` (a INT)"
    ]


def test_tables_that_are_left_out_of_the_mapping():
    some = router({"from": "shop.*", "except": ["shop.copy_*"]})
    assert statements("ALTER TABLE copy_t ADD c INT", some) == []
    assert statements("CREATE TABLE copy_t (a INT)", some) == []
    assert statements("RENAME TABLE copy_t TO copy_u", some) == []
    for text in ("RENAME TABLE copy_t TO t", "RENAME TABLE t TO copy_t"):
        with pytest.raises(FatalError):
            plan(text, some)
