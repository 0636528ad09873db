"""A reader of one topic that is a list of values, as far as looking around in it needs one."""

from setl.model.position import KafkaOrigin
from setl.systems.kafka.client import Bounds
from setl.systems.kafka.record import Record, TopicPartition
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
        self.origin = origin

    def bounds(self, partition):
        return Bounds(self.first, len(self.values))

    def seek(self, starts):
        [self.next] = starts.values()
        assert self.first <= self.next

    def position(self, partition):
        return self.next

    def poll(self, limit, timeout):
        self.polls += 1
        if self.clock is not None:
            self.clock.time += timeout
            return []
        until = min(self.next + 3, len(self.values))
        found = [
            Record(0, o, 0, None, self.values[o])
            for o in range(self.next, until)
            if self.values[o] is not GAP
        ]
        self.next = until
        return found


def begin_and_commit(number, seconds):
    return [
        record(operation, sourceTimestamp=seconds, id=number) for operation in ("BEGIN", "COMMIT")
    ]


def stream(numbers, step=30):
    return [value for n in numbers for value in begin_and_commit(n, BASE + step * n)]


def row(seconds, operation="INSERT"):
    return row_record(operation, [("id", 8)], sourceTimestamp=seconds)


def dated_by_its_begin(number, began, rows, ended):
    """A transaction as large as that, whose rows say when their statement began."""
    begin, commit = begin_and_commit(number, BASE + began)
    if ended != began:
        commit = record("COMMIT", sourceTimestamp=BASE + ended, id=number)
    return [begin, *[row(BASE + began)] * rows, commit]
