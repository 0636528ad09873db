"""A consumer of one topic that is a list of values, as far as looking around in it needs one."""

from types import SimpleNamespace

from kafka.structs import TopicPartition

from setl.model.position import KafkaOrigin
from setl.systems.kafka.record import Record
from tests.unit.codec.dts_records import record, row_record

PARTITION = TopicPartition("orders", 0)
BASE = 1_790_000_000
ONE, TWO = KafkaOrigin("cluster-1", "topic-1"), KafkaOrigin("cluster-2", "topic-2")
GAP = object()
"""An offset without a record that a reader is shown, such as the end of a Kafka transaction."""


class FakeTopic:
    """Holds values from offset `first` on; `clock` makes it a broker that delivers nothing.

    Kafka's own timestamps are nowhere: whoever asks for an offset by time fails.
    """

    def __init__(self, values, origin=ONE, *, first=0, clock=None):
        self.values = values
        self.first = first
        self.clock = clock
        self.next = 0
        self.polls = 0
        self._cluster = SimpleNamespace(
            cluster_id=origin.cluster or None, _topic_ids={"orders": origin.topic}
        )

    def beginning_offsets(self, partitions, timeout_ms):
        return {PARTITION: self.first}

    def end_offsets(self, partitions, timeout_ms):
        return {PARTITION: len(self.values)}

    def assign(self, partitions):
        assert partitions == [PARTITION]

    def seek(self, partition, offset):
        assert self.first <= offset
        self.next = offset

    def position(self, partition, timeout_ms):
        return self.next

    def poll(self, timeout_ms):
        self.polls += 1
        if self.clock is not None:
            self.clock.time += timeout_ms / 1000
            return {}
        until = min(self.next + 3, len(self.values))
        found = [
            Record(0, o, 0, None, self.values[o])
            for o in range(self.next, until)
            if self.values[o] is not GAP
        ]
        self.next = until
        return {PARTITION: found} if found else {}


def begin_and_commit(number, seconds):
    return [
        record(operation, sourceTimestamp=seconds, id=number) for operation in ("BEGIN", "COMMIT")
    ]


def stream(numbers, step=30):
    return [value for n in numbers for value in begin_and_commit(n, BASE + step * n)]


def row(seconds, operation="INSERT"):
    return row_record(operation, [("id", 8)], sourceTimestamp=seconds)
