"""A pipeline that shares a subscription with other members of its consumer group."""

import logging
import struct
import threading
import time
import uuid
from contextlib import suppress
from itertools import pairwise
from typing import Any, cast

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata, TopicPartition

from arbiter.values import PipelineId
from setl.channel.file import OffsetStart
from setl.channel.reading import parse_channel
from setl.clock import SystemClock
from setl.errors import ConfigurationError, SetlError, TransientError
from setl.model.entry import EntryKind
from setl.model.leadership import Leadership
from setl.operate.positions.position import look_at_position
from setl.operate.positions.reposition import move
from setl.run.checkpoints import stores as checkpoints
from setl.run.checkpoints.stores import store_for_run, store_interval
from setl.run.measured.progress import Progress
from setl.run.run import PipelineRun
from setl.run.work import Applied
from setl.select.batching import BatchSettings
from setl.select.reader import SelectLoop
from setl.select.reading import SelectSettings
from setl.select.start_point import StartPoint
from setl.systems.kafka.source.group import GroupMembership
from setl.systems.registry import system_of
from setl_embedded import Kafka
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.checking import check_channel
from tests.unit.codec.dts_records import record
from tests.waiting import eventually

QUICK = {
    "session_timeout_ms": 6000,
    "heartbeat_interval_ms": 300,
    # The embedded broker may wait that long for a member that has just left.
    "max_poll_interval_ms": 6000,
}


class Collecting:
    """The work of a run: notes which rows it was given, and fails when told to."""

    abandoned = False
    room = 1
    targets = ()

    def __init__(self):
        self.offsets = []
        self.begun = []
        self.failures = []

    def __getattr__(self, name):
        """Whatever else a run asks of it, it does nothing."""
        return lambda *_: None

    def with_written(self, checkpoint):
        return checkpoint

    def begin(self, checkpoint):
        self.begun.append(checkpoint.resume.offset)
        return checkpoint

    def apply(self, batches, allowed):
        if self.failures:
            raise self.failures.pop()
        if not allowed():
            return None
        entries = [e for b in batches for e in b.entries if e.kind is EntryKind.ROWS]
        self.offsets += [e.position.offset - 1 for e in entries]
        return Applied(len(entries), wrote=bool(entries))


class Shared:
    """A topic that is written all the time, and the group that reads it."""

    def __init__(self, server):
        self.server = server
        self.topic = f"shared-{uuid.uuid4().hex[:12]}"
        self.sid = f"group-{uuid.uuid4().hex[:12]}"
        self.partition = TopicPartition(self.topic, 0)
        self.producer = KafkaProducer(bootstrap_servers=server.brokers, linger_ms=5)
        self.begin, self.row, self.commit = (
            record("BEGIN"),
            record("INSERT", objectName="s.t"),
            record("COMMIT"),
        )
        self.rows = []
        self.write()
        self.arbiter = MemoryArbiter(MemoryCluster())
        self.arbiter.channels.put("shop", {})
        self._stop = threading.Event()
        self._writer = threading.Thread(target=self._write_on, daemon=True)

    def write(self):
        for value in (self.begin, self.row, self.commit):
            sent = self.producer.send(self.topic, value, partition=0).get(60)
            if value is self.row:
                self.rows.append(sent.offset)

    def _write_on(self):
        while not self._stop.wait(0.02):
            self.write()

    def keep_writing(self):
        self._writer.start()

    def stop_writing(self):
        """Afterwards all rows are known that anybody can have read."""
        self._stop.set()
        if self._writer.is_alive():
            self._writer.join(60)
        assert not self._writer.is_alive()

    def close(self):
        self.stop_writing()
        self.producer.close(1)

    def pipeline(self, **options):
        source = {
            "type": "kafka",
            "brokers": [self.server.brokers],
            "topic": self.topic,
            "mode": "subscribe",
            "sid": self.sid,
            "start": "earliest",
            "kafka": QUICK,
        }
        definition = {
            "name": "p",
            "source": source,
            "target": {"type": "elasticsearch", "hosts": ["http://127.0.0.1:1"]},
            "tables": [{"from": "s.t", "to": "i"}],
            "checkpoint_interval": 0.2,
            **options,
        }
        return parse_channel({"channel": "shop", "pipelines": [definition]}).pipelines[0]


class PipelineRunner:
    """A run of the pipeline in a thread, as a node has it."""

    def __init__(self, shared, epoch=1, **options):
        pipeline = shared.pipeline(**{"checkpoint": "kafka", **options})
        leading = Leadership("shop", "p", "n1", epoch)
        self.source: Any = system_of(pipeline.source).stream(pipeline, "shop", "n1")
        self.work: Any = Collecting()
        self.select = SelectLoop(
            self.source,
            SelectSettings(BatchSettings(rows=50, wait=0.02)),
            epoch=epoch,
            name="shop/p",
        )
        self.store = store_for_run(pipeline, leading, shared.arbiter, self.source)
        self.run = PipelineRun(
            leading,
            Progress(SystemClock()),
            SystemClock(),
            source=self.source,
            work=self.work,
            store=self.store,
            heartbeat=None,
            select=self.select,
            generation=pipeline.generation,
            store_every=store_interval(pipeline),
        )
        self.failure = None
        self._thread = threading.Thread(target=self._work, daemon=True)

    def _work(self):
        try:
            self.run.run()
        except SetlError as error:
            self.failure = error

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.run.stop()
        self._thread.join(30)
        self.store.close()
        assert not self._thread.is_alive()
        if self.failure is not None:
            raise self.failure

    @property
    def turn(self):
        return self.source.group.turn


class Foreign:
    """A member of the group that is not setl: reads, and commits the next offset every record.

    The partition goes to the member whose id comes first, and ids begin with the client's.
    """

    def __init__(self, shared, client="a-foreign"):
        self.shared = shared
        self.client = client
        self.offsets = []
        self.committed = 0
        self.has_it = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive()

    def _work(self):
        while not self._stop.is_set():
            # kafka-python cannot read the empty assignment that the embedded broker gives to a
            # member that comes just when others are dealt theirs.
            with suppress(struct.error, KafkaError):
                self._take_part()

    def _take_part(self):
        shared, quick = self.shared, cast("dict[str, Any]", QUICK)
        consumer = KafkaConsumer(
            shared.topic,
            bootstrap_servers=shared.server.brokers,
            group_id=shared.sid,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_poll_records=5,
            client_id=self.client,
            **quick,
        )
        try:
            while not self._stop.is_set():
                for record_ in consumer.poll(100).get(shared.partition, []):
                    self.has_it.set()
                    if record_.value == shared.row:
                        self.offsets.append(record_.offset)
                    position = OffsetAndMetadata(record_.offset + 1, "", -1)
                    consumer.commit({shared.partition: position})
                    self.committed = position.offset
        finally:
            consumer.close(autocommit=False)


@pytest.fixture
def shared(kafka):
    made = Shared(kafka)
    yield made
    made.close()


@pytest.fixture
def first_turn(monkeypatch):
    """A run waits for its first turn, however long the group takes, and so begins once."""
    monkeypatch.setattr(checkpoints, "_TURN_SECONDS", 60.0)


@pytest.mark.usefixtures("first_turn")
def test_alone_it_reads_everything(shared):
    for _ in range(20):
        shared.write()
    with PipelineRunner(shared) as running:
        eventually(lambda: running.work.offsets == shared.rows, 60)
        assert running.work.begun == [0], "began once: the turn came before the checkpoint was read"
        assert running.select.status().waiting_for == ""
    with PipelineRunner(shared, epoch=2) as again:
        eventually(lambda: again.turn, 60)
        shared.write()
        eventually(lambda: again.work.offsets, 60)
        assert again.work.offsets == shared.rows[-1:], "it went on where it was stopped"


def test_it_takes_turns_with_a_foreign_member_and_nothing_is_lost(shared, caplog):
    caplog.set_level(logging.INFO, "setl.systems.kafka.source.group")
    shared.keep_writing()
    with PipelineRunner(shared) as running:
        eventually(lambda: len(running.work.offsets) > 20, 60)
        others = set()
        for _ in range(2):
            with Foreign(shared) as foreign:
                assert foreign.has_it.wait(60)
                eventually(lambda f=foreign: len(f.offsets) > 20, 60)
                assert running.turn is None
                assert shared.sid in eventually(lambda: running.select.status().waiting_for, 30)
                eventually(lambda: said_to_wait(caplog), 60)
                read, more = running.select.status().entries, len(foreign.offsets) + 10
                eventually(lambda f=foreign, n=more: len(f.offsets) > n, 60)
                assert running.select.status().entries == read, "it read outside its turn"
            others |= set(foreign.offsets)
            stood = range(foreign.offsets[-1] + 1, foreign.offsets[-1] + 4)
            applied = len(running.work.offsets)
            # It begins where the other stood. That it has applied a row behind there does not
            # tell: it may have done so in a turn that ended before it could commit.
            eventually(lambda at=stood: running.work.begun[-1] in at, 60)
            eventually(lambda n=applied: len(running.work.offsets) > n, 60)
            assert running.work.begun[-1] in stood
        seen = len(running.work.begun)
        time.sleep(2)
        assert len(running.work.begun) == seen, "it begins again and again"
    shared.stop_writing()
    everything = [r for r in shared.rows if r <= running.work.offsets[-1]]
    assert set(everything) <= set(running.work.offsets) | others
    words = " ".join(caplog.messages)
    assert len(said_to_wait(caplog)) < 8, "it says so once for each time, not at every look"
    assert "to this node" in words


def said_to_wait(caplog):
    said = [m for m in caplog.messages if m.startswith("waiting for ")]
    return [m for m in said if "another member of the group" in m]


def test_a_member_that_only_waits_costs_one_more_beginning(shared):
    shared.keep_writing()
    with PipelineRunner(shared) as running:
        eventually(lambda: running.work.offsets, 60)
        with Foreign(shared, client="z-foreign") as foreign:
            eventually(lambda: len(running.work.begun) > 1, 60)
            at = shared.rows[-1]
            eventually(lambda: running.work.offsets[-1] > at, 60)
            assert not foreign.offsets
    shared.stop_writing()
    read = [r for r in shared.rows if r <= running.work.offsets[-1]]
    assert sorted(set(running.work.offsets)) == read


@pytest.mark.usefixtures("first_turn")
def test_a_second_member_reads_nothing_until_the_first_has_gone(shared):
    with Foreign(shared) as first:
        assert first.has_it.wait(60)
        for _ in range(5):
            shared.write()
        committed = shared.rows[-1] + 2  # behind the end of the transaction
        eventually(lambda: first.committed == committed, 60)
        assert first.offsets == shared.rows
    shared.write()
    with PipelineRunner(shared) as running:
        eventually(lambda: running.work.offsets, 60)
        assert running.work.begun == [committed]
        assert running.work.offsets == shared.rows[-1:]


def test_errors_of_the_pipeline_do_not_leave_the_group(shared):
    with PipelineRunner(shared) as running:
        eventually(lambda: running.work.offsets, 60)
        turn = running.turn
        running.work.failures += [TransientError("the target is busy")] * 3
        shared.write()
        eventually(lambda: not running.work.failures, 60)
        eventually(lambda: running.work.offsets[-1] == shared.rows[-1], 60)
        assert running.turn == turn
        assert all(a <= b for a, b in pairwise(running.work.begun))


def test_the_checkpoint_may_be_stored_elsewhere(shared):
    with PipelineRunner(shared, checkpoint="zookeeper") as running:
        eventually(lambda: running.work.offsets == shared.rows, 60)
    value, _ = shared.arbiter.positions.read(PipelineId("shop", "p"))
    assert value["checkpoint"]["resume"]["offset"] == shared.rows[-1] + 2


def test_a_stopped_pipeline_is_moved_in_the_group_s_commit(shared):
    for _ in range(5):
        shared.write()
    with PipelineRunner(shared) as running:
        eventually(lambda: running.work.offsets == shared.rows, 60)
    pipeline = shared.pipeline(checkpoint="kafka")
    seen = look_at_position(pipeline, "shop", shared.arbiter, "show")
    assert (seen.stored.stored_in, seen.stored.found_in, seen.behind) == ("kafka", "kafka", 0)
    position = StartPoint(OffsetStart(offset=3))
    there = system_of(pipeline.source).find_position(pipeline, "shop", "reset", position)
    ident = PipelineId("shop", "p")
    done = move(pipeline, ident, there, arbiter=shared.arbiter, nid="reset")
    assert done.after.generation == 2
    with PipelineRunner(shared, epoch=done.epoch + 1) as running:
        eventually(lambda: running.work.offsets == shared.rows[1:], 60)


def test_a_topic_with_more_partitions_is_refused(shared, kafka):
    admin = KafkaAdminClient(bootstrap_servers=kafka.brokers)
    shared.topic = f"wide-{uuid.uuid4().hex[:12]}"
    admin.create_topics([NewTopic(shared.topic, 2, 1)])
    admin.close()
    running = PipelineRunner(shared)
    try:
        with pytest.raises(ConfigurationError, match=r"2 partitions.*one only"):
            running.run.run()
        group = GroupMembership(shared.pipeline().source)
        group.join()
        with pytest.raises(ConfigurationError, match=r"2 partitions.*one only"):
            group.wait(20)
        group.leave()
    finally:
        running.source.release()
        running.store.close()
    pipeline = shared.pipeline()
    file = parse_channel({"channel": "shop", "pipelines": [pipeline.model_dump(by_alias=True)]})
    found = [f.what for f in check_channel(file) if f.level == "error"]
    assert any("2 partitions" in what for what in found)


def test_a_silent_coordinator_ends_the_turn(tmp_path):
    with Kafka(tmp_path) as server:
        shared = Shared(server)
        running = PipelineRunner(shared)
        group = running.source.group
        try:
            group.join()
            first = group.wait(20)
            server.pause()
            try:
                eventually(lambda: group.turn is None, 60)
            finally:
                server.resume()
            assert eventually(lambda: group.turn, 30) > first
        finally:
            running.source.release()
            shared.close()
