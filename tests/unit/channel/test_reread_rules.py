"""What a channel file may say about rows that are read at the source."""

import pytest

from setl.channel.reading import ChannelFileError, parse_channel
from setl.channel.routes.routing import Router

from .channels import DTS, SEARCH, changed

TABLE = "pipelines[0].tables[0]"


def reread(**more):
    return changed("pipelines[0].tables", [{"from": "shop.orders", "read": "source", **more}])


def problems_of(definition):
    with pytest.raises(ChannelFileError) as caught:
        parse_channel(definition)
    return [f"{p.path}: {p.message}" for p in caught.value.problems]


@pytest.mark.parametrize(("read", "rereads"), [("source", True), ("event", False), (None, False)])
def test_who_reads_at_the_source(read, rereads):
    router = Router(parse_channel(changed(f"{TABLE}.read", read, reread())).pipelines[0])
    assert router.rereads is rereads
    assert router.route("shop", "orders")[0].rereads is rereads


def test_all_that_is_wrong_is_said_at_once():
    found = problems_of(reread(processor="m:f", key=["a"], conflict={"newest": "at"}))
    (own,) = [problem for problem in found if problem.startswith(f"{TABLE}.read: ")]
    for word in ("`processor`", "`key`", "a `conflict` policy"):
        assert f"cannot be combined with {word}" in own


@pytest.mark.parametrize(
    "more", [{"routing": "a"}, {"nested": [{"field": "i", "from": "s.i", "on": {"o": "id"}}]}]
)
def test_documents_that_cannot_be_read_again(more):
    found = problems_of(changed("pipelines[0].target", SEARCH, reread(**more)))
    assert any(f"{TABLE}.read: cannot be combined with `{next(iter(more))}`" in p for p in found)


def test_a_subscription_needs_its_database():
    found = problems_of(changed("pipelines[0].source", DTS, reread()))
    assert any("needs `database:`" in problem for problem in found)
    database = {"host": "db1", "user": "u"}
    parse_channel(changed("pipelines[0].source", {**DTS, "database": database}, reread()))
