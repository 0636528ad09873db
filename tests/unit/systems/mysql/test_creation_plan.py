"""The plan of a target table: what the mapping and the target's product make of the source's."""

import pytest

from setl.channel.routes.routing import Route
from setl.codec.sql.column_definition import column_definition
from setl.codec.sql.created_table import definitions_of
from setl.codec.sql.table_keys import table_options
from setl.errors import ConfigurationError
from setl.model.schema import Column, Kind, RowSchema
from setl.systems.mysql.creation.dialect import Dialect
from setl.systems.mysql.creation.expression import is_portable, renamed
from setl.systems.mysql.creation.plan import DescribedTable, plan_table

COLLATIONS_OF_MYSQL = """
    utf8mb4_0900_ai_ci utf8mb4_0900_as_ci utf8mb4_0900_as_cs utf8mb4_0900_bin utf8mb4_bin
    utf8mb4_de_pb_0900_ai_ci utf8mb4_general_ci latin1_swedish_ci latin1_bin gb18030_chinese_ci"""
COLLATIONS_OF_MARIADB = """
    utf8mb4_uca1400_nopad_ai_ci utf8mb4_uca1400_ai_ci utf8mb4_uca1400_german2_nopad_ai_ci
    utf8mb4_uca1400_nopad_as_cs utf8mb4_nopad_bin utf8mb4_bin utf8mb4_general_ci
    latin1_swedish_ci latin1_bin latin1_nopad_bin latin1_swedish_nopad_ci"""


def with_charsets(collations):
    return {name: name.partition("_")[0] for name in collations.split()}


MYSQL = Dialect(False, "MySQL 9.7", (9, 7), with_charsets(COLLATIONS_OF_MYSQL))
MARIADB = Dialect(True, "MariaDB 11.8", (11, 8), with_charsets(COLLATIONS_OF_MARIADB))
OLD_MARIADB = Dialect(True, "MariaDB 10.11", (10, 11), MARIADB.collations)


def table(text, *columns, key=(0,)):
    names = [d.column for d in definitions_of(text) if d.column]
    made = tuple(Column(name, Kind.INTEGER) for name in names)
    collations = dict.fromkeys(columns, "utf8mb4_0900_ai_ci")
    schema = RowSchema("shop", "t", made, key)
    return DescribedTable(schema, text, collations, "utf8mb4_general_ci")


def planned(source, here, there, computed=(), **route):
    plan = plan_table(source, Route(0, ("x", "y"), **route), computed, here, there)
    return plan.statement(), plan


UNICODE = "utf8mb4_0900_ai_ci"
WORDS = "`id` int NOT NULL, `name` varchar(9) COLLATE utf8mb4_0900_ai_ci DEFAULT NULL"


@pytest.mark.parametrize(
    ("key", "collation"),
    [("", "utf8mb4_uca1400_nopad_ai_ci"), (", UNIQUE KEY `u` (`name`)", "utf8mb4_nopad_bin")],
)
def test_a_collation_that_the_target_lacks(key, collation):
    source = table(f"CREATE TABLE `t` ({WORDS}, PRIMARY KEY (`id`){key})", "name")
    text, plan = planned(source, MYSQL, MARIADB)
    assert f"`name` varchar(9) CHARACTER SET utf8mb4 COLLATE {collation} NULL DEFAULT NULL" in text
    assert any("utf8mb4_0900_ai_ci" in note for note in plan.notes)


@pytest.mark.parametrize(
    ("collation", "there", "keyed", "nearest"),
    [
        ("utf8mb4_general_ci", MARIADB, True, "utf8mb4_general_ci"),
        ("utf8mb4_de_pb_0900_ai_ci", MARIADB, False, "utf8mb4_uca1400_german2_nopad_ai_ci"),
        ("utf8mb4_uca1400_german2_nopad_ai_ci", MYSQL, False, "utf8mb4_de_pb_0900_ai_ci"),
        ("utf8mb4_uca1400_ai_ci", MYSQL, False, "utf8mb4_0900_ai_ci"),
        ("utf8mb4_uca1400_ai_ci", MYSQL, True, "utf8mb4_bin"),  # both pad
        ("utf8mb4_nopad_bin", MYSQL, False, "utf8mb4_0900_bin"),
        ("latin1_swedish_nopad_ci", MYSQL, True, "utf8mb4_0900_bin"),  # latin1_bin pads
        ("utf8mb4_0900_as_cs", MARIADB, False, "utf8mb4_uca1400_nopad_as_cs"),
        ("gb18030_chinese_ci", MARIADB, True, "utf8mb4_bin"),
        ("gb18030_chinese_ci", MARIADB, False, "utf8mb4_uca1400_nopad_ai_ci"),
    ],
)
def test_the_nearest_collation(collation, there, keyed, nearest):
    assert there.nearest(collation, keyed=keyed) == nearest


@pytest.mark.parametrize(("keyed", "chosen"), [(True, "utf8mb4_nopad_bin"), (False, UNICODE)])
def test_a_namesake_of_the_other_family_is_not_for_keys(keyed, chosen):
    names = {**MARIADB.collations, UNICODE: "utf8mb4"}
    there = Dialect(True, "MariaDB 11.8", (11, 8), names)
    assert there.nearest(UNICODE, keyed=keyed, foreign=True) == chosen
    assert there.nearest(UNICODE, keyed=keyed) == UNICODE


def test_columns_between_the_products():
    source = table(
        "CREATE TABLE `t` (`id` int NOT NULL AUTO_INCREMENT, `j` json DEFAULT NULL,"
        " `v` vector(3) DEFAULT NULL, `g` geomcollection /*!80003 SRID 0 */ DEFAULT NULL,"
        " `h` int NOT NULL /*!80023 INVISIBLE */, `k` int DEFAULT (rand()),"
        " `l` int DEFAULT (1 + 2), `s` int GENERATED ALWAYS AS ((`id` + 1)) STORED,"
        " `w` int GENERATED ALWAYS AS (weight_string(`id`)) VIRTUAL,"
        " `at` datetime(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),"
        " PRIMARY KEY (`id`), UNIQUE KEY `f` ((`id` + 1)), FULLTEXT KEY `x` (`j`)"
        " /*!50100 WITH PARSER `ngram` */ , CONSTRAINT `c` CHECK ((`id` > 0)),"
        " CONSTRAINT `d` CHECK ((`id` > 1)) /*!80016 NOT ENFORCED */) ENGINE=InnoDB"
        " DEFAULT CHARSET=utf8mb4 COMMENT='it''s' /*!50100 PARTITION BY HASH (`id`) PARTITIONS 4 */"
    )
    text, plan = planned(source, MYSQL, MARIADB)
    for expected in (
        "`id` int NOT NULL AUTO_INCREMENT",
        "COLLATE utf8mb4_bin NULL DEFAULT NULL CHECK (json_valid(`j`))",
        "`v` vector(3) NULL",
        "`g` geometrycollection NULL",
        "`h` int NOT NULL,",
        "`k` int NULL,",
        "`l` int NULL DEFAULT (1 + 2)",
        "`s` int GENERATED ALWAYS AS ((`id` + 1)) STORED",
        "`w` int NULL,",
        "`at` datetime(3) NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)",
        "CHECK ((`id` > 0))",
        "COMMENT='it''s'\nPARTITION BY HASH (`id`) PARTITIONS 4",
    ):
        assert expected in text
    assert "`id` > 1" not in text
    assert "KEY `f`" not in text
    assert "ngram" not in text
    assert len(plan.notes) == 6, plan.notes
    with pytest.raises(ConfigurationError, match="v is VECTOR, which MariaDB"):
        planned(source, MYSQL, OLD_MARIADB)


def test_mariadbs_own_types_and_defaults():
    source = table(
        "CREATE TABLE `t` (`id` int(11) NOT NULL, `t` text DEFAULT 'x', `u` varchar(40) DEFAULT"
        " uuid(), `d` datetime(3) DEFAULT current_timestamp(), `e` varchar(9) DEFAULT 'a?',"
        " `h` int(11) INVISIBLE DEFAULT 3, PRIMARY KEY (`id`), UNIQUE KEY `l` (`t`) USING HASH)"
        " ENGINE=Aria DEFAULT CHARSET=utf8mb4 PAGE_CHECKSUM=1"
    )
    text, plan = planned(source, MARIADB, MYSQL)
    assert "`t` text NULL DEFAULT ('x')" in text
    assert "`u` varchar(40) NULL DEFAULT (uuid())" in text
    assert "`d` datetime(3) NULL DEFAULT CURRENT_TIMESTAMP(3)" in text
    assert "`e` varchar(9) NULL," in text
    assert "`h` int(11) NULL DEFAULT 3 INVISIBLE" in text
    assert text.endswith("ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci")
    assert len(plan.notes) == 3, plan.notes
    address = table("CREATE TABLE `t` (`id` inet6 NOT NULL, PRIMARY KEY (`id`))")
    assert "inet6" in planned(address, MARIADB, OLD_MARIADB)[0]
    with pytest.raises(ConfigurationError, match="id is INET6, which MySQL"):
        planned(address, MARIADB, MYSQL)


def test_what_a_mapping_does():
    source = table(
        "CREATE TABLE `t` (`id` int NOT NULL AUTO_INCREMENT, `a` int DEFAULT NULL,"
        " `b` int DEFAULT NULL, `c` int GENERATED ALWAYS AS ((`a` + 1)) VIRTUAL,"
        " KEY `by_id` (`id`), KEY `by_a` (`a` DESC,`id`), KEY `by_b` (`b`),"
        " CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `t` (`id`), CONSTRAINT `g` CHECK ((`b` > 1)),"
        " CONSTRAINT `h` CHECK ((`a` > 1)) /*!80016 NOT ENFORCED */)",
        key=(),
    )
    text, plan = planned(
        source,
        MYSQL,
        MYSQL,
        [Column("sum", Kind.DECIMAL, 12, 2)],
        exclude=("b",),
        renames={"aa": "a"},
        expressions={"sum": "1"},
        key=("id",),
    )
    assert plan.definitions == (
        "`id` int NOT NULL AUTO_INCREMENT",
        "`aa` int DEFAULT NULL",
        "`c` int GENERATED ALWAYS AS ((`aa` + 1)) VIRTUAL",
        "`sum` DECIMAL(12,2) NULL",
        "PRIMARY KEY (`id`)",
        "KEY `by_id` (`id`)",
        "CHECK ((`aa` > 1)) /*!80016 NOT ENFORCED */",
    )
    assert plan.later == ("KEY `by_a` (`aa` DESC, `id`)",)
    assert "`by_a`" in text
    assert "`by_a`" not in plan.statement(whole=False)
    assert [note.split(" ")[:3] for note in plan.notes] == [
        ["the", "key", "by_b"],
        ["left", "out:", "CHECK"],
        ["it", "has", "no"],
    ]


def test_a_key_stays_with_its_counter():
    source = table(
        "CREATE TABLE `t` (`id` int NOT NULL AUTO_INCREMENT, `a` int NOT NULL, PRIMARY KEY (`a`),"
        " KEY `k` (`id`), KEY `l` (`id`,`a`))"
    )
    assert planned(source, MYSQL, MYSQL)[1].later == ("KEY `l` (`id`,`a`)",)


@pytest.mark.parametrize("word", ["enum", "set"])
def test_labels_that_nobody_is_sure_of(word):
    source = table(f"CREATE TABLE `t` (`id` {word}('a?','b') NOT NULL, PRIMARY KEY (`id`))")
    with pytest.raises(ConfigurationError, match="question mark"):
        planned(source, MYSQL, MYSQL)


def test_a_type_that_no_column_has():
    source = table("CREATE TABLE `t` (`id` int NOT NULL, PRIMARY KEY (`id`))")
    computed = [Column("all", Kind.ROWS)]
    with pytest.raises(ConfigurationError, match="no column of a table holds"):
        planned(source, MYSQL, MYSQL, computed, expressions={"all": "1"})


@pytest.mark.parametrize(
    ("text", "names", "result"),
    [
        ("`a` + 'a`b'", {"a": "x`y"}, "`x``y` + 'a`b'"),
        ("`A`", {"a": "b"}, "`b`"),
        ("`a` + `b`", {"a": "b"}, None),
    ],
)
def test_expressions_are_renamed(text, names, result):
    assert renamed(text, names) == result


@pytest.mark.parametrize(
    ("text", "exact", "portable"),
    [
        ("(`a` + 1.5) * 2", True, True),
        ("concat(_utf8mb4'x',`a`)", True, True),
        (r"concat(_utf8mb4'a\\b',`a`)", True, False),  # MariaDB would take \b for a backspace
        (r"concat(_utf8mb4'\'',`a`)", True, False),
        ("concat(_utf8mb4'é',`a`)", True, False),
        ("concat('é',`a`)", True, True),
        ("md5(`a`)", False, False),
        ("upper(`a`)", True, False),
        ("upper(`a`)", False, True),
        ("regexp_like(`a`,'x')", False, False),
        ("nextval(`db`.`seq`)", False, False),
        ("`db`.`f`(`a`)", False, False),
    ],
)
def test_what_both_products_understand(text, exact, portable):
    assert is_portable(text, exact=exact) is portable


@pytest.mark.parametrize("there", [MYSQL, MARIADB])
def test_what_mysql_cannot_show_of_an_expression_is_not_guessed(there):
    source = table(
        "CREATE TABLE `t` (`id` int NOT NULL, `n` int DEFAULT NULL,"
        " `g` varchar(9) GENERATED ALWAYS AS (concat(_utf8mb4'????',`id`)) STORED,"
        " `h` varchar(9) GENERATED ALWAYS AS (concat(_utf8mb4'x',`id`)) STORED COMMENT '?',"
        " `d` varchar(9) DEFAULT (concat(_latin1'?')), PRIMARY KEY (`id`),"
        " UNIQUE KEY `u` ((concat(`id`,_utf8mb4'????'))), KEY `k` (`n`) COMMENT '?',"
        " CONSTRAINT `c` CHECK ((`id` <> _utf8mb4'????')), CONSTRAINT `e` CHECK ((`id` > 0)))"
    )
    text, plan = planned(source, MYSQL, there)
    assert "????" not in text
    assert "_latin1" not in text
    assert "(concat(_utf8mb4'x',`id`)) STORED" in text
    assert "KEY `k` (`n`)" in text + " ".join(plan.later)
    assert "(`id` > 0)" in text
    for start in ("g is a plain column", "d has no default", "the key u is left", "left out: ?"):
        assert any(note.startswith(start) for note in plan.notes), start


def test_a_column_is_read_whole():
    text = (
        "CREATE TABLE `t` (`a``b` varchar(20) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL"
        " DEFAULT 'it''s, (' COMMENT 'NOT NULL' CHECK (`a``b` <> ''), `n` decimal(3,1) unsigned"
        " zerofill DEFAULT -1.5, `f` enum('a(','b') DEFAULT 'b')"
    )
    a, n, f = (column_definition(d) for d in definitions_of(text))
    assert (a.name, a.type, a.charset, a.collation) == (
        "a`b",
        "varchar(20)",
        "latin1",
        "latin1_bin",
    )
    assert (a.nullable, a.default, a.comment, a.check) == (
        False,
        "'it''s, ('",
        "'NOT NULL'",
        "`a``b` <> ''",
    )
    assert (n.type, n.default, n.base_type) == ("decimal(3,1) unsigned zerofill", "-1.5", "decimal")
    assert (f.type, f.default) == ("enum('a(','b')", "'b'")


def test_options_are_read():
    text = (
        "CREATE TABLE `t` (`a` int) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4"
        " COLLATE=utf8mb4_bin KEY_BLOCK_SIZE=8 DATA DIRECTORY='/x y/' COMMENT='PARTITION BY'\n"
        "/*!50100 PARTITION BY RANGE (`a`)\n(PARTITION p VALUES LESS THAN MAXVALUE) */"
    )
    found = table_options(text)
    assert found.values["COMMENT"] == "'PARTITION BY'"
    assert found.values["DATA DIRECTORY"] == "'/x y/'"
    assert list(found.values) == [
        "ENGINE", "AUTO_INCREMENT", "DEFAULT CHARSET", "COLLATE", "KEY_BLOCK_SIZE",
        "DATA DIRECTORY", "COMMENT",
    ]  # fmt: skip
    assert found.partitions == ("PARTITION BY RANGE (`a`)\n(PARTITION p VALUES LESS THAN MAXVALUE)")


def test_a_default_from_a_sequence_is_left_out():
    source = table(
        "CREATE TABLE `t` (`id` int NOT NULL DEFAULT nextval(`x`.`s`), PRIMARY KEY (`id`))"
    )
    text, plan = planned(source, MARIADB, MARIADB)
    assert "nextval" not in text
    assert any("takes numbers of a sequence" in note for note in plan.notes)
