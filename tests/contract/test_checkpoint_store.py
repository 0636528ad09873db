"""What every checkpoint store promises (setl.select.source.CheckpointStore)."""

import time
import uuid
from contextlib import closing
from dataclasses import replace

import pytest
from confluent_kafka import KafkaError
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import OffsetAndMetadata, TopicPartition

from arbiter.values import PipelineId
from arbiter.zookeeper import ZooKeeperArbiter
from setl.channel.file import DtsSource
from setl.errors import (
    ConfigurationError,
    FatalError,
    FencedError,
    TargetWentBackError,
    TransientError,
)
from setl.model.checkpoint import Checkpoint
from setl.model.position import BinlogOrigin, BinlogPosition, KafkaOrigin, KafkaPosition
from setl.select.checkpoints.arbiter import ArbiterCheckpointStore, ArbiterNotes
from setl.select.checkpoints.file import FileCheckpointStore
from setl.select.checkpoints.note import CheckpointNote
from setl.select.checkpoints.owner import Owner
from setl.systems.kafka.checkpoints import KafkaCheckpointStore
from setl.systems.kafka.commit import read_commit
from setl.systems.kafka.errors import commit_error
from setl.systems.kafka.reader import open_reader
from setl.systems.mysql.checkpoints import MysqlCheckpointStore
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.sql_files import system_table_statements
from setl_embedded import Kafka
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.databases import EACH
from tests.families import Pair
from tests.waiting import eventually


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
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in system_table_statements():
            cursor.execute(statement)


class MysqlBackend:
    at = staticmethod(at)
    origin = BinlogOrigin("8a-1", 7, 1_700_000_000)
    elsewhere = BinlogPosition("other-bin.000001", 4)

    def __init__(self, server):
        self.server = server
        self.key = f"shop/{uuid.uuid4().hex}"
        self.stores = []
        self.arbiter = MemoryArbiter(MemoryCluster())
        self.arbiter.put_channel("shop", {})
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
        self.stores.append(mysql_store(self.server, key or self.key, self.arbiter))
        return self.stores[-1]

    def close(self):
        for store in self.stores:
            store.close()


def mysql_store(server, key, arbiter, **limits):
    notes = ArbiterNotes(arbiter, PipelineId(*key.split("/")))
    return MysqlCheckpointStore(endpoint(server), Owner(key, "n1", "host"), notes, **limits)


class ArbiterBackend:
    at = staticmethod(at)
    origin = BinlogOrigin("8a-1", 7, 1_700_000_000)
    elsewhere = BinlogPosition("other-bin.000001", 4)

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


class NotedBackend:
    """What the stores with a note beside the mainstem have in common."""

    def __init__(self):
        self.arbiter = MemoryArbiter(MemoryCluster())
        self.arbiter.put_channel("shop", {})
        self.key = PipelineId("shop", uuid.uuid4().hex)
        self.stores = []

    lead = ArbiterBackend.lead

    def owner(self, key=None, host="here"):
        return Owner(str(key or self.key), f"node-{host}", host)

    def notes(self, key=None):
        return ArbiterNotes(self.arbiter, key or self.key)

    def close(self):
        for store in self.stores:
            store.close()


class FileBackend(NotedBackend):
    at = staticmethod(at)
    origin = BinlogOrigin("8a-1", 7, 1_700_000_000)
    elsewhere = BinlogPosition("other-bin.000001", 4)

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def path(self, key=None, host="here"):
        (self.folder / host).mkdir(exist_ok=True)
        return self.folder / host / f"{(key or self.key).pipeline}.json"

    def store(self, key=None, host="here"):
        return FileCheckpointStore(self.path(key, host), self.notes(key), self.owner(key, host))


class KafkaBackend(NotedBackend):
    origin = KafkaOrigin("c-1", "t-1")

    def __init__(self, server):
        super().__init__()
        self.brokers = server.brokers
        self.topic = f"commits-{uuid.uuid4().hex[:12]}"
        # Its key is the topic too, so another stream has a commit of its own.
        self.elsewhere = KafkaPosition(f"{self.topic}-other", 0, 4)
        self.partition = TopicPartition(self.topic, 0)
        producer = KafkaProducer(bootstrap_servers=server.brokers)
        producer.send(self.topic, b"x", partition=0).get(60)  # makes the topic
        producer.close()

    def at(self, number, applied=None, **more):
        return Checkpoint(
            KafkaPosition(self.topic, 0, number, 1_700_000_000 + number, 77),
            None if applied is None else KafkaPosition(self.topic, 0, applied),
            timestamp=1_700_000_000.0 + number,
            **more,
        )

    def config(self, key=None, **more):
        sid = (key or self.key).pipeline
        return DtsSource(type="dts", brokers=[self.brokers], topic=self.topic, sid=sid, **more)

    def store(self, key=None, **more):
        made = KafkaCheckpointStore(self.config(key), self.notes(key), self.owner(key), **more)
        self.stores.append(made)
        return made

    def consumer(self, **more):
        """A client of the group that is not setl's."""
        return KafkaConsumer(
            bootstrap_servers=self.brokers,
            group_id=self.key.pipeline,
            enable_auto_commit=False,
            **more,
        )

    def foreign_commit(self, offset, metadata):
        consumer = self.consumer()
        consumer.commit({self.partition: OffsetAndMetadata(offset, metadata, -1)})
        consumer.close()

    def committed(self):
        consumer = self.consumer()
        try:
            return consumer.committed(self.partition, metadata=True)
        finally:
            consumer.close()


@pytest.fixture(params=[*EACH, "memory", "zookeeper", "kafka", "file"])
def backend(request):
    if isinstance(request.param, Pair):
        made = MysqlBackend(request.getfixturevalue("databases").site(request.param, 1))
    elif request.param == "kafka":
        made = KafkaBackend(request.getfixturevalue("kafka"))
    elif request.param == "file":
        made = FileBackend(request.getfixturevalue("tmp_path"))
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
        {"number": 100},
        {"number": 100, "applied": 170, "generation": 9},
        {"number": 1 << 40, "rows": 1 << 50, "requested": 3},
    ],
)
def test_what_was_stored_is_loaded(backend, checkpoint):
    checkpoint = backend.at(**checkpoint)
    backend.store().store(checkpoint, 1)
    assert backend.store().load() == checkpoint


def test_where_a_position_is_of_is_kept(backend):
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


@pytest.fixture
def mysql(site_b):
    made = MysqlBackend(site_b)
    yield made
    made.close()


def kill_connection(store, server):
    """End a store's connection; the server does so a moment after it was told to."""
    number = store._connection.thread_id()
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"KILL {number}")

        def gone():
            cursor.execute(f"SELECT 1 FROM information_schema.processlist WHERE id = {number}")
            return not cursor.fetchall()

        eventually(gone, 20)


def test_mysql_a_dropped_connection_is_opened_again(mysql):
    store = mysql.store()
    store.store(ONE, 1)
    kill_connection(store, mysql.server)
    store.store(TWO, 1)
    kill_connection(store, mysql.server)
    assert store.load() == TWO


def test_mysql_the_fence_must_have_been_raised(mysql):
    never = mysql.store("shop/never")
    with pytest.raises(TargetWentBackError, match="was not raised"):
        never.store(ONE, 1)
    with pytest.raises(TargetWentBackError, match="was not raised"):
        mysql.store().store(ONE, 2)
    assert mysql.store().load() is None


def test_mysql_a_target_that_was_set_back_is_not_passed_over(mysql):
    """A backup of this very leadership has its epoch, and a checkpoint further back."""
    store = mysql.store()
    store.store(ONE, 1)
    admin = mysql.server.connect(autocommit=True)
    with closing(admin), admin.cursor() as cursor:
        where = "WHERE pipeline = %s"
        cursor.execute(f"SELECT checkpoint FROM retl.setl_checkpoint {where}", (mysql.key,))
        ((backup,),) = cursor.fetchall()
        store.store(TWO, 1)
        cursor.execute(
            f"UPDATE retl.setl_checkpoint SET checkpoint = %s {where}", (backup, mysql.key)
        )
        with pytest.raises(TargetWentBackError, match="has lost the checkpoint"):
            store.store(THREE, 1)
        assert store.load() == ONE
        cursor.execute(f"DELETE FROM retl.setl_checkpoint {where}", (mysql.key,))
        with pytest.raises(TargetWentBackError, match="it holds none"):
            store.store(THREE, 1)
    with pytest.raises(FatalError, match="has none: it was set back") as lost:
        mysql.store().load()
    assert "kept in the target" in lost.value.message
    assert "since epoch 1" in lost.value.message
    assert "setl position reset" in lost.value.hint


def test_mysql_a_target_that_never_had_a_checkpoint_is_no_loss(mysql):
    assert mysql.store().load() is None
    # A note about another store says nothing of this one.
    ident = PipelineId(*mysql.key.split("/"))
    note = CheckpointNote(1, "file", "/var/lib/x", "n1", "host")
    ArbiterNotes(mysql.arbiter, ident).keep(ONE, note)
    assert mysql.store().load() is None


def test_mysql_a_note_is_written_once_for_a_leadership_and_a_generation(mysql):
    ident = PipelineId(*mysql.key.split("/"))
    store, written = mysql.store(), []
    store.load()
    keep = mysql.arbiter.store_position
    mysql.arbiter.store_position = lambda *a: written.append(a) or keep(*a)
    for checkpoint in (ONE, TWO, THREE):
        store.store(checkpoint, 1)
    assert len(written) == 1
    mysql.lead(2)
    store.store(replace(THREE, generation=2), 2)
    assert len(written) == 2
    note = ArbiterNotes(mysql.arbiter, ident).read()
    assert note is not None
    assert (note.store, note.epoch, note.generation) == ("target", 2, 2)


def test_mysql_a_new_leader_waits_for_a_store_under_way_and_then_it_is_over(mysql):
    """The fence row is locked in share mode while a checkpoint is written."""
    blocker = mysql.server.connect(autocommit=False)
    try:
        with blocker.cursor() as cursor:
            cursor.execute("UPDATE retl.setl_fence SET epoch = 2 WHERE pipeline = %s", (mysql.key,))
        store = mysql_store(mysql.server, mysql.key, mysql.arbiter, timeout=1.0)
        began = time.monotonic()
        with pytest.raises(TransientError, match="1205"):
            store.store(ONE, 1)
        assert time.monotonic() - began < 20  # a server waits for 50 s by itself
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


def test_mysql_a_note_that_cannot_be_read_is_replaced(mysql):
    mysql.store().store(TWO, 1)
    ident = PipelineId(*mysql.key.split("/"))
    path, znodes = f"/setl/channels/{mysql.key}/position", mysql.arbiter._znodes
    znodes.write(path, b"rubbish", znodes.read(path).version)
    with pytest.raises(FatalError, match="reset it"):
        mysql.store().store(THREE, 1)
    mysql.store().replace(ONE, 1)
    assert mysql.store().load() == ONE
    note = ArbiterNotes(mysql.arbiter, ident).read()
    assert note is not None
    assert note.store == "target"


def test_mysql_a_missing_table_is_a_matter_of_configuration(another_server, tmp_path):
    with another_server(tmp_path, "bare", 1) as server:
        arbiter = MemoryArbiter(MemoryCluster())
        arbiter.put_channel("shop", {})
        store = mysql_store(server, "shop/x", arbiter, timeout=5.0)
        with pytest.raises(ConfigurationError, match="retl"):
            store.load()
        install(server)
        assert store.load() is None
        server.pause()
        try:
            began = time.monotonic()
            with pytest.raises(TransientError):
                store.load()
            assert time.monotonic() - began < 30
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


# ---- Kafka


@pytest.fixture
def commits(kafka):
    made = KafkaBackend(kafka)
    yield made
    made.close()


def test_kafka_a_commit_says_the_time_first_and_the_next_offset(commits):
    commits.store().store(commits.at(300, applied=350), 7)
    found = commits.committed()
    assert found.offset == 300
    assert found.metadata.startswith(f"{1_700_000_300}|{{")


@pytest.mark.parametrize("metadata", ["1700000042", "1700000042|anything", ""])
def test_kafka_another_client_s_commit_is_gone_on_from(commits, metadata):
    """Alibaba's client commits the record itself, so it is read once more."""
    commits.foreign_commit(42, metadata)
    seconds = 1_700_000_042 if metadata else 0
    assert commits.store().load() == Checkpoint(
        KafkaPosition(commits.topic, 0, 42, seconds), timestamp=float(seconds), requested=1
    )
    commits.store().store(commits.at(43), 1)
    assert commits.store().load() == commits.at(43)


def test_kafka_another_client_s_commit_is_read_whatever_its_length(commits):
    """The client library reads on behind what another client commits, up to a zero."""
    reader = open_reader(commits.config(), 10.0, few=True)
    try:
        for length in range(80):  # one length in four had something behind it
            commits.foreign_commit(42, metadata := f"1700000042{'x' * length}")
            committed = reader.committed(0)
            assert committed is not None
            offset, found = committed
            assert (offset, found[: len(metadata)]) == (42, metadata)
            assert read_commit(commits.topic, 0, offset, found).timestamp == 1_700_000_042
    finally:
        reader.close()


def test_kafka_another_client_s_commit_keeps_the_generation(commits):
    commits.store().store(commits.at(100, generation=5, requested=2), 1)
    commits.foreign_commit(200, "")
    found = commits.store(generation=2).load()
    assert (found.resume.offset, found.generation) == (200, 5)
    assert found.outdated(3)
    assert not found.outdated(2)


def test_kafka_another_client_that_went_further_is_an_error_unless_it_took_turns(commits):
    store = commits.store()
    store.store(commits.at(100), 1)
    commits.foreign_commit(200, "")
    with pytest.raises(FatalError, match="lies before the stored one"):
        store.store(commits.at(150), 1)

    class Member:
        def commit(self, offsets):
            raise AssertionError("it must not commit")

    shared = commits.store(member=Member())
    shared.load()
    with pytest.raises(TransientError, match=r"has moved on to .*@200"):
        shared.store(commits.at(150), 1)
    assert commits.committed().offset == 200


def test_kafka_a_commit_that_has_expired_is_no_first_start(commits):
    commits.store().store(commits.at(100), 3)
    config = commits.config(PipelineId("shop", "nothing-committed"))
    emptied = KafkaCheckpointStore(config, commits.notes(), commits.owner())
    commits.stores.append(emptied)
    with pytest.raises(FatalError, match=r"since epoch 3.*has expired") as raised:
        emptied.load()
    assert "setl position reset" in str(raised.value)
    emptied.replace(commits.at(400, generation=2), 4)
    assert emptied.load() == commits.at(400, generation=2)


def test_kafka_two_pipelines_in_one_group_are_refused(commits):
    commits.store().store(commits.at(100), 1)
    other = PipelineId("shop", "other")
    store = KafkaCheckpointStore(commits.config(), commits.notes(other), commits.owner(other))
    commits.stores.append(store)
    with pytest.raises(ConfigurationError, match=f"keeps the checkpoint of {commits.key}"):
        store.load()
    with pytest.raises(ConfigurationError, match="keeps the checkpoint of"):
        store.store(commits.at(900), 9)
    assert commits.store().load() == commits.at(100)


def test_kafka_what_a_former_leader_stored_late_is_kept_or_replaced(commits):
    old, new = commits.store(), commits.store()
    old.store(commits.at(100), 1)
    assert new.load() == commits.at(100)
    old.store(commits.at(300), 1)
    new.store(commits.at(200), 2)
    assert commits.store().load() == commits.at(300)
    # It slips in between comparing and committing; the next store fixes that.
    old.replace(commits.at(50), 1)
    new.store(commits.at(350), 2)
    assert commits.store().load() == commits.at(350)
    with pytest.raises(FencedError):
        old.store(commits.at(400), 1)


def test_kafka_what_slips_in_over_a_position_that_was_set_anew_is_not_gone_on_from(commits):
    """It may lie further on, and the operator wants what is in between once more."""
    frozen = commits.store()
    frozen.store(commits.at(300), 1)
    compared = frozen._committed()
    commits.store().replace(commits.at(100, generation=2), 2)
    frozen._committed = lambda: compared  # it had compared before it was frozen, and commits now
    frozen.store(commits.at(400), 1)
    assert commits.committed().offset == 400
    with pytest.raises(FatalError, match="of generation 1, not of 2") as raised:
        commits.store().load()
    assert "setl position reset" in str(raised.value)
    commits.store().replace(commits.at(100, generation=3), 3)
    assert commits.store().load() == commits.at(100, generation=3)


def test_kafka_members_of_the_group_keep_others_from_committing(commits):
    store = commits.store()
    member = commits.consumer(session_timeout_ms=6000)
    try:
        member.subscribe([commits.topic])
        deadline = time.monotonic() + 60
        while not member.assignment():
            assert time.monotonic() < deadline
            member.poll(200)
        with pytest.raises(TransientError, match="present members only") as raised:
            store.store(commits.at(100), 1)
        assert "mode: subscribe" in raised.value.hint
    finally:
        member.close()
    store.store(commits.at(100), 1)
    assert store.load() == commits.at(100)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (KafkaError.GROUP_AUTHORIZATION_FAILED, ConfigurationError),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ConfigurationError),
        (KafkaError.OFFSET_METADATA_TOO_LARGE, FatalError),
        (KafkaError.ILLEGAL_GENERATION, TransientError),
        (KafkaError.UNKNOWN_MEMBER_ID, TransientError),
        (KafkaError.REQUEST_TIMED_OUT, TransientError),
    ],
)
def test_kafka_refusals_have_their_kinds(error, kind):
    assert type(commit_error(KafkaError(error), "g")) is kind


def test_kafka_out_of_reach_is_transient(tmp_path):
    with Kafka(tmp_path) as server:
        commits = KafkaBackend(server)
        store = KafkaCheckpointStore(
            commits.config(), commits.notes(), commits.owner(), timeout=5.0
        )
        commits.stores.append(store)
        store.store(commits.at(100), 1)
        server.pause()
        try:
            began = time.monotonic()
            with pytest.raises(TransientError):
                store.store(commits.at(200), 1)
            with pytest.raises(TransientError):
                store.load()
            assert time.monotonic() - began < 40
        finally:
            server.resume()
        store.store(commits.at(200), 1)
        assert store.load() == commits.at(200)
        commits.close()
