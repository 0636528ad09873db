"""A relay's work on batches, with a log in memory: what is flushed when, and what may be kept."""

from types import SimpleNamespace
from typing import Any

import pytest

from setl.errors import TransientError
from setl.model.batch import Batch
from setl.model.leadership import Leadership
from setl.relay.interceptor import Interceptor
from setl.relay.partitioning import Partitioner
from setl.relay.sequence import Sequencer
from setl.run.measured.progress import Progress
from setl.run.relay.work import RelayWork
from tests.memory_log import MemoryRelayLog, MemoryTopic
from tests.unit.relay.relay_streams import ORDERS, START, AsText, Binlog, ShopIsMapped, words


class StartPoint:
    """A relay whose batches are made by hand."""

    def __init__(self, binlog, topic=None, *, exact=True, stored=START):
        self.time = 100.0
        self.topic = topic or MemoryTopic()
        self.log = MemoryRelayLog(self.topic)
        clock: Any = SimpleNamespace(
            monotonic=lambda: self.time, now=lambda: 1_700_000_000 + self.time
        )
        self.progress = Progress(clock)

        def sequencer(checkpoint, tails):
            return Sequencer(
                checkpoint,
                tails,
                interceptor=Interceptor(ShopIsMapped()),
                partitioner=Partitioner("order", len(tails)),
                codec=binlog,
                serializer=AsText(),
            )

        self.work: Any = RelayWork(
            Leadership("c", "r", "n1", 5),
            self.progress,
            clock,
            log=self.log,
            sequencer=sequencer,
            exact=exact,
            spread=False,
            heartbeat=10.0,
            rows=100,
            codec=binlog,
            heartbeat_id=1,
        )
        self.work.take_over()
        self.read_from = self.work.begin(stored)

    def apply(self, entries, allowed=True) -> Any:
        checkpoint = START  # what Select would say of the batch; the relay goes by its own
        batch = Batch(1, 5, list(entries), checkpoint, rows=len(entries), size=0)
        return self.work.apply([batch], lambda: allowed)

    @property
    def seen(self):
        return words(self.topic.records[0])


def two_transactions():
    binlog = Binlog().begin("0-1-1").insert(ORDERS, 1, 2).commit()
    return binlog.begin("0-1-2").insert(ORDERS, 3).commit()


def test_what_was_applied_is_flushed_and_a_checkpoint_stands_behind_a_heartbeat():
    binlog = two_transactions()
    position = StartPoint(binlog)
    applied = position.apply(binlog.entries[:3])
    assert applied.rows == 2
    assert applied.wrote
    assert [w.split()[0] for w in position.seen] == [
        "BEGIN", "INSERT", "INSERT", "COMMIT", "HEARTBEAT",
    ]  # fmt: skip
    assert applied.checkpoint.resume == binlog.entries[2].position
    assert applied.checkpoint.rows == 2
    # The next heartbeat is not due, so what follows may not be kept yet.
    later = position.apply(binlog.entries[3:])
    assert later.checkpoint == applied.checkpoint
    assert position.work.idle(lambda: True) is None
    position.time += 10
    assert position.work.idle(lambda: True).resume == binlog.entries[-1].position
    assert position.seen[-1].startswith("HEARTBEAT")


def test_nothing_is_stored_inside_a_transaction():
    binlog = Binlog().begin().insert(ORDERS, 1).insert(ORDERS, 2).commit()
    position = StartPoint(binlog)
    applied = position.apply(binlog.entries[:2])
    assert applied.checkpoint == START
    assert [w.split()[0] for w in position.seen] == ["BEGIN", "INSERT"]
    position.time += 10
    assert position.work.idle(lambda: True) is None


def test_what_is_not_allowed_is_not_written():
    binlog = two_transactions()
    position = StartPoint(binlog)
    assert position.apply(binlog.entries, allowed=False) is None
    assert position.work.idle(lambda: False) is None
    assert position.seen == []


def test_another_leader_goes_on_behind_what_readers_see():
    binlog = two_transactions()
    first = StartPoint(binlog)
    first.log.faults = [None, None, TransientError("lost")]
    with pytest.raises(TransientError):
        first.apply(binlog.entries)
    first.log.queued = [[]]
    second = StartPoint(binlog, first.topic)
    second.apply(binlog.entries)
    third = StartPoint(binlog, first.topic)
    third.apply(binlog.entries)
    rows = [w for w in second.seen if w.startswith("INSERT")]
    assert len(rows) == len(set(rows)) == 3


def test_a_topic_that_lost_records_gets_them_again():
    binlog = two_transactions()
    first = StartPoint(binlog)
    stored = first.apply(binlog.entries).checkpoint
    del first.topic.records[0][3:]  # all behind the second row
    second = StartPoint(binlog, first.topic, stored=stored)
    assert second.read_from.resume.offset == START.resume.offset
    second.apply(binlog.entries)
    assert [w.split()[0] for w in second.seen if "HEARTBEAT" not in w] == [
        "BEGIN", "INSERT", "INSERT", "COMMIT", "BEGIN", "INSERT", "COMMIT",
    ]  # fmt: skip
