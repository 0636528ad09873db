"""A subscription over a reader that plays back what a test gives it."""

from setl.channel.file import KafkaSource
from setl.errors import PositionLostError
from setl.model.position import KafkaOrigin
from setl.systems.kafka.client import Bounds
from tests.unit.select.fakes import ManualClock


def config(**more):
    return KafkaSource(type="kafka", brokers=["b1:9092", "b2:9092"], topic="orders", **more)


class Message:
    """A record as librdkafka has it."""

    def __init__(self, offset, value, headers=None):
        self._offset, self._value, self.given = offset, value, headers

    def offset(self):
        return self._offset

    def value(self):
        return self._value

    def headers(self):
        return self.given


OUT_OF_RANGE = PositionLostError("the broker does not have the offset")


class FakeReader:
    """Plays back answers of `poll`; an exception among them is raised."""

    def __init__(self):
        self.cluster, self.topic_id = "c1", ""
        self.polls = []
        self.held = (0, 10)
        self.end = None
        self.next = 0
        self.asked = self.counted = 0
        self.closed = False
        self.lost_connection = False
        self.clock = ManualClock()

    def partitions(self):
        self.counted += 1
        return {0}

    @property
    def origin(self):
        return KafkaOrigin(self.cluster, self.topic_id)

    def ask_origin(self):
        self.asked += 1
        if isinstance(self.held, Exception):
            raise self.held
        return self.origin

    def bounds(self, partition):
        return Bounds(*self.held)

    def seek(self, starts):
        [self.sought] = starts.values()
        self.lost_connection = False

    def take(self, limit, timeout):
        self.clock.time += max(timeout, 0.2)  # whoever asks also waits
        answer = self.polls.pop(0) if self.polls else []
        if isinstance(answer, Exception):
            raise answer
        if answer:
            self.next = answer[-1].offset() + 1
        return answer

    def highwater(self, partition):
        return self.end

    def position(self, partition):
        return self.next

    def close(self):
        self.closed = True


def records(*offsets):
    return [Message(o, None) for o in offsets]


def valued(*values, first):
    return [Message(first + i, v) for i, v in enumerate(values)]


def give_header(records, number, *headers):
    """Let a record of an answer have these headers."""
    records[number].given = list(headers)
