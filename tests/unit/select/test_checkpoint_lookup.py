"""Which store's checkpoint a pipeline goes on from."""

import logging
from typing import Any

import pytest

from setl.errors import ConfigurationError, FatalError
from setl.model.checkpoint import Checkpoint
from setl.model.position import BinlogPosition
from setl.select.checkpoints.lookup import Found, LookupStore, OtherStore, choose
from setl.select.checkpoints.note import CheckpointNote


def at(offset, generation=1):
    return Checkpoint(BinlogPosition("b.000003", offset), generation=generation)


class Store:
    def __init__(self, checkpoint=None):
        self.checkpoint = checkpoint
        self.stored = []
        self.closed = False

    def load(self):
        return self.checkpoint

    def age(self):
        return 7.0

    def store(self, checkpoint, epoch):
        self.stored.append((checkpoint, epoch))
        self.checkpoint = checkpoint

    def close(self):
        self.closed = True


class Notes:
    def __init__(self, store=None):
        self.store = store

    def read(self):
        return None if self.store is None else CheckpointNote(5, self.store, "some position")


def lookup(own, *others, noted=None):
    notes: Any = Notes(noted)
    return LookupStore("file", own, others, notes=notes, pipeline="shop/p", epoch=7)


def holds(name, checkpoint, **more):
    return OtherStore(name, lambda: checkpoint, **more)


def never():
    raise AssertionError("was asked")


@pytest.mark.parametrize(
    ("found", "noted", "chosen"),
    [
        ([], None, None),
        ([("file", 1), ("target", 1)], None, "file"),
        ([("file", 1), ("target", 1)], "target", "target"),
        ([("target", 1), ("zookeeper", 1)], None, "zookeeper"),
        ([("file", 1), ("target", 1), ("zookeeper", 2)], None, "zookeeper"),
        ([("file", 3), ("target", 2)], "target", "file"),
        ([("file", 2), ("kafka", 2)], "target", "file"),
    ],
)
def test_the_highest_generation_then_what_was_written_last_then_the_order(found, noted, chosen):
    # Later ones are further on in the stream, which must not count.
    positions = [Found(name, at(100 * i, g)) for i, (name, g) in enumerate(found)]
    best = choose(positions, Notes(noted).read())
    assert (best and best.store) == chosen


@pytest.mark.parametrize("last_resort", [False, True])
def test_a_store_that_once_had_it_is_throttled_to_that_which_has_it_now(last_resort):
    own = Store(at(100))
    now = holds("kafka", at(900), last_resort=last_resort)
    assert lookup(own, holds("target", at(50)), now, noted="kafka").load() == at(900)
    assert own.stored == [(at(900), 7)]
    # As soon as it has stored that, the note names it.
    assert lookup(own, holds("target", at(50)), now, noted="file").load() == at(900)
    assert len(own.stored) == 1


@pytest.mark.parametrize("error", [ConfigurationError("may not"), FatalError("is not there")])
def test_the_store_that_was_written_last_is_not_passed_over(error):
    def refused():
        raise error

    own = Store(at(100))
    others = holds("target", at(50)), OtherStore("kafka", refused, last_resort=True)
    with pytest.raises(FatalError, match=error.message):
        lookup(own, *others, noted="kafka").load()
    assert own.stored == []
    with pytest.raises(FatalError, match=r"stored in the target some position, .* no such target"):
        lookup(own, *others[1:], noted="target").load()


def test_the_configured_store_is_enough():
    own = Store(at(100))
    store = lookup(own, holds("target", None), OtherStore("kafka", never, last_resort=True))
    assert store.load() == at(100)
    assert store.age() == 7.0
    assert own.stored == []


def test_what_is_found_elsewhere_is_stored_at_once(caplog):
    caplog.set_level(logging.INFO)
    own = Store()
    other = OtherStore("kafka", never, last_resort=True)
    store = lookup(own, holds("target", None), holds("zookeeper", at(200)), other)
    assert store.load() == at(200)
    assert store.age() is None  # that of what was just stored would be none of its leader's
    assert own.stored == [(at(200), 7)]
    assert "found in the store `zookeeper`; `file` has none" in caplog.text
    caplog.clear()
    # ZooKeeper has a note in its place now.
    assert lookup(own, holds("target", None), other, noted="file").load() == at(200)
    assert len(own.stored) == 1
    assert "found in" not in caplog.text


def test_a_last_resort_is_asked_when_nobody_else_has_anything(caplog):
    caplog.set_level(logging.INFO)
    own = Store()
    assert lookup(own, holds("kafka", at(9), last_resort=True)).load() == at(9)
    assert lookup(Store(), holds("kafka", None, last_resort=True)).load() is None
    assert "beginning at `start`" in caplog.text


def test_a_forgotten_store_does_not_win_over_a_newer_request_to_start_over():
    own = Store(at(900, generation=1))
    store = lookup(own, holds("zookeeper", at(100, generation=2)))
    assert store.load() == at(100, generation=2)
    assert own.stored == [(at(100, generation=2), 7)]


def test_a_checkpoint_out_of_reach_is_no_first_start():
    def out_of_reach():
        raise FatalError("it is on another machine")

    own = Store()
    with pytest.raises(FatalError):
        lookup(own, OtherStore("file", out_of_reach, last_resort=True)).load()
    assert own.stored == []


def test_a_store_that_is_not_set_up_has_nothing(caplog):
    def refused():
        raise ConfigurationError("no such table")

    store = lookup(Store(), OtherStore("target", refused), holds("zookeeper", at(3)))
    assert store.load() == at(3)
    assert "`target` is not looked into: no such table" in caplog.text


def test_a_damaged_store_stops_nobody_who_does_not_need_it(caplog):
    def damaged():
        raise FatalError("not a checkpoint")

    store = lookup(Store(at(1)), OtherStore("zookeeper", damaged))
    assert store.load() == at(1)
    assert "`zookeeper` is skipped: not a checkpoint" in caplog.text


def test_it_stores_and_closes_as_the_configured_store_does():
    own = Store()
    store = lookup(own)
    store.store(at(5), 9)
    store.close()
    assert (own.stored, own.closed) == ([(at(5), 9)], True)
