"""What every checkpoint store promises (setl.select.port.CheckpointStore)."""

import time
import uuid
from dataclasses import replace

import pytest
from pymysql.constants.CLIENT import MULTI_STATEMENTS

from arbiter.memory import MemoryArbiter, MemoryCluster
from arbiter.values import PipelineId
from arbiter.zookeeper import ZooKeeperArbiter
from setl.errors import ConfigurationError, FatalError, FencedError, TransientError
from setl.model.checkpoint import Checkpoint
from setl.model.position import BinlogOrigin, BinlogPosition, KafkaOrigin, KafkaPosition
from setl.mysql.connection import MysqlEndpoint
from setl.resources import read_text
from setl.select.checkpoint_arbiter import ArbiterCheckpointStore
from setl.select.checkpoint_mysql import MysqlCheckpointStore
from setl_embedded import MariaDb


def at(number, applied=None, **more):
    return Checkpoint(
        BinlogPosition("binlog.000003", number, "0-1-7"),
        None if applied is None else BinlogPosition("binlog.000003", applied),
        timestamp=1_700_000_000.0 + number,
        **more,
    )


ONE, TWO, THREE = at(100), at(200), at(300)


def endpoint(server, **more):
    return MysqlEndpoint(server.host, server.port, server.user, server.password, **more)


def install(server):
    with server.connect(client_flag=MULTI_STATEMENTS) as connection, connection.cursor() as cursor:
        for name in ("retl.sql", "fence.sql"):
            cursor.execute(read_text("sql", name))
            while cursor.nextset():
                pass


class MysqlBackend:
    def __init__(self, server):
        self.server = server
        self.key = f"shop/{uuid.uuid4().hex}"
        self.stores = []
        install(server)
        self.lead(1)

    def lead(self, epoch):
        """`epoch` becomes the active leadership, as a new leader's fence does it."""
        with self.server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO retl.setl_fence (pipeline, epoch, nid) VALUES (%s, %s, 'n1')"
                " ON DUPLICATE KEY UPDATE epoch = VALUES(epoch)",
                (self.key, epoch),
            )

    def store(self, key=None):
        self.stores.append(MysqlCheckpointStore(endpoint(self.server), key or self.key))
        return self.stores[-1]

    def close(self):
        for store in self.stores:
            store.close()


class ArbiterBackend:
    def __init__(self, arbiter):
        self.arbiter = arbiter
        self.key = PipelineId("shop", uuid.uuid4().hex)
        arbiter.put_channel("shop", {})

    def lead(self, epoch):
        """With the arbiter, the first checkpoint of a new leader fences the others off."""
        store = self.store()
        current = store.load()
        if current is not None:
            store.store(current, epoch)

    def store(self, key=None):
        return ArbiterCheckpointStore(self.arbiter, key or self.key)

    def close(self):
        self.arbiter.close()


@pytest.fixture(params=["mysql", "memory", "zookeeper"])
def backend(request):
    if request.param == "mysql":
        made = MysqlBackend(request.getfixturevalue("mariadb_b"))
    elif request.param == "memory":
        made = ArbiterBackend(MemoryArbiter(MemoryCluster()))
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
        ONE,
        at(100, applied=170, generation=9),
        Checkpoint(KafkaPosition("cn_x-主题", 2, 1 << 40, 1_700_000_000)),
        Checkpoint(
            BinlogPosition("binlog.000003", 4, "0-1-7", BinlogOrigin("8a-1", 7, 1_700_000_000)),
            requested=3,
        ),
        Checkpoint(
            KafkaPosition("t", 0, 9, 5, 4_000_000_000, KafkaOrigin("c-1", "t-1")), requested=1
        ),
    ],
)
def test_what_was_stored_is_loaded(backend, checkpoint):
    backend.store().store(checkpoint, 1)
    assert backend.store().load() == checkpoint


def test_storing_the_same_twice_is_storing_it_once(backend):
    store = backend.store()
    store.store(ONE, 1)
    store.store(ONE, 1)
    assert store.load() == ONE


def test_it_moves_on(backend):
    store = backend.store()
    for checkpoint in (ONE, at(100, applied=120), at(100, applied=180), TWO, THREE):
        store.store(checkpoint, 1)
        assert store.load() == checkpoint


@pytest.mark.parametrize("older", [ONE, at(100, applied=240), at(190)])
def test_it_does_not_go_back(backend, older):
    store = backend.store()
    store.store(at(200, applied=250), 1)
    with pytest.raises(FatalError, match="lies before the stored one"):
        store.store(older, 1)
    assert backend.store().load() == at(200, applied=250)
    store.store(THREE, 1)  # and is none the worse for it


def test_it_does_not_go_back_for_a_new_leader_either(backend):
    backend.store().store(TWO, 1)
    backend.lead(2)
    with pytest.raises(FatalError, match="lies before the stored one"):
        backend.store().store(ONE, 2)
    assert backend.store().load() == TWO


def test_another_stream_needs_a_higher_generation(backend):
    store = backend.store()
    store.store(TWO, 1)
    elsewhere = Checkpoint(BinlogPosition("other-bin.000001", 4))
    with pytest.raises(FatalError, match="another stream"):
        store.store(elsewhere, 1)
    store.store(replace(elsewhere, generation=2), 1)
    assert store.load() == replace(elsewhere, generation=2)


def test_a_checkpoint_that_moved_to_another_server_may_lie_before(backend):
    store = backend.store()
    store.store(at(300, applied=350), 1)
    moved = at(300, applied=350).moved_to(BinlogPosition("binlog.000001", 90, "0-1-7"))
    store.store(moved, 1)
    store.store(moved, 1)  # found again after a crash
    assert backend.store().load() == moved
    with pytest.raises(FatalError, match="lies before the stored one"):
        store.store(at(400), 1)
    backend.lead(2)
    with pytest.raises(FencedError):
        store.store(replace(moved, resume=BinlogPosition("binlog.000001", 95)), 1)


def test_a_leader_that_was_replaced_is_refused(backend):
    stale, fresh = backend.store(), backend.store()
    stale.store(ONE, 1)
    backend.lead(2)
    assert fresh.load() == ONE
    with pytest.raises(FencedError, match="epoch 1 is over, epoch 2 is active"):
        stale.store(THREE, 1)
    fresh.store(TWO, 2)
    with pytest.raises(FencedError):
        stale.store(THREE, 1)
    assert backend.store().load() == TWO


def test_pipelines_are_apart(backend):
    other = backend.store(
        PipelineId("shop", "x") if isinstance(backend.key, PipelineId) else "shop/x"
    )
    backend.store().store(ONE, 1)
    assert other.load() is None


# ---- MySQL


@pytest.fixture
def mysql(mariadb_b):
    made = MysqlBackend(mariadb_b)
    yield made
    made.close()


def kill_connection(store, server):
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"KILL {store._connection.thread_id()}")


def test_mysql_a_dropped_connection_is_opened_again(mysql):
    store = mysql.store()
    store.store(ONE, 1)
    kill_connection(store, mysql.server)
    store.store(TWO, 1)
    kill_connection(store, mysql.server)
    assert store.load() == TWO


def test_mysql_the_fence_must_have_been_raised(mysql):
    never = mysql.store("shop/never")
    with pytest.raises(FatalError, match="was not raised"):
        never.store(ONE, 1)
    with pytest.raises(FatalError, match="was not raised"):
        mysql.store().store(ONE, 2)
    assert mysql.store().load() is None


def test_mysql_a_new_leader_waits_for_a_store_under_way_and_then_it_is_over(mysql):
    """The fence row is locked in share mode while a checkpoint is written."""
    blocker = mysql.server.connect(autocommit=False)
    try:
        with blocker.cursor() as cursor:
            cursor.execute("UPDATE retl.setl_fence SET epoch = 2 WHERE pipeline = %s", (mysql.key,))
        store = MysqlCheckpointStore(endpoint(mysql.server), mysql.key, timeout=1.0)
        began = time.monotonic()
        with pytest.raises(TransientError, match="1205"):
            store.store(ONE, 1)
        assert time.monotonic() - began < 5
        blocker.commit()
        with pytest.raises(FencedError):
            store.store(ONE, 1)
        store.close()
    finally:
        blocker.close()


def test_mysql_what_is_no_checkpoint_is_said_to_be_none(mysql):
    with mysql.server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO retl.setl_checkpoint (pipeline, epoch, checkpoint) VALUES (%s, 1, %s)",
            (mysql.key, "[1]"),
        )
    with pytest.raises(FatalError, match="not a stored checkpoint"):
        mysql.store().load()


def test_mysql_a_missing_table_is_a_matter_of_configuration(tmp_path):
    with MariaDb(tmp_path, "bare", 1) as server:
        store = MysqlCheckpointStore(endpoint(server), "shop/x", timeout=2.0)
        with pytest.raises(ConfigurationError, match="setl_checkpoint"):
            store.load()
        install(server)
        assert store.load() is None
        server.pause()
        try:
            began = time.monotonic()
            with pytest.raises(TransientError):
                store.load()
            assert time.monotonic() - began < 15
        finally:
            server.resume()
        assert store.load() is None
        server.kill()
        with pytest.raises(TransientError) as raised:
            store.load()
        assert server.password not in str(raised.value)
        store.close()


# ---- the arbiter


def test_arbiter_what_the_leader_before_stored_late_is_kept():
    cluster = MemoryCluster()
    arbiter = MemoryArbiter(cluster)
    arbiter.put_channel("shop", {})
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
    arbiter.put_channel("shop", {})
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
