"""What `setl check` prints for a table that the target lacks makes the same table there."""

import pytest

from setl.channel.routes.routing import Route
from setl.codec.sql.created_table import definitions_of
from setl.systems.mysql.catalog import read_table
from setl.systems.mysql.creation.reading import Planner
from setl.systems.mysql.preflight.new_tables import statements_of
from setl.systems.mysql.server import Server
from setl.systems.mysql.table_facts import TableText
from tests.integration.pipelines import execute, on_both
from tests.loading import endpoint_of

TABLES = {
    "two_foreign_keys": (
        "CREATE TABLE {db}.c (id INT PRIMARY KEY, x INT, y INT, z INT,"
        " CONSTRAINT f1 FOREIGN KEY (x) REFERENCES {db}.p (id) ON DELETE CASCADE,"
        " CONSTRAINT f2 FOREIGN KEY (y) REFERENCES {db}.p (id),"
        " CONSTRAINT `f(3),` FOREIGN KEY (z) REFERENCES {db}.p (id) ON UPDATE SET NULL)"
    ),
    "texts": (
        "CREATE TABLE {db}.c (`a``b, (c` INT PRIMARY KEY AUTO_INCREMENT COMMENT 'it''s\\n),"
        " AUTO_INCREMENT=9 CONSTRAINT `f` FOREIGN KEY (`a`)', e ENUM('(', ',', 'x''y', '\\\\')"
        " NOT NULL DEFAULT ',', d VARCHAR(20) DEFAULT '/*! a */ -- \" b') AUTO_INCREMENT=77"
        " COMMENT=') AUTO_INCREMENT=3 -- '"
    ),
    "checks_and_generated": (
        "CREATE TABLE {db}.c (id INT, a INT NOT NULL DEFAULT 3 CHECK (a > 0 AND a <> 5),"
        " b INT GENERATED ALWAYS AS (a + 1) VIRTUAL, s VARCHAR(40) GENERATED ALWAYS AS"
        " (concat('(', a, ',)')) STORED, PRIMARY KEY (id), UNIQUE KEY u (a, b),"
        " CONSTRAINT only_small CHECK (id < 100 OR s IN ('(', ')')))"
    ),
    "partitions": (
        "CREATE TABLE {db}.c (id INT NOT NULL, d DATE NOT NULL, PRIMARY KEY (id, d)) PARTITION BY"
        " RANGE (YEAR(d)) (PARTITION p1 VALUES LESS THAN (2020), PARTITION p2 VALUES LESS THAN"
        " MAXVALUE)"
    ),
    "charsets": (
        "CREATE TABLE {db}.c (id INT PRIMARY KEY, a CHAR(3) CHARACTER SET latin1"
        " COLLATE latin1_bin, b TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci,"
        " c TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE"
        " CURRENT_TIMESTAMP(6), g POINT NOT NULL, SPATIAL KEY (g),"
        " FULLTEXT KEY (b)) DEFAULT CHARSET=latin1 COLLATE=latin1_german1_ci ROW_FORMAT=DYNAMIC"
    ),
    "foreign_keys_only_behind": (
        "CREATE TABLE {db}.c (x INT, CONSTRAINT f1 FOREIGN KEY (x) REFERENCES {db}.p (id))"
    ),
}
MYSQL = {
    "functional_keys": (
        "CREATE TABLE {db}.c (id INT PRIMARY KEY, j JSON DEFAULT (JSON_ARRAY(1, 2)),"
        " h INT INVISIBLE COMMENT 'h', v VECTOR(3), x INT, UNIQUE KEY f ((id + 1)),"
        " KEY m ((CAST(j->'$.a' AS UNSIGNED ARRAY))), KEY i (h DESC) INVISIBLE,"
        " CONSTRAINT f1 FOREIGN KEY (x) REFERENCES {db}.p (id),"
        " CONSTRAINT f2 FOREIGN KEY (h) REFERENCES {db}.p (id), CHECK (x > 1) NOT ENFORCED)"
    ),
}
MARIADB = {
    "mariadbs_own": (
        "CREATE TABLE {db}.c (id INT PRIMARY KEY, j JSON, h INT INVISIBLE DEFAULT 3, u UUID,"
        " c VARCHAR(99) COMPRESSED, t INT DEFAULT (id + 1), KEY k (h) IGNORED, x INT,"
        " CONSTRAINT f1 FOREIGN KEY (x) REFERENCES {db}.p (id),"
        " CONSTRAINT f2 FOREIGN KEY (h) REFERENCES {db}.p (id)) PAGE_CHECKSUM=1"
    ),
}


db = on_both("made", "CREATE TABLE {db}.p (id INT PRIMARY KEY)")


def stored(text):
    """A table's columns, keys and options, but for what is left out on purpose."""
    found = list(definitions_of(text))
    rest = text[found[-1].end :].replace(" AUTO_INCREMENT=77", "", 1)
    columns = [d.text for d in found if d.column]
    # Keys that could come after rows stand behind the others.
    return columns, sorted(d.text for d in found if not (d.column or d.is_foreign_key)), rest


def of(family, tables):
    only = pytest.mark.family(family, why="features of this family")
    return [pytest.param(name, marks=only) for name in tables]


@pytest.mark.parametrize("which", [*TABLES, *of("mysql", MYSQL), *of("mariadb", MARIADB)])
def test_the_statement_makes_the_same_table(servers, db, which):
    a, b = servers
    execute(a, (TABLES | MYSQL | MARIADB)[which].format(db=db))
    name = "d``d" if which == "texts" else "c"
    with Server.opened(endpoint_of(a)) as source, Server.opened(endpoint_of(b)) as target:
        there = TableText.read(source, db, "c")
        schema = read_table(source.connection, db, "c")
        assert schema is not None
        planner = Planner(source, target)
        plan = planner.plan(schema, Route(0, (db, name)), ())
        statement, *more = [s.removesuffix(";") for s in statements_of(planner, plan)]
        assert not more
        assert "FOREIGN KEY (`x`)" not in statement
        execute(b, statement, statement)
        made = TableText.read(target, db, name)
    assert stored(made.text) == stored(there.text)
    for definition in definitions_of(there.text):
        own = any(word in definition.text for word in ("GENERATED", " CHECK "))
        if definition.column and not own:
            fresh = there.definition(definition.column, "n,(n")
            execute(b, f"ALTER TABLE {db}.p ADD COLUMN {fresh}", f"ALTER TABLE {db}.p DROP `n,(n`")
