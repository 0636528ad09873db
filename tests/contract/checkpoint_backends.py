"""Stores of checkpoints with all that they need: where they store, and who leads."""

import uuid

from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import OffsetAndMetadata, TopicPartition

from arbiter.values import PipelineId
from setl.channel.file import KafkaSource
from setl.model.checkpoint import Checkpoint
from setl.model.position import BinlogOrigin, BinlogPosition, KafkaOrigin, KafkaPosition
from setl.select.checkpoints.arbiter import ArbiterCheckpointStore, ArbiterNotes
from setl.select.checkpoints.file import FileCheckpointStore
from setl.select.checkpoints.owner import Owner
from setl.systems.kafka.checkpoints import KafkaCheckpointStore
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.sql_files import system_table_statements
from setl.systems.mysql.stored.checkpoints import MysqlCheckpointStore
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster


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
        self.arbiter.channels.put("shop", {})
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
        arbiter.channels.put("shop", {})

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
    """What the stores with a note beside the leader lock have in common."""

    def __init__(self):
        self.arbiter = MemoryArbiter(MemoryCluster())
        self.arbiter.channels.put("shop", {})
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
        path, notes, owner = self.path(key, host), self.notes(key), self.owner(key, host)
        return FileCheckpointStore(path, notes, owner, self.folder)


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
        return KafkaSource(type="kafka", brokers=[self.brokers], topic=self.topic, sid=sid, **more)

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
