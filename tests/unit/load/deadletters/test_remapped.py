"""Which dead letters are of another mapping than the channel file has now."""

import json

import pytest

from setl.channel.reading import parse_channel
from setl.channel.routes.routing import Router
from setl.load.deadletters.ambiguous import is_remapped
from tests.letters import letter

END = {"type": "mysql", "host": "a", "user": "u"}


def router(*tables):
    pipeline = {"name": "p", "source": END, "target": {**END, "host": "b"}, "tables": tables}
    return Router(parse_channel({"channel": "c", "pipelines": [pipeline]}).pipelines[0])


def stored(mapped_by, **changes):
    return letter("c/p", 1, payload=json.dumps({"mapped_by": mapped_by}), **changes)


@pytest.mark.parametrize(
    "now",
    [
        {"to": "shop.other"},
        {"key": ["code"]},
        {"columns": {"name": "title"}},
        {"columns": {"name": "lower(name)"}},
        {"exclude": ["name"]},
        {"where": "id > 1"},
    ],
)
@pytest.mark.parametrize("source", ["shop.orders", "", "shop.or.ders"])
def test_what_makes_other_rows(now, source):
    before = router({"from": "shop.orders"})
    made = stored(before.entries[0].mapped_by, source=source)
    assert not is_remapped(made, before)
    assert is_remapped(made, router({"from": "shop.orders", **now}))


def test_what_makes_the_same_rows():
    made = stored(router({"from": "shop.orders"}).entries[0].mapped_by)
    for same in ({"from": "shop.*"}, {"from": "shop.orders", "group": "g", "load": True}):
        assert not is_remapped(made, router({"from": "x.y"}, same))
    assert is_remapped(made, router({"from": "x.y"}))


def test_a_letter_of_an_earlier_release_reports_its_target():
    assert not is_remapped(letter("c/p", 1), router({"from": "shop.orders", "where": "id > 1"}))
    assert is_remapped(letter("c/p", 1), router({"from": "shop.orders", "to": "shop.other"}))


def test_rows_that_a_processor_has_given_another_name():
    processing = {"from": "shop.orders", "processor": "own.code:changed"}
    made = stored(router(processing).entries[0].mapped_by, source="own.name")
    assert not is_remapped(made, router(processing))
    assert is_remapped(made, router({**processing, "processor": "own.code:other"}))
