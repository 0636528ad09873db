"""A repair needs to know which site is right, says what it may replace, and is kept in the log."""

import json
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest

from arbiter.values import PipelineId
from setl.bulk.comparison import NOTHING, Difference, Held, What
from setl.bulk.verdict import DifferingKeys, TableVerdict
from setl.channel.reading import parse_channel
from setl.cli.rows import repairing
from setl.cli.rows.comparing import Compared
from setl.model.load_request import RequestState
from setl.run.table_loads.requests import StoredLoadRequests
from tests.unit.cli.cluster_in_memory import AB, definition
from tests.unit.cli.test_loading import Leader

BA = PipelineId("shop", "ba")
EQUAL = TableVerdict("s.t", "s.t", 3, 3, 0, 0, 0)
EXTRA = TableVerdict(
    "s.t", "s.t", 2, 3, 0, 1, 0, differing=DifferingKeys(("id",), (((7,), What.EXTRA),))
)


def two_way(**table):
    value = definition()
    there, back = value["pipelines"]
    back["source"], back["target"] = there["target"], there["source"]
    for pipeline in (there, back):
        pipeline["tables"] = [{"from": "s.t", **table}]
    return {**value, "home": "ab"}


@pytest.fixture
def repair(shop, tmp_path, monkeypatch):
    """Runs the command over a comparison that finds a row which only the target has."""
    compared = []

    class Comparer:
        def compare(self, channel, config, tables, finished, failed):
            compared.append(config.name)
            return [Compared(channel, config, EXTRA)]

        def again(self, one):
            return Compared(one.channel, one.config, EQUAL)

    @contextmanager
    def comparer(*_, **__):
        yield Comparer()

    monkeypatch.setattr("setl.cli.rows.comparing.comparer", comparer)
    monkeypatch.setattr("setl.cli.rows.asking.POLL_SECONDS", 0.01)

    def run(value, *options):
        compared.clear()
        file = tmp_path / "shop.yaml"
        file.write_text(json.dumps(value))
        return shop.run("verify", str(file), "--repair", *options), tuple(compared)

    return run


def test_both_directions_are_not_repaired_at_once_unless_a_policy_decides(shop, repair, capsys):
    assert repair(two_way()) == (2, ())
    said = capsys.readouterr().err
    assert "without a conflict policy for s.t:" in said
    assert "--pipeline ab or --pipeline ba" in said
    assert not StoredLoadRequests(shop.arbiter, AB).all()


def test_with_a_policy_both_directions_are_repaired(shop, repair):
    shop.node("n1").leads(AB)
    with Leader(shop), Leader(shop, pipeline=BA):
        assert repair(two_way(conflict="home")) == (0, ("ab", "ba"))


def test_what_a_repair_of_one_direction_may_replace_is_said(shop, repair, capsys):
    shop.node("n1").leads(AB)
    with Leader(shop):
        assert repair(two_way(), "--pipeline", "ab") == (0, ("ab",))
    said = capsys.readouterr().err
    assert "1 key of s.t is sent to s.t again, of which 1 is only there and is deleted" in said
    assert "Clients of the target must not write to s.t" in said


def test_a_repair_is_in_the_log_of_actions(shop, repair):
    shop.node("n1").leads(AB)
    with Leader(shop):
        assert repair(definition(pipelines=("ab",)))[0] == 0
    (request,) = StoredLoadRequests(shop.arbiter, AB).all()
    assert (request.state, request.what) == (RequestState.DONE, "1 key of s.t")
    (action,) = shop.arbiter.actions.all()
    assert (action.what, action.on) == ("repair", "shop/ab")
    assert action.outcome == "asked for: 1 key of s.t"


def test_rows_that_may_be_those_of_another_pipeline_are_left(shop, repair, capsys):
    value = definition(pipelines=("ab",))
    other = definition("south", pipelines=("ab",))
    other["pipelines"][0]["source"]["host"] = "db3"
    shop.arbiter.channels.put("shop", value)
    shop.arbiter.channels.put("south", other)
    assert repair(value) == (1, ("ab",))
    said = capsys.readouterr().err
    assert "1 row that only s.t has is left there, since south/ab writes it, too" in said
    assert not StoredLoadRequests(shop.arbiter, AB).all()


def test_a_table_without_a_key_is_not_repaired_and_the_hint_is_said(
    shop, repair, monkeypatch, capsys
):
    found = replace(EXTRA, differing=DifferingKeys(unknown=1, keyless=True))
    monkeypatch.setitem(globals(), "EXTRA", found)
    assert repair(definition(pipelines=("ab",))) == (1, ("ab",))
    said = " ".join(capsys.readouterr().err.split())
    assert "s.t cannot be repaired: the table has no key" in said
    assert "`setl load --table` replaces all of them" in said
    assert not StoredLoadRequests(shop.arbiter, AB).all()


class Sides:
    """A table of many rows, of which a comparison reads two keys again and remembers five."""

    def __init__(self, differing):
        self.differing = set(differing)
        self.whole = 0
        self.looked = []

    def verdict(self, keys, further=(), rows=20):
        known = DifferingKeys(("id",), tuple(((key,), What.MISSING) for key in keys))
        return TableVerdict(
            "s.t", "s.t", rows, rows, len(keys) + len(further), 0, 0, differing=known,
            further=tuple(difference(key) for key in further),
        )  # fmt: skip

    def compared(self):
        keys = sorted(self.differing)
        found = self.verdict(keys[:2], keys[2:7])
        return replace(found, missing=len(keys))

    def again(self, one):
        self.whole += 1
        return replace(one, verdict=self.compared())

    def keys(self, one, differences):
        keys = [int(each.key) for each in differences]
        self.looked.append(keys)
        return self.verdict([key for key in keys if key in self.differing], rows=0)


def difference(key):
    return Difference(str(key), What.MISSING, None, Held(1, (b"x",)), NOTHING)


@pytest.fixture
def repairs(shop, monkeypatch):
    """Repairs what sides say; a leader that sends a key again fixes it, unless it is broken."""
    monkeypatch.setattr(repairing, "KEYS_AT_ONCE", 2)
    config = parse_channel(definition(pipelines=("ab",))).pipelines[0]
    sent = []
    connect = partial(shop.connect, "", "")

    def run(sides, broken=(), **options):
        def wait_for_end(_, __, requests, ___):
            keys = [key for request in requests for (key,) in request.keys]
            sent.append(keys)
            sides.differing -= set(keys) - set(broken)
            return [replace(request, state=RequestState.DONE) for request in requests]

        monkeypatch.setattr(repairing, "wait_for_end", wait_for_end)
        one = Compared("shop", config, sides.compared())
        (found,) = repairing.repaired([one], sides, connect, yes=True, **options)
        return found.verdict, sent

    return run


def test_a_repair_goes_on_behind_the_keys_that_it_dealt_with(repairs):
    """Everything is compared again after all that was remembered, and not for each few keys."""
    sides = Sides(range(12))
    verdict, sent = repairs(sides)
    assert verdict.equal
    assert sent == [[0, 1], [2, 3], [4, 5], [6], [7, 8], [9, 10], [11]]
    assert sides.looked == [[2, 3], [4, 5], [6], [9, 10], [11]]
    assert sides.whole == 2


def test_keys_that_agree_meanwhile_are_not_sent(repairs):
    sides = Sides(range(5))
    keys = sides.keys

    def look(one, differences):
        sides.differing -= {2, 3}
        return keys(one, differences)

    sides.keys = look
    assert repairs(sides)[1] == [[0, 1], [4]]


def test_a_repair_that_mends_nothing_ends(repairs):
    sides = Sides(range(5))
    verdict, sent = repairs(sides, broken=range(5))
    assert verdict.differences == 5
    assert sides.whole == 1
    assert sent == [[0, 1], [2, 3], [4]]


def test_other_kinds_of_differences_are_left(repairs):
    sides = Sides(range(5))
    assert not repairs(sides, only=(What.EXTRA,))[1]
    assert not sides.looked
