import pytest

from setl.relay.interceptor import Forwarding, Interceptor, TableForwarding
from tests.unit.relay.relay_streams import Binlog, ShopIsMapped


@pytest.mark.parametrize(
    ("schema", "table", "forwarding", "group"),
    [
        ("shop", "orders", Forwarding.ROWS, None),
        ("shop", "items", Forwarding.ROWS, "g"),
        ("shop", "secrets", Forwarding.NOTHING, None),
        ("other", "t", Forwarding.NOTHING, None),
        ("retl", "retl_mark", Forwarding.MARK, None),
        ("RETL", "Retl_Mark", Forwarding.MARK, None),
        ("retl", "retl_buffer", Forwarding.ROWS, None),
        ("retl", "setl_recent", Forwarding.ROWS, None),
        ("retl", "xdual", Forwarding.HEARTBEAT, None),
        ("retl", "setl_fence", Forwarding.NOTHING, None),
    ],
)
def test_what_happens_to_the_rows_of_a_table(schema, table, forwarding, group):
    routing = ShopIsMapped()
    interceptor = Interceptor(routing)
    for _ in range(2):
        assert interceptor.table(schema, table) == TableForwarding(forwarding, group)
    # Asked once for each name, and never for setl's own.
    assert routing.asked == ([] if schema.lower() == "retl" else [(schema, table)])


@pytest.mark.parametrize(
    ("statement", "schema", "skips"),
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
def test_which_ddl_passes(statement, schema, skips):
    (entry,) = Binlog().ddl(statement, schema).entries
    assert Interceptor(ShopIsMapped()).ddl(entry) is skips
