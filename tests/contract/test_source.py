"""What every source promises (setl.select.source.Source)."""

import itertools
import json
import re
import struct
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, cast
from zlib import crc32

import pymysql
import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic
from kafka.structs import TopicPartition

from setl.channel.file import BinlogStart, DtsSource, GtidStart, OffsetStart, TimestampStart
from setl.channel.routing import Route
from setl.codec.binlog.gtid import same_gtids
from setl.codec.dts.header import read_header
from setl.codec.dts.relayed import HEADER, LAST, RelayPlace, RelayTransaction
from setl.codec.dts.rows import DtsRowCodec
from setl.errors import (
    ConfigurationError,
    FatalError,
    PositionLostError,
    SetlError,
    TransientError,
)
from setl.extract.extractor import Extractor
from setl.extract.loopback import MarkIdentity
from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint, CheckpointTracker
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition, KafkaPosition
from setl.select.batching import BatchSettings
from setl.select.identity import replica_id
from setl.select.reader import SelectLoop
from setl.select.reading import SelectSettings
from setl.systems.kafka.source.subscription import DtsKafkaSource
from setl.systems.mysql.binlog.server import BinlogServer
from setl.systems.mysql.binlog.shared_reader import SharedReaders
from setl.systems.mysql.binlog.source import MysqlBinlogSource
from setl.systems.mysql.binlog.stream import StreamLimits
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.heartbeat import MysqlHeartbeat
from setl_embedded import Kafka
from tests.databases import EACH, new_server
from tests.families import Pair
from tests.loading import create_system_tables
from tests.mysql_servers import dump_threads, reset_binlogs
from tests.runs import single
from tests.unit.codec.dts_records import integer, record, row_record
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


class BinlogSide:
    """A database of its own on a server, whose binlog is read."""

    lost = BinlogPosition("binlog.000000", 4)
    crash = "kill"

    def __init__(self, server, shared=None):
        self.server = server
        self.shared = shared
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
        limits = {"silence": 5.0, **limits}
        self.sources.append(
            MysqlBinlogSource(
                endpoint(self.server),
                server_id or replica_id("t", self.schema, str(len(self.sources))),
                start,
                StreamLimits(**limits),
                shared=self.shared,
            )
        )
        return self.sources[-1]

    def close(self):
        for source in self.sources:
            source.close()


class DtsSide:
    """A topic of its own on a broker."""

    crash = "stop"  # the embedded broker forgets what it has not yet written down

    def __init__(self, server):
        self.server = server
        self.topic = f"dts-{uuid.uuid4().hex[:12]}"
        self.lost = KafkaPosition(self.topic, 0, 1_000_000)
        self.records = dts_records()
        self.producer = KafkaProducer(bootstrap_servers=server.brokers, linger_ms=5)
        self.sources = []
        self.send(self.records[EntryKind.HEARTBEAT], at=int(time.time()) - 5000)  # makes the topic
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
        self.send(*[self.records[kind] for kind in one * transactions], at=at)

    def config(self, start: Any = "latest", **more):
        more = {"brokers": [self.server.brokers], "topic": self.topic, **more}
        return DtsSource(type="dts", start=start, **more)

    def source(self, start="latest", **more):
        self.sources.append(DtsKafkaSource(self.config(start, **more)))
        return self.sources[-1]

    def close(self):
        for source in self.sources:
            source.close()
        self.producer.close(0)


def endpoint(server, **more):
    return MysqlEndpoint(
        server.host, server.port, **{"user": server.user, "password": server.password, **more}
    )


@pytest.fixture(params=[*EACH, *SHARED, "dts"])
def side(request):
    if isinstance(request.param, Pair):
        made = BinlogSide(request.getfixturevalue("databases").site(request.param, 0))
    elif isinstance(request.param, Shared):
        server = request.getfixturevalue("databases").site(request.param.pair, 0)
        made = BinlogSide(server, SharedReaders())
    else:
        made = DtsSide(request.getfixturevalue("kafka"))
    yield made
    made.close()


@pytest.fixture(params=[*EACH, "dts"])
def own(request, tmp_path):
    """A side on a server of its own, which a test may kill."""
    binlog = isinstance(request.param, Pair)
    server = new_server(request.param.a, tmp_path, "own", 7) if binlog else Kafka(tmp_path)
    with server:
        made = BinlogSide(server) if binlog else DtsSide(server)
        yield made
        made.close()


@pytest.fixture
def binlog(site_a):
    made = BinlogSide(site_a)
    yield made
    made.close()


@pytest.fixture
def dts(kafka):
    made = DtsSide(kafka)
    yield made
    made.close()


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


# ---- for both


def test_entries_come_in_order_with_their_positions(side):
    side.write(3)
    source = side.source()
    source.open(side.origin)
    entries = read_rows(source, 6)
    assert kinds(entries) == "BRRC" * 3
    orders = [e.position.order for e in entries]
    assert orders == sorted(set(orders))
    assert all(o > side.origin.order for o in orders)
    rows = [e for e in entries if e.kind is EntryKind.ROWS]
    assert all(e.payload and e.table and e.rows == 1 for e in rows)
    assert all(e.timestamp > 1_600_000_000 for e in rows)


def test_opened_at_any_boundary_the_rest_is_the_same(side):
    side.write(4)
    source = side.source()
    source.open(side.origin)
    whole = read_rows(source, 8)
    ends = [i + 1 for i, e in enumerate(whole) if e.kind is EntryKind.COMMIT]
    for end in [0, *ends[:-1]]:
        source.open(whole[end - 1].position if end else side.origin)
        rest = read_rows(source, 8 - sum(e.kind is EntryKind.ROWS for e in whole[:end]))
        assert comparable(rest) == comparable(whole[end:])


def test_an_idle_source_returns_nothing_in_time(side):
    source = side.source()
    source.open(source.latest())
    source.read(1000, 1.0)
    for timeout in (0.0, 0.3):
        # Once is enough: a busy machine makes any one of them late.
        eventually(lambda timeout=timeout: seconds_of_nothing(source, timeout) < timeout + 0.5, 20)


def seconds_of_nothing(source, timeout):
    """How long a read takes that brings nothing."""
    began = time.monotonic()
    found = source.read(1000, timeout)
    took = time.monotonic() - began
    if kinds(found):
        raise RuntimeError(f"not idle: {kinds(found)}")
    return took


def test_what_is_written_wakes_a_waiting_read(side):
    source = side.source()
    source.open(side.origin)
    source.read(1000, 0.5)
    threading.Timer(0.3, side.write).start()
    began, entries = time.monotonic(), []
    while not kinds(entries):
        entries = source.read(1000, 60)
    assert time.monotonic() - began < 30


def test_limit_is_about_kept(side):
    side.write(300)
    source = side.source()
    source.open(side.origin)
    sizes, rows = [], 0
    while rows < 600:
        found = source.read(50, 20)
        assert found
        sizes.append(len(found))
        rows += sum(e.kind is EntryKind.ROWS for e in single(found))
    assert max(sizes) <= 2048


def test_latest_is_where_what_comes_next_begins(side):
    side.begin_anew()
    side.write()
    source = side.source()
    source.open(side.origin)
    entries = read_rows(source, 2)
    latest = source.latest()
    assert latest.order == entries[-1].position.order
    side.write()
    later = side.source()
    later.open(latest)
    assert kinds(read_rows(later, 2)) == "BRRC"


def test_how_far_the_end_is_costs_no_question(side):
    side.write(3)
    source = side.source()
    assert source.behind() is None
    source.open(side.origin)
    assert source.behind() is None
    read_rows(source, 6)
    behind = source.behind()
    assert behind is None if isinstance(side, BinlogSide) else behind == 0
    source.close()
    assert source.behind() == behind


def test_a_pipeline_without_checkpoint_starts_where_it_is_told(side):
    side.begin_anew()
    side.write()
    assert side.source("latest").initial().order == side.source().latest().order
    earliest = side.source("earliest")
    start = earliest.initial()
    assert start.order <= side.origin.order
    earliest.open(start)
    found = []
    while not any(e.position.order > side.origin.order for e in found):
        found += earliest.read(10_000, 5)


def test_a_position_that_is_gone_is_final_and_names_the_ways_out(side):
    source = side.source()
    with pytest.raises(PositionLostError) as raised:
        source.open(side.lost)
    assert "--to latest" in raised.value.hint
    assert "--to earliest" in raised.value.hint
    source.open(side.origin)  # the source itself is none the worse for it


def test_a_position_of_another_kind_of_source_is_refused(side):
    other = KafkaPosition("x", 0, 0) if isinstance(side, BinlogSide) else BinlogSide.lost
    with pytest.raises(FatalError, match="is not one of"):
        side.source().open(other)
    with pytest.raises(FatalError, match="is not one of"):
        side.source().locate(Checkpoint(other))


def test_a_checkpoint_of_the_source_that_answers_is_left_as_it_is(side):
    source = side.source()
    for start in (source.initial(), side.source("earliest").initial()):
        checkpoint = Checkpoint(start)
        assert source.locate(checkpoint) is checkpoint
    side.write(2)
    source.open(side.origin)
    entries = read_rows(source, 4)
    source.close()
    tracker = CheckpointTracker(Checkpoint(side.origin))
    for entry in entries:
        checkpoint = tracker.advance(entry)  # between and inside transactions
        stored = Checkpoint.from_json(json.loads(json.dumps(checkpoint.to_json())))
        assert source.locate(stored) is stored


def test_a_checkpoint_that_is_gone_is_final_and_names_the_ways_out(side):
    with pytest.raises(PositionLostError) as raised:
        side.source().locate(Checkpoint(side.lost))
    assert "--to latest" in raised.value.hint
    assert "--to earliest" in raised.value.hint
    assert "setl position reset" in raised.value.hint


def test_closing_from_another_thread_ends_a_waiting_read(side):
    source = side.source()
    source.open(source.latest())
    source.read(1000, 0.5)
    timer = threading.Timer(0.3, source.close)
    timer.start()
    error, seconds = until_error(source, limit=60, wait=60)
    assert isinstance(error, TransientError)
    assert "closed" in str(error)
    assert seconds < 20
    timer.join()
    source.close()
    with pytest.raises(TransientError):
        source.read(1000, 0)
    side.write()
    source.open(side.origin)
    assert kinds(read_rows(source, 2)) == "BRRC"


def test_no_thread_is_left_behind(side):
    before = set(threading.enumerate())
    source = side.source()
    for _ in range(3):
        source.open(side.origin)
        source.read(10, 0.1)
    source.latest()
    source.close()
    eventually(lambda: set(threading.enumerate()) <= before, 30)


@pytest.mark.parametrize("crashed", [True, False], ids=["crashed", "frozen"])
def test_a_server_that_is_gone_is_noticed_and_nothing_is_lost(own, crashed):
    own.write(3)
    source = own.source()
    source.open(own.origin)
    first = read_rows(source, 6)
    if crashed:
        getattr(own.server, own.crash)()
    else:
        own.server.pause()
    error, seconds = until_error(source)
    assert isinstance(error, TransientError), error
    assert seconds < 30
    began = time.monotonic()
    with pytest.raises(TransientError) as raised:
        source.open(first[-1].position)
    assert time.monotonic() - began < 30
    assert getattr(own.server, "password", "no password") not in str(raised.value)
    with pytest.raises(TransientError):
        source.latest()
    if crashed:
        own.server.start()
    else:
        own.server.resume()
    own.write(2)
    source.open(first[-1].position)
    assert kinds(read_rows(source, 4)) == "BRRC" * 2


# ---- binlog


def test_binlog_a_start_by_gtid_becomes_a_position(binlog):
    binlog.write(2)
    source = binlog.source()
    source.open(binlog.origin)
    entries = read_rows(source, 4)
    middle = entries[3].position
    assert middle.gtid
    found = binlog.source(GtidStart(gtid=middle.gtid)).initial()
    assert found.order == middle.order
    assert same_gtids(found.gtid, middle.gtid)
    end = binlog.source(GtidStart(gtid=entries[-1].position.gtid)).initial()
    assert end.order == entries[-1].position.order
    unknown = re.sub(r"\d+$", "999999999", middle.gtid)
    with pytest.raises(PositionLostError, match="not executed"):
        binlog.source(GtidStart(gtid=unknown)).initial()
    with pytest.raises(ConfigurationError, match="not GTIDs"):
        binlog.source(GtidStart(gtid="nonsense")).initial()


def test_binlog_a_start_by_file_and_offset(binlog):
    binlog.write()
    origin = binlog.origin
    start = binlog.source(BinlogStart(file=origin.file, offset=origin.offset)).initial()
    assert start == origin
    with pytest.raises(PositionLostError, match="keeps"):
        binlog.source(BinlogStart(file="binlog.999999", offset=4)).initial()
    with pytest.raises(PositionLostError, match="ends at"):
        binlog.source(BinlogStart(file=origin.file, offset=2**31)).initial()


def test_binlog_a_start_by_file_and_offset_knows_its_gtids(binlog):
    """As long as nothing was read yet, they alone tell a replica where to go on."""
    binlog.execute("FLUSH BINARY LOGS")
    binlog.write()
    middle = binlog.source("latest").initial()
    binlog.write(2)
    assert middle.gtid
    start = binlog.source(BinlogStart(file=middle.file, offset=middle.offset)).initial()
    assert same_gtids(start.gtid, middle.gtid)
    binlog.execute("FLUSH BINARY LOGS")
    earlier = binlog.source(BinlogStart(file=middle.file, offset=middle.offset)).initial()
    assert same_gtids(earlier.gtid, middle.gtid)


def test_binlog_positions_cross_files(binlog):
    binlog.write()
    binlog.execute("FLUSH BINARY LOGS")
    binlog.write()
    source = binlog.source()
    source.open(binlog.origin)
    entries = read_rows(source, 4)
    files = [e.position.file for e in entries]
    assert len(set(files)) == 2
    assert [e.position.order for e in entries] == sorted(e.position.order for e in entries)


def test_binlog_purged_files_are_a_lost_position(another_server, tmp_path):
    with another_server(tmp_path, "own", 7) as own:
        side = BinlogSide(own)
        side.write()
        side.execute("FLUSH BINARY LOGS")
        server = BinlogServer(endpoint(own))
        newest = server.latest().file

        def purged():
            # Refused while the server still needs the file to recover from a crash.
            side.execute(f"PURGE BINARY LOGS TO '{newest}'")
            return [file.name for file in server.files()] == [newest]

        eventually(purged, 20)
        with pytest.raises(PositionLostError, match=f"was purged; it keeps {newest}"):
            side.source().open(side.origin)
        with pytest.raises(PositionLostError, match="purged"):
            side.source(GtidStart(gtid=side.origin.gtid)).initial()
        with own.connect() as connection:
            reset_binlogs(connection)
        with pytest.raises(PositionLostError, match="reset"):
            side.source().open(BinlogPosition("binlog.000009", 500))
        side.close()


def test_binlog_two_readers_with_one_server_id(binlog):
    one, two = binlog.source(server_id=3_000_000_001), binlog.source(server_id=3_000_000_001)
    one.open(binlog.origin)
    binlog.write()
    read_rows(one, 2)  # the server ends the one that it knows already, and knows it by now
    two.open(binlog.origin)
    binlog.write()
    error, _ = until_error(one)
    assert isinstance(error, FatalError)
    assert "another reader uses server id 3000000001" in str(error)
    assert "`server_id`" in error.hint
    assert kinds(read_rows(two, 4)) == "BRRC" * 2


def test_binlog_a_refused_account(binlog):
    binlog.execute(
        "DROP USER IF EXISTS low@'%'", "CREATE USER low@'%' IDENTIFIED BY 'low-secret-9'"
    )
    server = binlog.server
    for user, password in (("low", "low-secret-9"), ("low", "wrong-secret-8")):
        source = MysqlBinlogSource(endpoint(server, user=user, password=password), 3_000_000_002)
        for call in (partial(source.open, binlog.origin), source.initial, source.latest):
            with pytest.raises(ConfigurationError) as raised:
                call()
            assert "secret" not in str(raised.value)
            assert str(server.port) in str(raised.value)


def test_binlog_an_account_that_may_ask_but_not_read(binlog):
    binlog.execute(
        "DROP USER IF EXISTS monitor@'%'",
        "CREATE USER monitor@'%' IDENTIFIED BY 'pw-7'",
        "GRANT REPLICATION CLIENT ON *.* TO monitor@'%'",
    )
    source = MysqlBinlogSource(endpoint(binlog.server, user="monitor", password="pw-7"), 3_000_003)
    source.open(binlog.origin)
    error, _ = until_error(source)
    assert isinstance(error, ConfigurationError)
    assert "REPLICATION SLAVE" in str(error)
    source.close()


def test_binlog_what_came_before_something_refused_is_delivered(binlog):
    binlog.write()
    with binlog.server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        cursor.execute(f"INSERT INTO {binlog.schema}.t (v) VALUES ('statement')")
    source = binlog.source()
    source.open(binlog.origin)
    assert kinds(read_rows(source, 2)).startswith("BRRC")
    error, _ = until_error(source)
    assert type(error) is FatalError
    assert "binlog_format" in error.hint
    assert str(binlog.server.port) in str(error)


def test_binlog_a_reader_that_is_slow_does_not_fill_the_memory(binlog):
    binlog.write(transactions=600, rows=5)
    source = binlog.source(entries=200, bytes=1 << 20)
    source.open(binlog.origin)
    stream = source._stream
    assert stream is not None
    eventually(lambda: stream._waiting_entries >= 200, 30)
    for _ in range(20):
        assert stream._waiting_entries <= 200 + 1024
        time.sleep(0.01)
    entries = read_rows(source, 3000, timeout=30)
    assert kinds(entries) == "BRRRRRC" * 600
    for before, after in pairwise(entries):
        assert before.position.order < after.position.order


def test_binlog_an_event_beyond_the_limit_is_an_error_and_not_a_hang(binlog):
    binlog.execute(
        f"CREATE TABLE {binlog.schema}.big (b LONGBLOB)",
        f"INSERT INTO {binlog.schema}.big VALUES (REPEAT('x', 3000000))",
    )
    source = binlog.source(event_bytes=1024 * 1024)
    source.open(binlog.origin)
    error, seconds = until_error(source)
    assert type(error) is FatalError, error
    assert seconds < 30
    fits = binlog.source()
    fits.open(binlog.origin)
    found = []
    while not any(e.table == "big" and e.rows for e in found):
        found += fits.read(100, 5)
    assert max(len(e.payload) for e in found) > 3_000_000


def test_binlog_heartbeats_come_back_through_the_stream(binlog):
    create_system_tables(binlog.server)
    source = binlog.source()
    source.open(source.latest())
    one, two = (
        MysqlHeartbeat(endpoint(binlog.server), number, interval=0.2, name="p")
        for number in (11, 12)
    )
    one.start()
    two.start()
    try:
        rows = [e for e in read_rows(source, 6) if e.kind is EntryKind.ROWS]
        # All six may be of one of them, and each counts a write after the row is there.
        eventually(lambda: min(each.status().written for each in (one, two)) > 1, 20)
    finally:
        one.stop()
        two.stop()
    # Each write changes the row, else the binlog would have none of it.
    assert {(e.schema, e.table) for e in rows} == {("retl", "xdual")}
    assert one.status().errors == two.status().errors == 0
    with binlog.server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM retl.xdual WHERE id IN (11, 12)")
        assert cursor.fetchone() == (2,)


@pytest.mark.parametrize(
    ("age", "writes"), [("0", False), ("100", False), ("3700", True), ("-3600", True)]
)
def test_binlog_a_heartbeat_that_somebody_has_written_lately_will_do(binlog, age, writes):
    """Of several nodes, one is read; a time in the future is a clock's that was set back."""
    create_system_tables(binlog.server)
    with binlog.server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("REPLACE INTO retl.xdual VALUES (13, NOW(6) - INTERVAL %s SECOND)", (age,))
        cursor.execute("SELECT X FROM retl.xdual WHERE ID = 13")
        before = cursor.fetchone()
        source = binlog.source()
        source.open(source.latest())
        other = MysqlHeartbeat(endpoint(binlog.server), 13, interval=7200, name="p")
        other.start()
        try:
            eventually(lambda: other.status().written, 30)
        finally:
            other.stop()
        binlog.write(rows=1)
        found = [e.table for e in read_rows(source, 1 + writes) if e.kind is EntryKind.ROWS]
        assert found.count("xdual") == writes
        assert len(found) == 1 + writes
        cursor.execute("SELECT X FROM retl.xdual WHERE ID = 13")
        assert (cursor.fetchone() != before) == writes
    assert other.status().errors == 0


def drop_readers(server):
    """End all connections that stream the binlog."""
    with server.connect() as connection, connection.cursor() as cursor:
        for number in dump_threads(server):
            with suppress(pymysql.OperationalError):  # it has just ended by itself
                cursor.execute(f"KILL {number}")


def test_binlog_every_row_is_applied_once_while_connections_are_lost(binlog):
    """The whole of Select: cut transactions, lost connections, rollbacks."""
    for rows in (1, 40, 3, 200, 1, 1, 75):
        binlog.write(rows=rows)
    source = binlog.source(entries=50)
    loop = SelectLoop(
        source, SelectSettings(BatchSettings(rows=20, wait=0.01), 3), epoch=1, name="p"
    )
    checkpoint, applied, errors, cut = Checkpoint(binlog.origin), [], 0, 0
    went_back_to = []
    loop.start(checkpoint)
    try:
        while len(applied) < 321:
            try:
                batch = loop.next_batch(60)
            except TransientError:
                went_back_to.append((loop.rollback(), checkpoint))
                errors += 1
                continue
            assert batch is not None
            if errors < 3 and len(applied) > errors * 90:
                drop_readers(binlog.server)
                eventually(lambda: loop.status().state == "failed" or loop.status().waiting, 30)
                loop.rollback()
                errors += 1
                continue
            applied += [e.payload for e in batch.entries if e.rows and not checkpoint.covers(e)]
            checkpoint = loop.ack(batch)
            cut += checkpoint.applied is not None
    finally:
        loop.stop()
    assert all(got == expected for got, expected in went_back_to)
    assert errors >= 3
    assert cut > 5
    whole = binlog.source()
    whole.open(binlog.origin)
    assert applied == [e.payload for e in read_rows(whole, 321) if e.rows]


# ---- DTS over Kafka


def transaction(seconds, rows=2):
    """Records of a transaction that the source committed then."""
    values = [row_record("INSERT", [("id", 8)], sourceTimestamp=seconds) for _ in range(rows)]
    begin, end = (record(operation, sourceTimestamp=seconds) for operation in ("BEGIN", "COMMIT"))
    return [begin, *values, end]


BASE = 1_790_000_000
WRITTEN = int(time.time()) - 3000  # brokers drop records that they believe to be old


def test_dts_a_start_by_offset_and_by_time(dts):
    # Kafka's own times say nothing of the source's: here they even go backwards.
    for number in range(20):
        dts.send(*transaction(BASE + 100 * number), at=WRITTEN - 10 * number)
    assert dts.source(OffsetStart(offset=3)).initial().offset == 3
    # Offset 0 is the heartbeat that made the topic, of 2023; four records a transaction follow.
    for seconds, offset in ((-9, 1), (0, 1), (1, 5), (100, 5), (1234, 53), (1900, 77)):
        found = dts.source(TimestampStart(timestamp=BASE + seconds)).initial()
        assert found.offset == offset
        # What the record before it says, which is how the place is found again.
        if offset > 1:
            commit = transaction(BASE + 25 * (offset - 5))[-1]
            assert (found.timestamp, found.record) == (BASE + 25 * (offset - 5), crc32(commit))


def test_dts_a_start_at_a_time_that_is_not_there_names_the_nearest(dts):
    dts.send(*transaction(BASE), *transaction(BASE + 100))
    with pytest.raises(PositionLostError, match=rf"newest record is of .* \({BASE + 100}\), at o"):
        dts.source(TimestampStart(timestamp=BASE + 101)).initial()
    expire(dts, 5)
    with pytest.raises(PositionLostError, match=rf"oldest is of .* \({BASE + 100}\), at offset 5"):
        dts.source(TimestampStart(timestamp=BASE + 99)).initial()
    assert dts.source(TimestampStart(timestamp=BASE + 100)).initial().offset == 5
    expire(dts, 9)
    with pytest.raises(PositionLostError, match="no record that has a time"):
        dts.source(TimestampStart(timestamp=BASE)).initial()


@pytest.fixture
def in_transactions(dts):
    """Appends records in one transaction of Kafka's, which leaves a record nobody is shown.

    A producer for each: the embedded broker names the transactions that were given up to readers
    that are past their end, too, and a reader takes what the same producer wrote since for theirs.
    """
    numbers = itertools.count()

    def send(*values, places=None, commit=True):
        ident = f"t-{dts.topic}-{next(numbers)}"
        producer = Producer({"bootstrap.servers": dts.server.brokers, "transactional.id": ident})
        producer.init_transactions(20)
        producer.begin_transaction()
        for number, value in enumerate(values):
            headers = places and [(HEADER, places[number].encoded())]
            producer.produce(dts.topic, value, partition=0, headers=headers or None)
        producer.flush(20)
        (producer.commit_transaction if commit else producer.abort_transaction)(20)

    return send


def test_dts_places_hold_though_offsets_have_gaps(dts, in_transactions):
    for number in range(3):
        in_transactions(*transaction(BASE + number))
        in_transactions(*transaction(BASE + 500), commit=False)
    source = dts.source()
    source.open(dts.origin)
    whole = read_rows(source, 6)
    assert kinds(whole) == "BRRC" * 3
    # The last ones are no records for a reader, but it passes them.
    eventually(lambda: not source.read(10, 0.1) and source.behind() == 0, 30)
    # Each transaction of the source leaves a gap of one, and each that was given up one of five.
    assert [e.position.offset for e in whole[3::4]] == [5, 15, 25]
    for end in (3, 7, 11):
        checkpoint = Checkpoint(whole[end].position)
        assert source.locate(checkpoint) is checkpoint
        source.open(whole[end].position)
        rest = read_rows(source, 4) if end == 3 else single(source.read(10, 1))
        assert comparable(rest) == comparable(whole[end + 1 :][: len(rest)])
    latest = source.latest()
    assert latest.offset == 31
    assert source.initial() == KafkaPosition(
        dts.topic, 0, 31, BASE + 2, 0, whole[0].position.origin
    )
    source.open(latest)
    in_transactions(*transaction(BASE + 9))
    assert kinds(read_rows(source, 2)) == "BRRC"
    assert dts.source(TimestampStart(timestamp=BASE + 2)).initial().offset == 21
    with pytest.raises(PositionLostError, match=rf"\({BASE + 9}\), at offset 34"):
        dts.source(TimestampStart(timestamp=BASE + 10)).initial()


def test_dts_what_a_relay_repeats_is_no_entry_after_a_restart_either(dts, in_transactions):
    def places(begin, *ordinals):
        return [RelayPlace(RelayTransaction(1, "bin.000001", begin), o) for o in ordinals]

    in_transactions(*transaction(BASE), places=places(4, 0, 1, 2, LAST))
    in_transactions(*transaction(BASE + 1), places=places(90, 0, 1, 2, LAST))
    source = dts.source()
    source.open(dts.origin)
    whole = read_rows(source, 4)
    in_transactions(*transaction(BASE), places=places(4, 0, 1, 2, LAST))
    in_transactions(*transaction(BASE + 1)[1:], places=places(90, 1, 2, LAST))
    in_transactions(*transaction(BASE + 2), places=places(200, 0, 1, 2, LAST))
    rest = read_rows(source, 2)
    assert kinds(rest) == "BRRC"
    source.open(whole[-1].position)
    assert comparable(read_rows(source, 2)) == comparable(rest)


class Everything:
    def route(self, schema, table):
        return (Route(0, (schema, table)),)

    def shadow(self, schema, table):
        return None


def mark_record(number):
    """The mark that channel `number` writes."""
    columns = [("ID", 8), ("CHANNEL_ID", 3)]
    after = [integer(1), integer(number)]
    return row_record("UPDATE", columns, before=after, after=after, name="retl.retl_mark")


def test_dts_partitions_of_a_topic_are_streams_of_their_own(kafka):
    topic = f"dts-{uuid.uuid4().hex[:12]}"
    admin = KafkaAdminClient(bootstrap_servers=kafka.brokers)
    admin.create_topics([NewTopic(topic, num_partitions=2, replication_factor=1)])
    admin.close()
    producer = KafkaProducer(bootstrap_servers=kafka.brokers)
    own = mark_record(7)
    left, right = transaction(BASE), transaction(BASE + 5)
    # Transactions of both are open at once, and one of them is marked.
    for partition, value in (
        (0, left[0]), (0, own), (1, right[0]), (0, left[1]), (1, right[1]), (0, left[2]),
        (1, right[2]), (0, left[3]), (1, right[3]), (1, right[0]), (1, right[1]),
    ):  # fmt: skip
        producer.send(topic, value, partition=partition)
    producer.flush()
    producer.close()
    sources = [
        DtsKafkaSource(DtsSource(type="dts", brokers=[kafka.brokers], topic=topic, partition=n))
        for n in (0, 1)
    ]
    kept = []
    for number, source in enumerate(sources):
        start = KafkaPosition(topic, number, 0)
        source.open(start)
        entries = read_count(source, (5, 6)[number])
        checkpoint = CheckpointTracker(Checkpoint(start)).advance_all(entries)
        extractor = Extractor(Everything(), MarkIdentity(7), DtsRowCodec())
        extracted = extractor.extract(Batch(1, 1, entries, checkpoint, len(entries), 0))
        kept.append((checkpoint.resume.order, len(extracted.rows)))
        assert source.latest().order == (0, len(entries))
        assert source.behind() == 0
        source.close()
    # One is dropped whole; of the other a transaction is still open.
    assert kept == [((0, 5), 0), ((0, 4), 3)]


def test_dts_records_without_value_move_the_position_on(dts):
    dts.send(None)
    dts.write()
    source = dts.source()
    source.open(dts.origin)
    entries = read_rows(source, 2)
    assert [e.kind.name[0] for e in entries] == list("HBRRC")
    assert [e.position.offset for e in entries] == [2, 3, 4, 5, 6]


def test_dts_what_is_no_record_is_an_error_after_what_came_before(dts):
    dts.write()
    dts.send(b"\xff" * 200)
    source = dts.source()
    source.open(dts.origin)
    assert kinds(read_rows(source, 2)) == "BRRC"
    for _ in range(2):
        error, _ = until_error(source)
        assert type(error) is FatalError
        assert "not a DTS record" in str(error)
        assert f"{dts.topic}[0]@5" in str(error)


def test_dts_a_missing_topic_or_partition_is_a_matter_of_configuration(dts):
    with pytest.raises(ConfigurationError, match="no such topic"):
        dts.source(topic="never-made").initial()
    with pytest.raises(ConfigurationError, match="no such partition"):
        dts.source(partition=40).initial()


def test_dts_settings_are_passed_through_and_mistakes_are_named(dts):
    source = dts.source(sid="sid-1", kafka={"fetch.max.wait.ms": 100, "client_id": "x"})
    dts.write()
    source.open(dts.origin)
    assert kinds(read_rows(source, 2)) == "BRRC"
    with pytest.raises(ConfigurationError, match="nonsense"):
        dts.source(kafka={"nonsense": 1}).initial()


def expire(dts, offset):
    """Let the broker forget everything before `offset`."""
    admin = KafkaAdminClient(bootstrap_servers=dts.server.brokers)
    admin.delete_records({TopicPartition(dts.topic, 0): offset})
    admin.close()


def test_dts_expired_records_are_a_lost_position(dts):
    dts.write(2)
    expire(dts, 5)
    assert dts.source("earliest").initial().offset == 5
    with pytest.raises(PositionLostError, match="offset 1 has expired; the topic holds 5 to 9"):
        dts.source().open(dts.origin)
    with pytest.raises(PositionLostError):
        dts.source(OffsetStart(offset=4)).initial()
