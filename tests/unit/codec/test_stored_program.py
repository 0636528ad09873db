"""What the bodies of triggers and procedures write."""

import pytest

from setl.codec.sql.stored_program import tables_of_view, writes_of


@pytest.mark.parametrize(
    ("body", "tables"),
    [
        ("INSERT INTO audit VALUES (NEW.id)", {"s.audit"}),
        ("insert low_priority ignore into `x`.`a b` (id) select id from t", {"x.a b"}),
        ("INSERT audit SET v = REPLACE(NEW.v, 'a', INSERT('b', 1, 1, 'c'))", {"s.audit"}),
        ("REPLACE DELAYED audit VALUES (1)", {"s.audit"}),
        ("INSERT INTO a VALUES (1) ON DUPLICATE KEY UPDATE v = b.v", {"s.a"}),
        ("UPDATE a SET v = (SELECT MAX(v) FROM b) WHERE id = 1", {"s.a"}),
        ("UPDATE LOW_PRIORITY a, x.b AS c SET a.v = c.v", {"s.a", "x.b"}),
        ("UPDATE a JOIN b USING (id) SET a.v = 1", {"s.a", "s.b"}),
        ("DELETE FROM a WHERE id IN (SELECT id FROM c)", {"s.a"}),
        ("DELETE QUICK a, b FROM a JOIN b JOIN c WHERE a.id = 1", {"s.a", "s.b", "s.c"}),
        ("DELETE FROM a USING a JOIN x.b", {"s.a", "x.b"}),
        ("IF NEW.v > 1 THEN INSERT INTO a VALUES (1); ELSE DELETE FROM b; END IF", {"s.a", "s.b"}),
        ("BEGIN SELECT 'INSERT INTO a' INTO @x; /* DELETE FROM a */ END", set()),
        ("SELECT 1 INTO @x FROM c WHERE id = NEW.id FOR UPDATE", set()),
        ("SET NEW.v = UPPER(NEW.v)", set()),
        ("/*!50003 INSERT INTO a VALUES (1) */", {"s.a"}),
    ],
)  # fmt: skip
def test_tables(body, tables):
    assert {".".join(name) for name in writes_of(body, "s").tables} == tables


@pytest.mark.parametrize(
    ("body", "values"),
    [
        ("SET NEW.v = UPPER(NEW.w)", {"v"}),
        ("SET @x = 1, NEW.V = 2, NEW.`a b` := 3", {"v", "a b"}),
        ("BEGIN IF NEW.v = 1 AND NEW.w <> 2 THEN SET @seen = NEW.id; END IF; END", set()),
        ("SELECT a, b INTO @x, NEW.v FROM t WHERE id = NEW.id", {"v"}),
        ("FETCH c INTO NEW.v", {"v"}),
        ("INSERT INTO audit SELECT NEW.id, NEW.v", set()),
        ("INSERT INTO audit VALUES (NEW.id, NEW.v)", set()),
        ("UPDATE t SET a = NEW.a, b = NEW.b WHERE id = NEW.id", set()),
        ("CALL fix(NEW.v, NEW.w + 1)", {"v"}),
        ("INSERT INTO a VALUES (1); SET NEW.v = 1", {"v"}),
    ],
)
def test_values_of_the_row(body, values):
    assert writes_of(body, "s").values == values


def test_calls():
    found = writes_of("BEGIN CALL log(NEW.id); CALL x.p; SET @a = f(1) + x.g(2); END", "s")
    assert found.stored == {("s", "log"), ("x", "p"), ("x", "g")}
    assert found.calls == {("s", "log"), ("x", "p"), ("s", "f"), ("x", "g")}


def test_quotes_mean_what_they_meant_when_it_was_made():
    body = 'INSERT INTO "audit" VALUES (1)'
    assert writes_of(body, "s", "STRICT_TRANS_TABLES,ANSI_QUOTES").tables == {("s", "audit")}


@pytest.mark.parametrize(
    ("definition", "tables"),
    [
        ("select `x`.`a`.`id` AS `id` from `x`.`a` where `x`.`a`.`id` > 1", {("x", "a")}),
        ("select 1 from (`x`.`a` `t` join `y`.`b c` on(`t`.`id` = 1))", {("x", "a"), ("y", "b c")}),
        ("select 1 from ((`x`.`a` left join `x`.`b` on(1)) join `x`.`c`)",
         {("x", "a"), ("x", "b"), ("x", "c")}),
    ],
)  # fmt: skip
def test_tables_behind_a_view(definition, tables):
    assert tables_of_view(definition) == tables
