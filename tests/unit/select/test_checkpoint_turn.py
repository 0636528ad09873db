"""A checkpoint counts only for the turn in which it was loaded."""

import threading
from concurrent.futures import Future
from typing import Any, cast

import pytest

from setl.channel.fields.kafka_endpoints import KafkaSource
from setl.errors import TransientError
from setl.model.checkpoint import Checkpoint
from setl.model.position import KafkaPosition
from setl.select.checkpoints.turn import TurnStore
from setl.systems.kafka.source.group import GroupMembership, _Commit
from setl.systems.kafka.source.subscription import DtsKafkaSource

HERE = Checkpoint(KafkaPosition("t", 0, 7))


class Store:
    def __init__(self, log):
        self.log = log

    def load(self):
        self.log.append("load")

    def age(self):
        return 7.0

    def store(self, checkpoint, epoch):
        self.log.append("store")

    def close(self):
        self.log.append("close")


class Group(GroupMembership):
    """A membership without brokers: the test deals the partition out."""

    def __init__(self):
        source = {
            "type": "kafka",
            "brokers": ["k:1"],
            "topic": "t",
            "mode": "subscribe",
            "sid": "g",
        }
        super().__init__(KafkaSource.model_validate(source))
        self.joined = 0

    def join(self):
        self.joined += 1

    def give(self):
        self.assigned({self._partition})


@pytest.fixture
def group():
    return Group()


@pytest.fixture
def log():
    return []


@pytest.fixture
def store(group, log):
    return TurnStore(Store(log), group, 0.05)


def test_it_joins_before_it_loads_and_stores_in_that_turn(group, store, log):
    group.give()
    store.load()
    assert store.age() == 7.0
    store.store(HERE, 1)
    store.close()
    assert group.joined == 1
    assert log == ["load", "store", "close"]


def test_without_a_turn_nothing_is_stored(group, store, log):
    store.load()
    store.store(HERE, 1)
    assert log == ["load"]


@pytest.mark.parametrize("given_back", [False, True])
def test_a_turn_that_is_over_takes_the_checkpoint_with_it(group, store, log, given_back):
    group.give()
    store.load()
    group.revoked("the group deals again")
    if given_back:
        group.give()
    with pytest.raises(TransientError, match="taken the partition"):
        store.store(HERE, 1)
    store.load()
    store.store(HERE, 1)
    assert log == (["load", "load", "store"] if given_back else ["load", "load"])


def test_a_turn_that_comes_after_the_checkpoint_was_loaded_has_it_loaded_again(group, store):
    store.load()
    stop = threading.Event()
    assert group.my_turn(0.01, stop) is False
    group.give()
    for _ in range(2):
        with pytest.raises(TransientError, match="it is loaded again"):
            group.my_turn(0.01, stop)
    store.load()
    assert group.my_turn(0.01, stop)
    assert group.waiting_for == ""


def test_what_comes_while_the_turn_ends_is_not_delivered(group, store, monkeypatch):
    source = DtsKafkaSource(group._source)
    source.group, source._reader = group, cast("Any", object())
    group.give()
    store.load()

    def poll(limit, timeout):
        group.revoked("the group deals again")
        return ["a record"]

    monkeypatch.setattr(source, "_poll", poll)
    assert source.read(10, 0.01) == ()
    assert source.waiting_for() == "another member of the group g has t[0]"


def test_a_closed_source_does_not_wait(group):
    stop = threading.Event()
    stop.set()
    with pytest.raises(TransientError, match="closed"):
        group.my_turn(60, stop)


def test_nobody_commits_who_is_no_member(group):
    with pytest.raises(TransientError, match="no member"):
        group.commit(7, "")


class Reader:
    """Takes commits, and answers each with `error`."""

    def __init__(self, error=None):
        self.error = error
        self.commits = []

    def send_commit(self, partition, offset, metadata, done):
        self.commits.append((partition, offset, metadata))
        done(self.error)


def committed(group, reader, between=lambda: None):
    """A commit that the thread of the membership comes to after `between`."""
    done = Future()
    group._commits.put(_Commit(group.noted, 7, "m", done))
    between()
    group._send_commits(reader)
    return done


def test_who_has_left_does_not_become_a_member_again(group, monkeypatch):
    """A thread that opens the source late would leave a member behind that nobody ends."""
    begun = []
    monkeypatch.setattr(group, "_run", begun.append)
    group.leave()
    with pytest.raises(TransientError, match="no member"):
        GroupMembership.join(group)
    assert begun == []


def test_a_commit_that_was_decided_in_an_earlier_turn_is_not_sent(group):
    """It would take back what another member has committed in between."""
    group.give()
    group.note()
    reader = Reader()

    def another_turn():
        group.revoked("the group reassigns its partitions")
        group.give()

    with pytest.raises(TransientError, match="no turn"):
        committed(group, reader, another_turn).result(0)
    assert reader.commits == []


def test_a_member_that_has_lost_its_turn_does_not_commit(group):
    group.give()
    group.note()
    reader = Reader()
    assert committed(group, reader).exception(0) is None
    assert reader.commits == [(0, 7, "m")]
    group.revoked("the group has excluded this node")
    with pytest.raises(TransientError, match="no turn"):
        committed(group, reader).result(0)
    assert reader.commits == [(0, 7, "m")]


def test_a_commit_that_the_brokers_refuse_says_so(group):
    group.give()
    group.note()
    refused = TransientError("refused")
    assert committed(group, Reader(refused)).exception(0) is refused
