"""Which routes create their target: the pipeline's `create`, unless the table has its own."""

import pytest

from setl.channel.reading import parse_channel
from setl.channel.routes.routing import Router

MYSQL = {"type": "mysql", "host": "a", "user": "u"}


@pytest.mark.parametrize(
    ("of_all", "own", "created"),
    [(None, None, False), (True, None, True), (True, False, False), (False, True, True)],
)
def test_who_says_whether_a_table_is_created(of_all, own, created):
    table = {"from": "shop.orders"} | ({} if own is None else {"create": own})
    pipeline = {"name": "p", "source": MYSQL, "target": {**MYSQL, "host": "b"}, "tables": [table]}
    pipeline |= {} if of_all is None else {"create": of_all}
    router = Router(parse_channel({"channel": "c", "pipelines": [pipeline]}).pipelines[0])
    (route,) = router.route("shop", "orders")
    assert (route.create, router.creates) == (created, created)
