"""Names of tables in statements of a server that keeps them in lower case."""

import pytest

from setl.codec.sql.folded_names import with_folded_names
from setl.codec.sql.statement import tables_of
from setl.codec.sql.tokens import Quoting
from tests.unit.codec.binlog_events import EventWriter, entries_of

CASES = {
    "TRUNCATE TABLE Shop.Orders": "TRUNCATE TABLE shop.orders",
    "truncate `Shop` . `ORDERS`": "truncate `shop` . `orders`",
    "ALTER TABLE Orders ADD Column W INT COMMENT 'Shop.Orders'": (
        "ALTER TABLE orders ADD Column W INT COMMENT 'Shop.Orders'"
    ),
    "/*setl:17*/ RENAME TABLE A TO X.B, C TO D": "/*setl:17*/ RENAME TABLE a TO x.b, c TO d",
    "CREATE TABLE T LIKE Other.T": "CREATE TABLE t LIKE other.t",
    "CREATE TABLE T (Id INT, FOREIGN KEY (Id) REFERENCES Parent (Id))": (
        "CREATE TABLE t (Id INT, FOREIGN KEY (Id) REFERENCES parent (Id))"
    ),
    "CREATE UNIQUE INDEX Ix ON Shop.Orders (Id)": "CREATE UNIQUE INDEX Ix ON shop.orders (Id)",
    "DROP TABLE IF EXISTS A, `B` /* Generated */": "DROP TABLE IF EXISTS a, `b` /* Generated */",
    "ALTER TABLE A EXCHANGE PARTITION P WITH TABLE B": (
        "ALTER TABLE a EXCHANGE PARTITION P WITH TABLE b"
    ),
    "SET STATEMENT max_statement_time=1 FOR TRUNCATE ORDERS": (
        "SET STATEMENT max_statement_time=1 FOR TRUNCATE orders"
    ),
    "DROP DATABASE IF EXISTS `Shop`": "DROP DATABASE IF EXISTS `shop`",
    "ALTER TABLE ΟΔΟΣ DROP Ä": "ALTER TABLE οδοσ DROP Ä",
    "CREATE VIEW V AS SELECT * FROM T": "CREATE VIEW V AS SELECT * FROM T",
    "INSERT INTO Shop.Orders VALUES (1)": "INSERT INTO Shop.Orders VALUES (1)",
    "SET PASSWORD FOR 'A'@'%' = 'X'": "SET PASSWORD FOR 'A'@'%' = 'X'",
    "SET": "SET",
    "": "",
}


@pytest.mark.parametrize("text", CASES)
def test_names_of_tables_and_schemas_alone_are_folded(text):
    assert with_folded_names(text, Quoting()) == CASES[text]


def test_a_name_in_double_quotes_is_one():
    quoting = Quoting(ansi=True)
    assert with_folded_names('TRUNCATE "Shop"."Orders"', quoting) == 'TRUNCATE "shop"."orders"'


@pytest.mark.parametrize("folds", [True, False])
def test_a_binlog_is_read_as_its_server_has_names(folds):
    table = ("shop", "orders") if folds else ("SHOP", "Orders")
    writer = EventWriter()
    events = [*writer.opening(), writer.gtid(1), writer.query("TRUNCATE SHOP.Orders")]
    (entry,), _ = entries_of(events, folds_names=folds)
    assert (entry.schema, entry.table) == table
    assert tables_of(entry) == (table,)
