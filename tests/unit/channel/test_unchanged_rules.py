"""What a channel file may say about updates that change nothing."""

import pytest

from setl.channel.reading import ChannelFileError, parse_channel
from setl.channel.routes.routing import Router

from .channels import SEARCH, changed

TABLES = "pipelines[0].tables"


def skipping(**more):
    return changed(TABLES, [{"from": "shop.orders", "unchanged": "skip", **more}])


def problem_of(definition):
    with pytest.raises(ChannelFileError) as caught:
        parse_channel(definition)
    (found,) = [p for p in caught.value.problems if str(p.path) == f"{TABLES}[0].unchanged"]
    return found.message


@pytest.mark.parametrize(
    ("more", "skips"),
    [
        ({"include": ["id"]}, True),
        ({"exclude": ["seen"]}, True),
        ({"exclude": ["seen"], "columns": {"buyer": "user_name"}}, True),
        ({"unchanged": "send"}, False),
        ({"unchanged": None}, False),
    ],
)
def test_who_leaves_them_out(more, skips):
    (route,) = Router(parse_channel(skipping(**more)).pipelines[0]).route("shop", "orders")
    assert route.skips_unchanged is skips


def test_all_that_is_wrong_is_said_at_once():
    found = problem_of(skipping(
        where="a > 1", processor="m:f", columns={"b": "upper(a)"}, conflict={"newest": "at"},
        read="source",
    ))  # fmt: skip
    for words in ("`where`", "`processor`", "expressions", "`read: source`", "a `conflict` policy"):
        assert f"cannot be combined with {words}" in found
    assert "needs `include` or `exclude`" in found


def test_not_where_documents_show_other_rows():
    nested = [{"field": "i", "from": "s.i", "on": {"o": "id"}}]
    definition = skipping(nested=nested, exclude=["seen"])
    assert "`nested`" in problem_of(changed("pipelines[0].target", SEARCH, definition))
