"""What a statement that changes rows may write, read and call."""

import pytest

from setl.codec.sql.row_statement import parse_row_statement
from setl.codec.sql.tokens import Quoting

CHECKSUM = (
    "REPLACE INTO `percona`.`checksums` (db, tbl, chunk, chunk_index, lower_boundary,"
    " upper_boundary, this_cnt, this_crc) SELECT 'shop', 'orders', '1', NULL, NULL, NULL, COUNT(*)"
    " AS cnt, COALESCE(LOWER(CONV(BIT_XOR(CAST(CRC32(CONCAT_WS('#', `id`, CONCAT(ISNULL(`v`)))) AS"
    " UNSIGNED)), 10, 16)), 0) AS crc FROM `shop`.`orders` FORCE INDEX(`PRIMARY`) WHERE"
    " ((`id` >= '1')) /*checksum chunk*/"
)


def parsed(text, **options):
    found = parse_row_statement(text, "d", **options)
    if found is None:
        return None
    return tuple(" ".join(sorted(".".join(n) for n in names)) for names in (
        found.written, found.read, found.calls))  # fmt: skip


@pytest.mark.parametrize(("text", "written", "read", "calls"), [
    (CHECKSUM, "percona.checksums", "shop.orders", ""),
    ("INSERT INTO a.t (x, y) VALUES (1, NOW())", "a.t", "", ""),
    ("INSERT LOW_PRIORITY IGNORE t VALUES (1), (2)", "d.t", "", ""),
    ("insert into mysql.rds_heartbeat2(id, value) values (1,172) on duplicate key update value=172",
     "mysql.rds_heartbeat2", "", ""),
    ("INSERT INTO t SET a = 1", "d.t", "", ""),
    ("INSERT INTO .t VALUES (1)", "d.t", "", ""),
    ("INSERT INTO t VALUES (1) AS new(a) ON DUPLICATE KEY UPDATE b = new.a, c = 2", "d.t", "", ""),
    ("INSERT INTO t SELECT a FROM u ON DUPLICATE KEY UPDATE b = 1, c = 2", "d.t", "d.u", ""),
    ("INSERT INTO t PARTITION (p0) SELECT * FROM u PARTITION (p1) AS x, v", "d.t", "d.u d.v", ""),
    ("INSERT INTO t SELECT 1 FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM u)", "d.t", "d.u", ""),
    ("INSERT INTO t TABLE u", "d.t", "d.u", ""),
    ("INSERT INTO t WITH c (z) AS (SELECT 1 FROM u) SELECT * FROM c JOIN v USING (z)",
     "d.t", "d.u d.v", ""),
    ("INSERT INTO t SELECT TRIM(LEADING 'x' FROM y), EXTRACT(YEAR FROM z) FROM u FOR UPDATE",
     "d.t", "d.u", ""),
    ("INSERT INTO t SELECT 1 FROM (SELECT 1 FROM u) AS x, ((v JOIN w)) USE INDEX FOR JOIN (i)",
     "d.t", "d.u d.v d.w", ""),
    ("INSERT t SELECT j.x FROM JSON_TABLE('[]', '$[*]' COLUMNS (x INT PATH '$')) j", "d.t", "", ""),
    ("UPDATE t AS a SET v = (SELECT MAX(v) FROM u)", "d.t", "d.u", ""),
    ("UPDATE t, b.c SET v = 1", "b.c d.t", "", ""),
    ("UPDATE a JOIN b.c x ON a.i = x.i SET x.v = a.v", "b.c", "d.a", ""),
    ("UPDATE a JOIN b.c ON a.i = c.i SET b.c.v = 1", "b.c", "d.a", ""),
    ("UPDATE (a JOIN b USING (id)) LEFT JOIN c ON c.i = a.i SET a.x = 1, c.y = 2",
     "d.a d.c", "d.b", ""),
    ("WITH c AS (SELECT 1 FROM s.o) UPDATE t JOIN c SET t.a = 1", "d.t", "s.o", ""),
    ("UPDATE s.t JOIN d.t SET t.v = 1", "d.t s.t", "", ""),
    ("DELETE QUICK FROM t PARTITION (p0) ORDER BY 1 LIMIT 3", "d.t", "", ""),
    ("DELETE FROM s.t AS x WHERE x.a IN (SELECT b FROM u)", "s.t", "d.u", ""),
    ("DELETE x FROM s.t x JOIN u ON x.i = u.i", "s.t", "d.u", ""),
    ("DELETE FROM a.*, s.b USING a JOIN s.b USING (id) JOIN c WHERE a.x = 1", "d.a s.b", "d.c", ""),
    ("LOAD DATA INFILE 'x' INTO TABLE `t` FIELDS ENCLOSED BY '' (`a`, @b) SET c = UPPER(@b)",
     "d.t", "", ""),
    ("CREATE TABLE q.r (id INT, KEY k (id)) SELECT * FROM t", "q.r", "d.t", ""),
    ("CREATE TEMPORARY TABLE r AS SELECT f(x) FROM t", "", "d.t", "d.f"),
    ("SET STATEMENT max_statement_time=1 FOR DELETE FROM t", "d.t", "", ""),
    ("/*!50000 UPDATE */ t /* shop.x */ SET a = 1 -- , shop.y", "d.t", "", ""),
    ("SELECT `x`.`f`(1)", "", "", "x.f"),
    ("INSERT INTO t VALUES (UUID_TO_BIN('x'))", "d.t", "", "d.UUID_TO_BIN"),
    ("INSERT INTO t VALUES (`now`(), s . g (1))", "d.t", "", "d.now s.g"),
    ("UPDATE t SET a = fnv_64(b) WHERE a IN (1, 2)", "d.t", "", "d.fnv_64"),
])  # fmt: skip
def test_tables_and_functions(text, written, read, calls):
    assert parsed(text) == (written, read, calls)


@pytest.mark.parametrize("text", [
    "CALL p()", "HANDLER t OPEN", "SELECT 1", "EXECUTE s", "BINLOG 'x'", "ANALYZE DELETE FROM t",
    "INSERT INTO 'x' VALUES (1)", "INSERT INTO a.b.c VALUES (1)",
    "INSERT INTO t VALUES (NEXTVAL(s))", "INSERT INTO t VALUES (NEXT VALUE FOR s)",
    "UPDATE t FOR PORTION OF p FROM '1' TO '2' SET a = 1", "UPDATE t", "DELETE x FROM t AS y",
    "DELETE t1, nobody FROM t1", "INSERT INTO t SELECT 1 FROM u FOR SYSTEM_TIME FROM '1' TO '2'",
    "INSERT INTO t VALUES ('", "INSERT INTO t SELECT * FROM { OJ a }", "UPDATE t) SET a = 1",
    "", "INSERT INTO t VALUES (1); DELETE FROM u",
])  # fmt: skip
def test_what_is_not_understood_is_not_guessed_at(text):
    assert parsed(text) is None


def test_names_are_read_as_the_session_quotes():
    text = 'INSERT INTO "a" VALUES ("b")'
    assert parsed(text) is None
    assert parsed(text, quoting=Quoting(ansi=True)) == ("d.a", "", "")


def test_a_function_behind_a_space_may_be_a_stored_one():
    text = "INSERT INTO t SELECT MAX (x), UPPER (y) FROM u"
    assert parsed(text) == ("d.t", "d.u", "d.MAX")
    assert parsed(text, ignores_space=True) == ("d.t", "d.u", "")
