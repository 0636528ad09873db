import pytest

from setl.relay.interceptor import Interceptor, Passage, TablePassage
from tests.unit.relay.relay_streams import Binlog, ShopIsMapped


@pytest.mark.parametrize(
    ("schema", "table", "passage", "group"),
    [
        ("shop", "orders", Passage.ROWS, None),
        ("shop", "items", Passage.ROWS, "g"),
        ("shop", "secrets", Passage.NOTHING, None),
        ("other", "t", Passage.NOTHING, None),
        ("retl", "retl_mark", Passage.MARK, None),
        ("RETL", "Retl_Mark", Passage.MARK, None),
        ("retl", "retl_buffer", Passage.ROWS, None),
        ("retl", "setl_recent", Passage.ROWS, None),
        ("retl", "xdual", Passage.HEARTBEAT, None),
        ("retl", "setl_fence", Passage.NOTHING, None),
    ],
)
def test_what_happens_to_the_rows_of_a_table(schema, table, passage, group):
    routing = ShopIsMapped()
    interceptor = Interceptor(routing)
    for _ in range(2):
        assert interceptor.table(schema, table) == TablePassage(passage, group)
    # Asked once for each name, and never for setl's own.
    assert routing.asked == ([] if schema.lower() == "retl" else [(schema, table)])


@pytest.mark.parametrize(
    ("statement", "schema", "passes"),
    [
        ("ALTER TABLE orders ADD x INT", "shop", True),
        ("/*setl:17*/ ALTER TABLE orders ADD x INT", "shop", True),  # no loopback here
        ("ALTER TABLE secrets ADD x INT", "shop", False),
        ("RENAME TABLE other.t TO shop.orders", "other", True),
        ("DROP DATABASE shop", "shop", True),
        ("CREATE TABLE retl.retl_mark (id INT)", "shop", False),
        ("DROP DATABASE retl", "retl", False),
        ("CREATE TRIGGER x BEFORE INSERT ON orders FOR EACH ROW SET @a = 1", "shop", True),
    ],
)
def test_which_ddl_passes(statement, schema, passes):
    (entry,) = Binlog().ddl(statement, schema).entries
    assert Interceptor(ShopIsMapped()).ddl(entry) is passes
