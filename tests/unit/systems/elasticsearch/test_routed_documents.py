"""Documents that are routed anew, as shards see it: the deletes and writes in any order."""

import json
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.channel.routing import Route
from setl.model.change import DecodedRows, Op
from setl.model.schema import Column, Kind, RowSchema
from setl.systems.elasticsearch.load.actions import render_actions
from setl.transform.compaction import Compactor
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
        place = self.shard_of[header.get("routing")], header["_id"]
        if header["version"] >= self.held.get(place, (-1, None))[0]:
            self.held[place] = header["version"], document and json.loads(document[0])
            assert (operation == "index") == bool(document)

    @property
    def documents(self):
        return sorted((shard, id_, doc["shop"]) for (shard, id_), (_, doc) in self.held.items()
                      if doc)  # fmt: skip


def loads(steps, sizes):
    """What setl sends for each load of a row that moves from shop to shop."""
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
        rendered.append([action for part in changes for action in render_actions(part)])
    return rendered, before


@pytest.mark.parametrize("together", [False, True], ids=["apart", "one shard"])
@given(st.lists(st.sampled_from(["a", "b", None, "gone"]), max_size=8), st.integers(1, 3),
       st.data())  # fmt: skip
def test_one_document_is_left_where_the_row_says(together, steps, size, data):
    shard_of = dict.fromkeys(("a", "b", None), 0) if together else {"a": 0, "b": 1, None: 2}
    batches, last = loads(steps, size)
    expected = [] if last is None else [(shard_of[last[1]], "1", last[1])]
    shards = Shards(shard_of)
    for actions in batches:
        for action in data.draw(st.permutations(actions)):
            shards.apply(action)
    assert shards.documents == expected
    # Everything again, from any load on, in any order within it: what a new leader sends.
    for actions in batches[data.draw(st.integers(0, len(batches))) :]:
        for action in data.draw(st.permutations(actions)):
            shards.apply(action)
    assert shards.documents == expected


def test_a_delete_that_is_sent_again_after_the_write_does_not_win():
    (actions, *_), _ = loads(["a", "b"], 9)
    for order in permutations([*actions, *actions]):
        shards = Shards({"a": 0, "b": 0})
        for action in order:
            shards.apply(action)
        assert shards.documents == [(0, "1", "b")]
