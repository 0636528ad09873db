"""What every checkpoint store promises (setl.select.source.CheckpointStore)."""

import time
import uuid
from dataclasses import replace
from typing import Any, cast

import pytest

from arbiter.values import PipelineId
from arbiter.zookeeper import ZooKeeperArbiter
from setl.clock import SystemClock
from setl.errors import FatalError, FencedError, TransientError
from setl.model.checkpoint import Checkpoint
from setl.select.checkpoints.arbiter import ArbiterCheckpointStore
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.contract.checkpoint_backends import (
    ONE,
    THREE,
    TWO,
    ArbiterBackend,
    FileBackend,
    KafkaBackend,
    MysqlBackend,
    at,
)
from tests.databases import EACH
from tests.families import Pair
from tests.waiting import eventually

_CLOCKS_DIFFER = 0.1  # the time of a file is that of a coarser clock


@pytest.fixture(params=[*EACH, "memory", "zookeeper", "kafka", "file"])
def backend(request):
    if isinstance(request.param, Pair):
        made = MysqlBackend(request.getfixturevalue("databases").site(request.param, 1))
    elif request.param == "kafka":
        made = KafkaBackend(request.getfixturevalue("kafka"))
    elif request.param == "file":
        made = FileBackend(request.getfixturevalue("tmp_path"))
    elif request.param == "memory":
        made = ArbiterBackend(MemoryArbiter(MemoryCluster(cast("Any", SystemClock()))))
    else:
        arbiter = ZooKeeperArbiter(
            request.getfixturevalue("zookeeper").hosts, root=f"/test-{uuid.uuid4().hex}"
        )
        arbiter.start()
        made = ArbiterBackend(arbiter)
    yield made
    made.close()


def test_there_is_none_at_first(backend):
    assert backend.store().load() is None


@pytest.mark.parametrize(
    "checkpoint",
    [
        {"number": 100},
        {"number": 100, "applied": 170, "generation": 9},
        {"number": 1 << 40, "rows": 1 << 50, "requested": 3},
    ],
)
def test_what_was_stored_is_loaded(backend, checkpoint):
    checkpoint = backend.at(**checkpoint)
    backend.store().store(checkpoint, 1)
    assert backend.store().load() == checkpoint


def test_it_reports_how_long_ago_was_stored_what_it_loads(backend):
    store = backend.store()
    assert store.age() is None
    store.load()
    assert store.age() is None
    started = time.monotonic()
    backend.store().store(backend.at(100), 1)
    store.load()
    if isinstance(backend, KafkaBackend):  # no broker tells
        assert store.age() is None
        return
    first = store.age()
    assert 0 <= first <= time.monotonic() - started + _CLOCKS_DIFFER
    eventually(lambda: store.load() and store.age() > first, 10)


def test_where_a_position_is_of_is_stored(backend):
    checkpoint = backend.at(9)
    checkpoint = replace(checkpoint, resume=replace(checkpoint.resume, origin=backend.origin))
    backend.store().store(checkpoint, 1)
    assert backend.store().load() == checkpoint


def test_a_closed_store_opens_again(backend):
    store = backend.store()
    store.store(backend.at(100), 1)
    store.close()
    store.close()
    assert store.load() == backend.at(100)


def test_storing_the_same_twice_is_storing_it_once(backend):
    store = backend.store()
    store.store(backend.at(100), 1)
    store.store(backend.at(100), 1)
    assert store.load() == backend.at(100)


def test_it_moves_on(backend):
    store = backend.store()
    for checkpoint in (
        backend.at(100),
        backend.at(100, applied=120),
        backend.at(100, applied=180),
        backend.at(200),
        backend.at(300),
    ):
        store.store(checkpoint, 1)
        assert store.load() == checkpoint


@pytest.mark.parametrize(
    "older", [{"number": 100}, {"number": 100, "applied": 240}, {"number": 190}]
)
def test_it_does_not_go_back(backend, older):
    older = backend.at(**older)
    store = backend.store()
    store.store(backend.at(200, applied=250), 1)
    with pytest.raises(FatalError, match="lies before the stored one"):
        store.store(older, 1)
    assert backend.store().load() == backend.at(200, applied=250)
    store.store(backend.at(300), 1)  # and is none the worse for it


def test_it_does_not_go_back_for_a_new_leader_either(backend):
    backend.store().store(backend.at(200), 1)
    backend.lead(2)
    with pytest.raises(FatalError, match="lies before the stored one"):
        backend.store().store(backend.at(100), 2)
    assert backend.store().load() == backend.at(200)


def test_another_stream_needs_a_higher_generation(backend):
    store = backend.store()
    store.store(backend.at(200), 1)
    elsewhere = Checkpoint(backend.elsewhere)
    with pytest.raises(FatalError, match="another stream"):
        store.store(elsewhere, 1)
    if isinstance(backend, KafkaBackend):  # a topic has commits of its own
        with pytest.raises(FatalError, match="is no place in"):
            store.store(replace(elsewhere, generation=2), 1)
        return
    store.store(replace(elsewhere, generation=2), 1)
    assert store.load() == replace(elsewhere, generation=2)


def test_a_checkpoint_that_moved_to_another_server_may_lie_before(backend):
    store = backend.store()
    store.store(backend.at(300, applied=350), 1)
    moved = backend.at(300, applied=350).moved_to(backend.at(90).resume)
    store.store(moved, 1)
    store.store(moved, 1)  # found again after a crash
    assert backend.store().load() == moved
    with pytest.raises(FatalError, match="lies before the stored one"):
        store.store(backend.at(400), 1)
    backend.lead(2)
    with pytest.raises(FencedError):
        store.store(replace(moved, resume=backend.at(95).resume), 1)


def test_a_leader_that_was_replaced_is_refused(backend):
    stale, fresh = backend.store(), backend.store()
    stale.store(backend.at(100), 1)
    backend.lead(2)
    assert fresh.load() == backend.at(100)
    with pytest.raises(FencedError, match="epoch 1 is over, epoch 2 is active"):
        stale.store(backend.at(300), 1)
    fresh.store(backend.at(200), 2)
    with pytest.raises(FencedError):
        stale.store(backend.at(300), 1)
    assert backend.store().load() == backend.at(200)


def test_pipelines_are_apart(backend):
    other = backend.store(
        PipelineId("shop", "x") if isinstance(backend.key, PipelineId) else "shop/x"
    )
    backend.store().store(backend.at(100), 1)
    assert other.load() is None


# ---- MySQL


# ---- the arbiter


def test_arbiter_what_the_leader_before_stored_late_is_stored():
    cluster = MemoryCluster()
    arbiter = MemoryArbiter(cluster)
    arbiter.channels.put("shop", {})
    key = PipelineId("shop", "orders")
    old, new = ArbiterCheckpointStore(arbiter, key), ArbiterCheckpointStore(arbiter, key)
    old.store(ONE, 1)
    assert new.load() == ONE
    old.store(THREE, 1)  # it had applied that much before it noticed
    new.store(TWO, 2)  # the new leader applies it again
    assert ArbiterCheckpointStore(arbiter, key).load() == THREE
    with pytest.raises(FencedError):
        old.store(at(400), 1)
    new.store(at(250), 2)
    assert ArbiterCheckpointStore(arbiter, key).load() == THREE
    new.store(at(350), 2)
    assert ArbiterCheckpointStore(arbiter, key).load() == at(350)
    with pytest.raises(FatalError):
        new.store(THREE, 2)


def test_arbiter_out_of_reach_is_transient():
    cluster = MemoryCluster()
    arbiter = MemoryArbiter(cluster)
    arbiter.channels.put("shop", {})
    store = ArbiterCheckpointStore(arbiter, PipelineId("shop", "orders"))
    store.store(ONE, 1)
    arbiter.link.suspend()
    with pytest.raises(TransientError):
        store.store(TWO, 1)
    with pytest.raises(TransientError):
        store.load()
    arbiter.link.resume()
    store.store(TWO, 1)
    assert store.load() == TWO


# ---- Kafka
