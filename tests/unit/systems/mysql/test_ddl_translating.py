"""Schema changes in the words of a server that lacks a collation, or is of the other family."""

import pytest

from setl.codec.sql.table_ddl import parse_table_ddl
from setl.systems.mysql.creation.dialect import Dialect
from setl.systems.mysql.ddl.table_state import TargetTable
from setl.systems.mysql.ddl.translating import translated

_NAMES = (
    ["general_ci", "bin", "unicode_ci", "unicode_520_ci"],
    ["nopad_bin", "uca1400_ai_ci", "uca1400_nopad_ai_ci", "uca1400_nopad_as_cs"],
    ["0900_ai_ci", "0900_as_cs", "0900_bin"],
)


def known(*names):
    found = {f"utf8mb4_{name}": "utf8mb4" for name in names}
    return found | {"latin1_swedish_ci": "latin1", "latin1_bin": "latin1", "binary": "binary"}


MARIADB = Dialect(True, "MariaDB 10.11", (10, 11), known(*_NAMES[0], *_NAMES[1]))
MYSQL = Dialect(False, "MySQL 9.7", (9, 7), known(*_NAMES[0], *_NAMES[2]))
NEAREST = "utf8mb4_uca1400_nopad_ai_ci"
BYTES = "CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"


NEW = TargetTable()


def said(statement, there=MARIADB, table=NEW, *, mariadb=None):
    ddl = parse_table_ddl(statement, "d")
    assert ddl is not None
    return translated(ddl, there, table, mariadb=not there.mariadb if mariadb is None else mariadb)


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        (
            "CREATE TABLE t (id INT PRIMARY KEY, c TEXT) COLLATE utf8mb4_0900_ai_ci",
            f"CREATE TABLE t (id INT PRIMARY KEY, c TEXT) COLLATE {NEAREST}",
        ),
        (
            ("CREATE TABLE t (k VARCHAR(9) NOT NULL, v CHAR (3) COLLATE utf8mb4_0900_as_cs,"
            " c CHAR(3) CHARSET latin1, PRIMARY KEY (k)) DEFAULT CHARSET=utf8mb4"
            " COLLATE=utf8mb4_0900_ai_ci"),
            (f"CREATE TABLE t (k VARCHAR(9) {BYTES} NOT NULL, v CHAR (3) COLLATE"
            " utf8mb4_uca1400_nopad_as_cs, c CHAR(3) CHARSET latin1, PRIMARY KEY (k)) DEFAULT"
            f" CHARSET=utf8mb4 COLLATE={NEAREST}"),
        ),
        (
            "ALTER TABLE t ADD c CHAR(3) CHARACTER SET gb18030 NULL, ALGORITHM=INSTANT",
            (f"ALTER TABLE t ADD c CHAR(3) CHARACTER SET utf8mb4 COLLATE {NEAREST} NULL,"
            " ALGORITHM=DEFAULT"),
        ),
        (
            "ALTER TABLE t DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci, ADD n INT",
            f"ALTER TABLE t DEFAULT CHARACTER SET utf8mb4 COLLATE {NEAREST}, ADD n INT",
        ),
        (
            ("CREATE TABLE t (a INT, g INT GENERATED ALWAYS AS (a + 1) STORED NULL,"
            " h INT AS (a) VIRTUAL NOT NULL COMMENT 'x', p GEOMCOLLECTION NOT NULL SRID 4326,"
            " v INT NOT NULL /*!80023 INVISIBLE */, KEY i (a) /*!80000 INVISIBLE */)"
            " ENGINE=InnoDB ENCRYPTION='N' COMMENT='c'"),
            ("CREATE TABLE t (a INT, g INT GENERATED ALWAYS AS (a + 1) STORED ,"
            " h INT AS (a) VIRTUAL COMMENT 'x', p GEOMETRYCOLLECTION NOT NULL REF_SYSTEM_ID=4326,"
            " v INT NOT NULL , KEY i (a) IGNORED ) ENGINE=InnoDB COMMENT='c'"),
        ),
        (
            ("CREATE TABLE t (a CHAR(3), b INT INVISIBLE,"
            " g CHAR(3) GENERATED ALWAYS AS (LEFT(a, 1))"
            " STORED NOT NULL COMMENT 'x', h INT AS (UNIX_TIMESTAMP()) STORED,"
            " `i` INT AS (`b` + B), PRIMARY KEY (b))"),
            ("CREATE TABLE t (a CHAR(3), b INT , g CHAR(3) NOT NULL COMMENT 'x', h INT ,"
            " `i` INT AS (`b` + B), PRIMARY KEY (b))"),
        ),
        ("CREATE INDEX i ON t (a) VISIBLE LOCK=NONE", "CREATE INDEX i ON t (a) LOCK=DEFAULT"),
        ("DROP TABLE t", "DROP TABLE t"),
    ],
)  # fmt: skip
def test_what_a_mariadb_reads_of_a_mysql(statement, wanted):
    assert " ".join(said(statement).text.split()) == wanted


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        (
            (
                "CREATE TABLE t (k VARCHAR(9) COLLATE uca1400_ai_ci UNIQUE, c TEXT) CHARSET=utf8mb4"
                " COLLATE=utf8mb4_uca1400_ai_ci ENGINE=Aria PAGE_CHECKSUM=1"
            ),
            (
                "CREATE TABLE t (k VARCHAR(9) COLLATE utf8mb4_bin UNIQUE, c TEXT) CHARSET=utf8mb4"
                " COLLATE=utf8mb4_0900_ai_ci ENGINE=InnoDB "
            ),
        ),
        (
            (
                "CREATE TABLE t (a CHAR(4) NULL DEFAULT 'x', b INT DEFAULT NULL, c INT NULL,"
                " PRIMARY KEY (a, b))"
            ),
            (
                "CREATE TABLE t (a CHAR(4) NOT NULL DEFAULT 'x', b INT , c INT NULL,"
                " PRIMARY KEY (a, b))"
            ),
        ),
        (
            (
                "ALTER TABLE t ADD b TEXT NOT NULL DEFAULT 'x' AFTER a,"
                " ADD u CHAR(36) DEFAULT uuid(), ADD g INT AS (a) PERSISTENT,"
                " ADD x INT DEFAULT -1 COMMENT 'd', ADD y JSON DEFAULT"
                " NULL, MODIFY at TIMESTAMP(3) NULL DEFAULT current_timestamp() ON UPDATE now(6)"
            ),
            (
                "ALTER TABLE t ADD b TEXT NOT NULL DEFAULT ('x') AFTER a, ADD u CHAR(36) DEFAULT"
                " (uuid()), ADD g INT AS (a) STORED, ADD x INT DEFAULT -1 COMMENT 'd', ADD y JSON"
                " DEFAULT NULL, MODIFY at TIMESTAMP(3) NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE"
                " CURRENT_TIMESTAMP(3)"
            ),
        ),
    ],
)
def test_what_a_mysql_reads_of_a_mariadb(statement, wanted):
    assert said(statement, MYSQL).text == wanted


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        (
            (
                "CREATE TABLE t (engine INT CHECK (engine = memory), memory INT) ENGINE = MyISAM"
                " ROW_FORMAT=FIXED COMMENT='ENGINE=CSV'"
            ),
            (
                "CREATE TABLE t (engine INT CHECK (engine = memory), memory INT) ENGINE = InnoDB"
                " COMMENT='ENGINE=CSV'"
            ),
        ),
        (
            "CREATE TABLE t (a INT) PAGE_CHECKSUM=1 ENGINE maria TRANSACTIONAL=1",
            "CREATE TABLE t (a INT) ENGINE InnoDB ",
        ),
        (
            (
                "CREATE TABLE t (a INT) ENGINE=MyISAM PARTITION BY RANGE (a) (PARTITION engine"
                " VALUES LESS THAN (1) ENGINE = MyISAM, PARTITION q VALUES LESS THAN (2))"
            ),
            (
                "CREATE TABLE t (a INT) ENGINE=InnoDB PARTITION BY RANGE (a) (PARTITION engine"
                " VALUES LESS THAN (1) ENGINE = InnoDB, PARTITION q VALUES LESS THAN (2))"
            ),
        ),
        (
            "ALTER TABLE t ENGINE=`memory`, CHANGE engine memory INT",
            "ALTER TABLE t ENGINE=InnoDB, CHANGE engine memory INT",
        ),
        ("ALTER TABLE t ENGINE=InnoDB ROW_FORMAT=COMPACT", ""),
        ("CREATE TABLE t (a INT) ENGINE=RocksDB ROW_FORMAT=FIXED", ""),
        ("CREATE TABLE t (a INT) ENGINE=MRG_MyISAM", ""),
    ],
)
def test_an_engine_without_transactions(statement, wanted):
    found = said(statement, mariadb=True)
    assert " ".join(found.text.split(" ")).replace("  ", " ") == (wanted or statement)
    assert bool(found.notes) == bool(wanted)


def test_keys_of_the_target_never_take_two_rows_for_one():
    table = TargetTable(NEAREST, frozenset({"k"}))
    assert said("ALTER TABLE t MODIFY k VARCHAR(99) NOT NULL", table=table).text == (
        f"ALTER TABLE t MODIFY k VARCHAR(99) {BYTES} NOT NULL"
    )
    change = "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci"
    assert said(change, table=table).text.endswith("COLLATE utf8mb4_nopad_bin")
    assert said(change, table=TargetTable(NEAREST)).text.endswith(f"COLLATE {NEAREST}")


def test_an_older_server_of_the_family_gets_the_nearest_collation():
    old = Dialect(True, "MariaDB 10.5", (10, 5), known(*_NAMES[0]))
    change = "ALTER TABLE t ADD c CHAR(3) COLLATE utf8mb4_uca1400_ai_ci, ALGORITHM=INSTANT"
    found = said(change, old, mariadb=True)
    assert found.text == change.replace("uca1400_ai_ci", "unicode_520_ci")
    assert found.notes == (
        (
            "c has the collation utf8mb4_unicode_520_ci, since MariaDB 10.5 has no"
            " utf8mb4_uca1400_ai_ci"
        ),
    )
    assert said(change, MARIADB, mariadb=True) == (change, ())


def test_what_is_computed_when_it_is_read_stays_so():
    virtual = "CREATE TABLE t (at TIMESTAMP, v DATETIME AS (at + INTERVAL 1 DAY){})"
    for kind in ("", " VIRTUAL"):
        assert said(virtual.format(kind)).text == virtual.format(kind)
    assert said(virtual.format(" STORED")).text.endswith("(at TIMESTAMP, v DATETIME )")
    divided = "CREATE TABLE t (a INT, at TIME, v DOUBLE AS (a / 3), w DOUBLE AS (at / 3))"
    assert said(divided).text == divided.replace("v DOUBLE AS (a / 3)", "v DOUBLE ")
    text = "CREATE TABLE t (a BLOB, v CHAR(32) AS (MD5(a)), w INT AS (LENGTH(a)))"
    plain = "CREATE TABLE t (a BLOB, v CHAR(32) , w INT AS (LENGTH(a)))"
    assert said(text, MYSQL).text == plain
    assert said(text.replace("MD5", "CRC32"), MYSQL).text == text.replace("MD5", "CRC32")
    # Of a TIME, a date is one without a year, or today's.
    day = "CREATE TABLE t (at TIME, v INT AS (TO_DAYS(at)), w INT AS (HOUR(at)))"
    assert said(day).text == day
    assert said(day, MYSQL).text == day.replace("v INT AS (TO_DAYS(at))", "v INT ")
    day = day.replace("(TO_DAYS(at))", "(TO_DAYS(at)) STORED")
    assert said(day).text == day.replace("v INT AS (TO_DAYS(at)) STORED", "v INT ")


def test_a_mysql_has_no_key_over_a_whole_text():
    keys = "KEY i (`b`, n), UNIQUE KEY u (b), UNIQUE v (b(9)), FULLTEXT KEY f (b)"
    found = said(f"CREATE TABLE t (n INT PRIMARY KEY, b TEXT, {keys})", MYSQL)
    assert found.text == (
        "CREATE TABLE t (n INT PRIMARY KEY, b TEXT, KEY i (`b`(191), n), UNIQUE v (b(9)), FULLTEXT"
        " KEY f (b))"
    )
    assert found.notes == ("left out: UNIQUE KEY u ( b ), since b has no length there",)
    table = TargetTable(primary=("k",))
    found = said("ALTER TABLE t MODIFY k INT NULL, MODIFY v INT NULL", MYSQL, table)
    assert found.text == "ALTER TABLE t MODIFY k INT NOT NULL, MODIFY v INT NULL"


def test_utf8_has_two_names():
    change = "ALTER TABLE t ADD c CHAR(3) CHARACTER SET utf8 COLLATE utf8{}_unicode_ci"
    for here, there in (("", "mb3"), ("mb3", "")):
        name = f"utf8{there}"
        server = Dialect(True, "x", (10, 5), {f"{name}_unicode_ci": name, f"{name}_bin": name})
        assert said(change.format(here), server, mariadb=True) == (change.format(there), ())


def test_a_table_with_another_character_set_stores_its_keys():
    statement = "CREATE TABLE t (k CHAR(3) PRIMARY KEY) CHARSET=latin1"
    assert said(statement, table=TargetTable(NEAREST)).text == statement
