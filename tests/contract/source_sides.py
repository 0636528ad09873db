"""Something to write to and the source that reads it: a binlog, or a topic of DTS records."""

import struct
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from kafka import KafkaProducer

from setl.channel.file import KafkaSource
from setl.codec.dts.header import read_header
from setl.errors import SetlError
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition, KafkaPosition
from setl.select.identity import replica_id
from setl.systems.kafka.source.subscription import DtsKafkaSource
from setl.systems.mysql.binlog.server import BinlogServer
from setl.systems.mysql.binlog.source import MysqlBinlogSource
from setl.systems.mysql.binlog.stream import StreamLimits
from setl.systems.mysql.connection import MysqlEndpoint
from tests.databases import EACH
from tests.families import Pair
from tests.runs import single
from tests.unit.formats.records import records_of
from tests.waiting import eventually

FIXTURES = Path(__file__).parent.parent / "unit" / "data" / "dts"


class Shared(NamedTuple):
    """A server whose binlog may be read together with others."""

    pair: Pair


SHARED = [
    pytest.param(Shared(cast("Pair", each.values[0])), id=f"{each.id}-shared", marks=each.marks)
    for each in EACH
]


def dts_records():
    """One record of each operation, from the fixture file."""
    data, found, at = (FIXTURES / "orders.bin").read_bytes(), {}, 0
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        value = data[at + 4 : at + 4 + size]
        at += 4 + size
        found.setdefault(read_header(value, KafkaPosition("t", 0, 1)).kind, value)
    return found


class Side:
    """What all have in common.

    Attributes:
        transaction: what `kinds` says of a transaction of two rows.
    """

    def kinds(self, entries):
        """Letters of entries."""
        return kinds(entries)

    def comparable(self, entries):
        """Entries as far as they are the same when they are read again."""
        return comparable(entries)

    def records(self, entries):
        """Entries that are records of their own."""
        return entries


class BinlogSide(Side):
    """A database of its own on a server, whose binlog is read."""

    lost = BinlogPosition("binlog.000000", 4)
    crash = "kill"
    transaction = "BRRC"

    def __init__(self, server, shared=None, **limits):
        self.server = server
        self.shared = shared
        self.limits = limits
        self.schema = f"source_{uuid.uuid4().hex[:12]}"
        self.execute(
            f"CREATE DATABASE {self.schema}",
            f"CREATE TABLE {self.schema}.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(50))",
        )
        self.sources = []
        self.origin = self.source("latest").initial()

    def begin_anew(self):
        """Forget what is in the server's log, where other tests write what stops a reader."""
        self.execute("FLUSH BINARY LOGS")
        eventually(self.is_purged, 30)
        self.origin = self.source("latest").initial()

    def is_purged(self):
        """Purge all but the newest file; whether the server has let go of the others.

        It keeps a file that it needs to recover from a crash. MariaDB writes an event once it
        needs it no more, so the log's end moves by itself until then.
        """
        server = BinlogServer(endpoint(self.server))
        newest = server.latest().file
        self.execute(f"PURGE BINARY LOGS TO '{newest}'")
        return [file.name for file in server.files()] == [newest]

    def execute(self, *statements):
        with self.server.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def write(self, transactions=1, rows=2):
        with (
            self.server.connect(autocommit=False) as connection,
            connection.cursor() as cursor,
        ):
            for _ in range(transactions):
                for _ in range(rows):
                    cursor.execute(f"INSERT INTO {self.schema}.t (v) VALUES (UUID())")
                connection.commit()

    def source(self, start: Any = "latest", *, server_id=None, **limits):
        self.sources.append(
            MysqlBinlogSource(
                endpoint(self.server),
                server_id or replica_id("t", self.schema, str(len(self.sources))),
                start,
                StreamLimits(**self.limits, **limits),
                shared=self.shared,
            )
        )
        return self.sources[-1]

    def close(self):
        for source in self.sources:
            source.close()


class DtsSide(Side):
    """A topic of its own on a broker."""

    crash = "stop"  # the embedded broker forgets what it has not yet written down
    transaction = "BRRC"

    def __init__(self, server):
        self.server = server
        self.topic = f"dts-{uuid.uuid4().hex[:12]}"
        self.lost = KafkaPosition(self.topic, 0, 1_000_000)
        self.stored = dts_records()
        self.producer = KafkaProducer(bootstrap_servers=server.brokers, linger_ms=5)
        self.sources = []
        self.send(self.stored[EntryKind.HEARTBEAT], at=int(time.time()) - 5000)  # makes the topic
        self.origin = KafkaPosition(self.topic, 0, 1)

    def send(self, *values, at=None):
        """Append records; `at` is the timestamp that Kafka keeps, in seconds."""
        stamp = None if at is None else at * 1000
        for value in values:
            self.producer.send(self.topic, value, key=b"k", partition=0, timestamp_ms=stamp)
        self.producer.flush()

    def begin_anew(self):
        """Nothing to do: the topic is this test's own."""

    def write(self, transactions=1, rows=2, at=None):
        one = [EntryKind.BEGIN, *[EntryKind.ROWS] * rows, EntryKind.COMMIT]
        self.send(*[self.stored[kind] for kind in one * transactions], at=at)

    def config(self, start: Any = "latest", **more):
        more = {"brokers": [self.server.brokers], "topic": self.topic, **more}
        return KafkaSource(type="kafka", start=start, **more)

    def source(self, start="latest", *, clock=None, **more):
        self.sources.append(DtsKafkaSource(self.config(start, **more), clock=clock))
        return self.sources[-1]

    def close(self):
        for source in self.sources:
            source.close()
        self.producer.close(0)


class StandaloneSide(DtsSide):
    """A topic in which each record stands alone.

    How many of them a COMMIT follows depends on how many came at once, so only rows are compared.
    """

    transaction = "RR"

    def __init__(self, server, format_):
        records = records_of(format_)
        self.format = format_
        (_, self.beat), (_, self.row) = records.heartbeat(), records.insert(1)
        super().__init__(server)

    def write(self, transactions=1, rows=2, at=None):
        self.send(*[self.row] * rows * transactions, at=at)

    def config(self, start: Any = "latest", **more):
        return super().config(start, **{"format": self.format, **more})

    def kinds(self, entries):
        return "".join(letter for letter in kinds(entries) if letter == "R")

    def comparable(self, entries):
        return comparable(self.records(entries))

    def records(self, entries):
        return [e for e in entries if e.kind is EntryKind.ROWS]

    def send(self, *values, at=None):
        beat = self.stored[EntryKind.HEARTBEAT]
        super().send(*[self.beat if value == beat else value for value in values], at=at)


def endpoint(server, **more):
    return MysqlEndpoint(
        server.host, server.port, **{"user": server.user, "password": server.password, **more}
    )


def read_rows(source, count, timeout=60.0):
    """Entries until `count` rows and the end of their transaction were read."""
    entries, deadline = [], time.monotonic() + timeout
    while sum(e.kind is EntryKind.ROWS for e in entries) < count or (
        entries[-1].kind is not EntryKind.COMMIT
    ):
        assert time.monotonic() < deadline, f"only {[e.kind.name for e in entries[-9:]]}"
        entries += single(source.read(1000, 0.5))
    return entries


def read_count(source, count):
    """Entries until there are so many, and no more."""
    entries = []
    eventually(lambda: entries.extend(single(source.read(1000, 0.2))) or len(entries) >= count, 60)
    assert len(entries) == count
    return entries


def comparable(entries):
    """Without the context: a stream opened inside a file has a format event made for it.

    And without what a position says of the record before it: of a run, that is of its last one.
    """
    found = [entry._replace(context=()) for entry in entries]
    return [
        entry._replace(position=replace(entry.position, record=0))
        if entry.kind is EntryKind.ROWS and isinstance(entry.position, KafkaPosition)
        else entry
        for entry in found
    ]


def kinds(entries):
    return "".join(e.kind.name[0] for e in entries if e.kind is not EntryKind.HEARTBEAT)


def until_error(source, limit=40.0, wait=0.5):
    """Read until that fails; returns the error and how long it took."""
    began = time.monotonic()
    while True:
        assert time.monotonic() - began < limit, "no error"
        try:
            source.read(1000, wait)
        except SetlError as error:
            return error, time.monotonic() - began
