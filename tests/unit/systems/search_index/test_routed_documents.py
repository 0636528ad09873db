"""Documents that are routed again, as shards see it: requests in any order, late, and repeated."""

import json
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setl.channel.routes.routing import Route
from setl.load.deadletters.storing import Faults
from setl.model.change import DecodedRows, Op, TargetChanges
from setl.model.schema import Column, Kind, RowSchema
from setl.systems.search_index.load.faults import render
from setl.transform.compaction import Compactor
from setl.transform.placement import split
from setl.transform.projection import project

SCHEMA = RowSchema("s", "t", (Column("id", Kind.INTEGER), Column("shop", Kind.TEXT)), key=(0,))
ROUTE = Route(0, ("", "items"), routing="shop")


class Shards:
    """Shards that keep an id's version, deleted or not, each for itself."""

    def __init__(self, shard_of):
        self.shard_of = shard_of
        self.held = {}

    def apply(self, action):
        head, *document = action.splitlines()
        ((operation, header),) = json.loads(head).items()
        position = self.shard_of[header.get("routing")], header["_id"]
        if header["version"] >= self.held.get(position, (-1, None))[0]:
            self.held[position] = header["version"], document and json.loads(document[0])
            assert (operation == "index") == bool(document)

    @property
    def documents(self):
        return sorted((shard, id_, doc["shop"]) for (shard, id_), (_, doc) in self.held.items()
                      if doc)  # fmt: skip


def together(rendered):
    """The actions, in lists of those that are sent in one request."""
    groups = []
    for number, action in enumerate(rendered.actions):
        if number in rendered.bound:
            groups[-1].append(action)
        else:
            groups.append([action])
    return groups


def loads(steps, sizes):
    """What setl sends for each load of a row that moves from shop to shop.

    Records have versions without a gap, as those on Kafka.
    """
    compactor, found, before, left = Compactor((), "shop"), [], None, 0
    for version, shop in enumerate(steps, 10):
        after = None if shop == "gone" else (1, shop)
        if before is None and after is None:
            continue
        op = Op.INSERT if before is None else Op.DELETE if after is None else Op.UPDATE
        compactor.add_many(DecodedRows(SCHEMA, op, [(before, after)]), version)
        before, left = after, left + 1
        if left >= sizes:
            found.append(compactor)
            compactor, left = Compactor((), "shop"), 0
    found.append(compactor)
    rendered = []
    for each in found:
        changes = project([(ROUTE, part.schema, part) for part in each.survivors()])
        tasks = [part for each in changes for part in split(each, None, 3).values()]
        rendered.append([group for part in tasks for group in together(render([part], FAULTS))])
    return rendered, before


FAULTS = Faults((), 0)
STEPS = st.lists(st.sampled_from(["a", "b", None, "gone"]), max_size=8)
SHARDS = pytest.mark.parametrize("one", [False, True], ids=["apart", "one shard"])


def shards_of(one):
    return dict.fromkeys(("a", "b", None), 0) if one else {"a": 0, "b": 1, None: 2}


def left_by(last, shard_of):
    return [] if last is None else [(shard_of[last[1]], "1", last[1])]


def shuffled(groups, data):
    return [action for group in data.draw(st.permutations(groups)) for action in group]


@SHARDS
@given(STEPS, st.integers(1, 3), st.data())
def test_one_document_is_left_where_the_row_says(one, steps, size, data):
    shard_of = shards_of(one)
    batches, last = loads(steps, size)
    shards = Shards(shard_of)
    for groups in batches:
        for action in shuffled(groups, data):
            shards.apply(action)
    assert shards.documents == left_by(last, shard_of)
    # Everything again, from any load on, in any order within it: what a new leader sends.
    for groups in batches[data.draw(st.integers(0, len(batches))) :]:
        for action in shuffled(groups, data):
            shards.apply(action)
    assert shards.documents == left_by(last, shard_of)


@SHARDS
@settings(max_examples=40)
@given(STEPS, st.integers(1, 3), st.integers(1, 3), st.data())
def test_what_a_former_leader_sends_late_changes_nothing(one, steps, size, other, data):
    # It had cut the stream elsewhere. What it had under way arrives at any time, each request's
    # actions one after another, and those of the new leader between them.
    shard_of = shards_of(one)
    (mine, last), (theirs, _) = loads(steps, size), loads(steps, other)
    late = [action for groups in theirs for action in shuffled(groups, data)]
    new = [action for groups in mine for action in shuffled(groups, data)]
    shards = Shards(shard_of)
    for turn in data.draw(st.permutations([late] * len(late) + [new] * len(new))):
        shards.apply(turn.pop(0))
    assert shards.documents == left_by(last, shard_of)


@SHARDS
def test_a_late_write_of_the_record_before_does_not_bring_a_document_back(one):
    # The former leader's batch ended between two changes of one row in a transaction.
    shard_of = shards_of(one)
    for steps, left in ((["a", "gone"], []), (["a", "b"], [(shard_of["b"], "1", "b")])):
        (late, *_), _ = loads(steps, 1)
        (groups, _), _ = loads(steps, 2)
        shards = Shards(shard_of)
        for action in [a for group in [*groups, *late] for a in group]:
            shards.apply(action)
        assert shards.documents == left


def test_a_move_that_is_sent_again_does_not_lose_the_document():
    (groups, *_), _ = loads(["a", "b"], 9)
    (move,) = groups
    assert len(move) == 2
    for order in permutations([move, move]):
        shards = Shards({"a": 0, "b": 0})
        for action in [action for group in order for action in group]:
            shards.apply(action)
        assert shards.documents == [(0, "1", "b")]


def test_only_what_moves_is_bound():
    (form,) = {part.document for part in project([(ROUTE, SCHEMA, part) for part in _moved()])}
    first = TargetChanges(
        ("", "items"), SCHEMA.columns, (0, 1), [(1, "b"), (2, None), (3, "a")],
        [(1, "a"), (1, None), (4, "a"), (3, "b")], [10, 11, 9], [10, 10, 11, 8], document=form,
    )  # fmt: skip
    found = render([first], FAULTS)
    heads = [json.loads(action.splitlines()[0]) for action in found.actions]
    named = [
        (op, of["_id"], of.get("routing"), of["version"]) for ((op, of),) in map(dict.items, heads)
    ]
    assert named == [
        ("delete", "4", "a", 11),
        ("delete", "3", "b", 8),
        ("delete", "1", "a", 10),
        ("delete", "1", None, 10),
        ("index", "1", "b", 10),
        ("index", "2", None, 11),
        ("index", "3", "a", 9),
    ]
    assert found.bound == {3, 4}
    assert [origin.number for origin in found.origins] == [2, 3, 0, 1, 0, 1, 2]


def _moved():
    compactor = Compactor((), "shop")
    compactor.add_many(DecodedRows(SCHEMA, Op.INSERT, [(None, (1, "a"))]), 1)
    return compactor.survivors()
