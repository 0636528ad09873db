import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.codec.sql.created_table import (
    ForeignKey,
    definitions_of,
    foreign_key_of,
    without_next_number,
)
from setl.codec.sql.grants import Grant, read_grant
from setl.codec.sql.names import listed, name_of, read_name
from setl.codec.sql.table_ddl import parse_table_ddl
from setl.codec.sql.tokens import Quoting, text_of, tokenize
from setl.systems.mysql.column_labels import are_alike, labels_of, may_be_alike
from setl.systems.mysql.identifiers import qualified

ANSI = Quoting(ansi=True)
PLAIN = Quoting()
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1)


@pytest.mark.parametrize(
    ("text", "quoting", "schema", "name"),
    [
        ("t", PLAIN, "", "t"),
        ("shop.t x", PLAIN, "shop", "t"),
        ("`a.b`.`c``d`", PLAIN, "a.b", "c`d"),
        ("shop /* of */ . -- all\n `t`", PLAIN, "shop", "t"),
        ("/*!50000 shop*/.t", PLAIN, "shop", "t"),
        ('"sh""op"."t"', ANSI, 'sh"op', "t"),
        ('"shop"."t"', PLAIN, "shop", "t"),  # only a name can stand there
        ("`s`.2024_orders", PLAIN, "s", "2024_orders"),
        ("größe.$t", PLAIN, "größe", "$t"),
        (".t (a INT)", PLAIN, "", "t"),
        (". `t`", PLAIN, "", "t"),
    ],
)
def test_names(text, quoting, schema, name):
    found, _ = read_name(tokenize(text, quoting), 0) or pytest.fail("no name")
    assert (found.schema, found.name) == (schema, name)


@given(NAMES, NAMES)
def test_what_is_quoted_is_read_again(schema, table):
    tokens = tokenize(qualified(schema, table))
    found, behind = read_name(tokens, 0) or pytest.fail("no name")
    assert (found.schema, found.name, behind) == (schema, table, len(tokens))


@pytest.mark.parametrize("text", ["", "'shop'", ", t", "(t)", ".", "..t", "t.", "'a'.t"])
def test_no_name(text):
    assert read_name(tokenize(text), 0) is None


def test_lists_end_at_commas_outside_parentheses_and_texts():
    held = listed(tokenize("a ENUM('x,y'), b DECIMAL(10, 2), `c,d` INT"))
    assert [name_of(tokens[0]) for tokens in held] == ["a", "b", "c,d"]


@pytest.mark.parametrize(
    ("clause", "columns"),
    [
        ("ADD a INT", ["a"]),
        ("ADD COLUMN IF NOT EXISTS `a` INT", ["a"]),
        ("ADD (a INT, `b,` ENUM(',', '('), KEY (a))", ["a", "b,"]),
        ("ADD COLUMN period INT", ["period"]),  # a word that also begins another clause
        ("ADD PERIOD FOR SYSTEM_TIME (a, b)", []),
        ("ADD UNIQUE (a)", []),
        ("DROP COLUMN a", ["a"]),
        ("DROP PRIMARY KEY", []),
        ("CHANGE a b INT", ["a"]),
        ("ENGINE = InnoDB", []),
    ],
)
def test_columns_of_a_clause(clause, columns):
    ddl = parse_table_ddl(f"ALTER TABLE t {clause}", "shop") or pytest.fail("no table")
    assert [name_of(c[0]) for clause in ddl.clauses() for c in clause.columns] == columns


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("ALTER TABLE .t ADD shop.t.c INT", "ALTER TABLE .t ADD `c` INT"),
        ("ALTER TABLE t ADD T.c INT AS (`t`.b * .5 + 1.5e3)", "ADD `c` INT AS (`b` * .5 + 1.5e3)"),
        ("ALTER TABLE t CHANGE shop.t.a t.b INT", "ALTER TABLE t CHANGE `a` `b` INT"),
        ("ALTER TABLE t ADD COLUMN IF NOT EXISTS .c INT", "ADD COLUMN IF NOT EXISTS `c` INT"),
        ("ALTER TABLE t MODIFY .c INT DEFAULT .5", "ALTER TABLE t MODIFY `c` INT DEFAULT .5"),
        ("ALTER TABLE t RENAME u.v, ORDER BY t.a, .b", "RENAME u.v, ORDER BY `a`, `b`"),
        (
            "CREATE TABLE t (t.a INT CHECK (shop.t.a > 1.5), .b INT)",
            "(`a` INT CHECK (`a` > 1.5), `b` INT)",
        ),
        ("ALTER TABLE t ADD c INT COMMENT 't.a'", "ADD c INT COMMENT 't.a'"),
        ("ALTER TABLE t ADD FOREIGN KEY (t.c) REFERENCES t.t (id)", "(`c`) REFERENCES t.t (id)"),
        ("CREATE TABLE t (t.index INT, t.`a b` INT)", "(`index` INT, `a b` INT)"),
        ("CREATE TABLE t (a INT DEFAULT NEXTVAL(t.s))", "NEXTVAL(t.s))"),
        ("CREATE TABLE t (a INT DEFAULT (NEXT VALUE FOR t.s))", "VALUE FOR t.s))"),
    ],
)
def test_columns_lose_what_says_which_table_they_are_in(text, becomes):
    ddl = parse_table_ddl(text, "shop") or pytest.fail("no table")
    assert ddl.text.endswith(becomes)


@pytest.mark.parametrize(
    ("written", "no_backslash", "text"),
    [
        ("'a'", False, "a"),
        ("'it''s'", False, "it's"),
        (r"'it\'s\n\\n\%\q'", False, "it's\n\\n\\%q"),
        (r"'C:\temp'", True, r"C:\temp"),
        ('"say ""x"" \'"', False, 'say "x" \''),
    ],
)
def test_texts(written, no_backslash, text):
    (token,) = tokenize(written, Quoting(no_backslash=no_backslash))
    assert text_of(token, no_backslash=no_backslash) == text


def test_labels():
    written = r"""enum('it''s','b\\x','say "x"','n\nl','`q`','a,b)')"""
    assert labels_of(written) == ("it's", "b\\x", 'say "x"', "n\nl", "`q`", "a,b)")
    assert labels_of("varchar(20)") == ()


@pytest.mark.parametrize(
    ("labels", "collation", "asked"),
    [
        ("mn", "utf8mb4_general_ci", False),
        ("mM", "utf8mb4_general_ci", True),
        ("mé", "utf8mb4_general_ci", True),
        ("mn", "macce_general_ci", True),  # to which they are one
        (("ccs", "cscs"), "utf8mb4_hu_0900_ai_ci", True),
    ],
)
def test_servers_are_asked_which_labels_they_take_for_one(labels, collation, asked):
    questions = []

    def ask(sql, values):
        questions.append((sql, values))
        return [(1,)]

    charset = collation.partition("_")[0]
    assert are_alike(labels, charset, collation, ask) == bool(questions) == asked


@pytest.mark.parametrize(
    ("column_type", "alike"),
    [("enum('?','x')", False), ("enum('?','a?','why')", False), ("set('x','?','?')", True)],
)
@pytest.mark.parametrize("distinguishes", [True, False])
def test_one_label_that_is_not_shown_is_like_no_other(column_type, alike, distinguishes):
    def ask(_, values):
        seen = {"".join("?" if c > "\uffff" else c for c in value) for value in values}
        return [(len(set(values) if distinguishes else seen),)]

    found = may_be_alike(column_type, "utf8mb4", "utf8mb4_general_ci", ask)
    assert found == (alike and not distinguishes)


@pytest.mark.parametrize(
    ("text", "grant"),
    [
        (
            "GRANT SELECT, REPLICATION SLAVE ON *.* TO `u`@`%` IDENTIFIED BY PASSWORD '*0'",
            Grant(frozenset({"SELECT", "REPLICATION SLAVE"}), "", to_account=True),
        ),
        (
            "GRANT ALL PRIVILEGES ON `a``b\\_%`.* TO 'x y'@'%' WITH GRANT OPTION",
            Grant(frozenset({"ALL PRIVILEGES"}), "a`b\\_%", to_account=True),
        ),
        (
            'GRANT SELECT ("a ON b"), UPDATE ON "shop".* TO "u"@"%"',
            Grant(frozenset({"SELECT", "UPDATE"}), "shop", to_account=True),
        ),
        (
            "GRANT SELECT ON `mysql`.* TO `role`",
            Grant(frozenset({"SELECT"}), "mysql", to_account=False),
        ),
        ("GRANT SELECT (`a`) ON `shop`.`t` TO `u`@`%`", None),
        ("GRANT `role`@`%` TO `u`@`%`", None),
        ("GRANT PROXY ON ''@'' TO 'root'@'localhost' WITH GRANT OPTION", None),
    ],
)
def test_grants(text, grant):
    assert read_grant(text) == grant


MADE = """CREATE TABLE `c` (
  `AUTO_INCREMENT=9` int(11) NOT NULL AUTO_INCREMENT COMMENT 'CONSTRAINT `x` FOREIGN KEY, AUTO_INCREMENT=3',
  `x` int(11) DEFAULT NULL,
  PRIMARY KEY (`AUTO_INCREMENT=9`),
  CONSTRAINT `f``1,` FOREIGN KEY (`x`, `y)`) REFERENCES `other`.`p``q` (`ON DELETE CASCADE`, `b`) ON DELETE SET NULL ON UPDATE CASCADE,
  CONSTRAINT `f2` FOREIGN KEY (`x`) REFERENCES `p` (`id`) ON DELETE NO ACTION,
  CONSTRAINT `only` CHECK (`x` > 1)
) ENGINE=InnoDB AUTO_INCREMENT=77 DEFAULT CHARSET=utf8mb4 COMMENT='AUTO_INCREMENT=5'"""  # noqa: E501


def test_foreign_keys():
    found = [key for d in definitions_of(MADE) if (key := foreign_key_of(d)) is not None]
    assert found == [
        ForeignKey(
            "f`1,",
            ("x", "y)"),
            "other",
            "p`q",
            ("ON DELETE CASCADE", "b"),
            ("ON DELETE SET NULL", "ON UPDATE CASCADE"),
        ),
        ForeignKey("f2", ("x",), "", "p", ("id",), ()),
    ]


def test_the_next_number_and_nothing_else_goes():
    assert without_next_number(MADE) == MADE.replace("AUTO_INCREMENT=77 ", "")
