"""What every log of a relay promises (setl.relay.ports.RelayLog)."""

import threading
import time
from contextlib import contextmanager

import pytest

from setl.errors import DataError, FencedError, SetlError, TransientError
from setl_embedded import Kafka
from tests.kafka_topics import RelayTopic, position
from tests.memory_log import MemoryRelayLog, MemoryTopic, Stored
from tests.waiting import eventually

DELIVERIES = ["transactional", "idempotent", "one_in_flight"]
PARTITIONS = 3
# A broker drops what is older than its retention, by the records' own time.
NOW = int(time.time() * 1000)


class MemorySide:
    """The fake, with the face of `RelayTopic`."""

    delivery = "memory"

    def __init__(self, partitions):
        self.partitions = partitions
        self.topic = MemoryTopic(partitions)

    def log(self):
        return MemoryRelayLog(self.topic)

    def read(self, partition=0):
        return list(self.topic.records[partition])


def records(first, count, size=100):
    """Records of growing places, with the partition of each."""
    return [
        (
            n % PARTITIONS,
            Stored(b"%d " % n + b"x" * size, position(n).encoded(), b"k%d" % n, NOW + n),
        )
        for n in range(first, first + count)
    ]


def append(log, some):
    for partition, record in some:
        log.append(partition, *record)


def append_slowly(log, some):
    """Append and flush, in time for many small batches."""
    for one in some:
        append(log, [one])
        time.sleep(0.001)
    log.flush()


def of(partition, some):
    return [record for at, record in some if at == partition]


def without_repeats(found):
    """As a reader does that drops what it has seen: places only grow."""
    seen = []
    for record in found:
        if not seen or record.timestamp_ms > seen[-1].timestamp_ms:
            seen.append(record)
    return seen


@contextmanager
def opened(topic):
    try:
        yield topic
    finally:
        topic.close()


@pytest.fixture(params=["memory", *DELIVERIES])
def side(request):
    if request.param == "memory":
        yield MemorySide(PARTITIONS)
    else:
        broker = request.getfixturevalue("kafka")
        with opened(RelayTopic(broker.brokers, request.param, PARTITIONS)) as topic:
            yield topic


@pytest.fixture(params=DELIVERIES)
def topic(request, kafka):
    with opened(RelayTopic(kafka.brokers, request.param, PARTITIONS)) as made:
        yield made


@pytest.fixture(params=DELIVERIES)
def own(request, tmp_path):
    """A broker of its own, which a test may stop, and a topic on it."""
    with (
        Kafka(tmp_path) as broker,
        opened(RelayTopic(broker.brokers, request.param, PARTITIONS)) as made,
    ):
        yield broker, made


def test_a_new_log_is_made_and_is_empty(side):
    assert side.log().take_over() == (None,) * PARTITIONS


def test_records_are_seen_as_they_were_appended(side):
    log, some = side.log(), records(1, 3000)
    log.take_over()
    append(log, some)
    log.flush()
    for partition in range(PARTITIONS):
        assert side.read(partition) == of(partition, some)


def test_a_record_without_a_key(side):
    log = side.log()
    log.take_over()
    log.append(1, b"v", position(1).encoded(), None, NOW)
    log.flush()
    assert side.read(1) == [Stored(b"v", position(1).encoded(), None, NOW)]


def test_a_new_leader_is_reported_the_last_position_of_each_partition(side):
    log = side.log()
    log.take_over()
    append(log, records(1, 2))  # partitions 1 and 2
    log.flush()
    assert side.log().take_over() == (None, position(1), position(2))


def test_the_same_object_takes_over_again_and_goes_on(side):
    log, some = side.log(), records(1, 9)
    log.take_over()
    append(log, some[:6])
    log.flush()
    assert log.take_over() == (position(6), position(4), position(5))
    append(log, some[6:])
    log.flush()
    assert [side.read(n) for n in range(PARTITIONS)] == [of(n, some) for n in range(PARTITIONS)]


def test_flushing_nothing_is_nothing(side):
    log = side.log()
    log.take_over()
    log.flush()
    log.flush()
    assert side.read(0) == []


def test_nothing_is_written_without_taking_over(side):
    log = side.log()
    with pytest.raises(FencedError):
        log.append(0, b"v", position(1).encoded(), None, 1)
    log.close()
    log.close()


@pytest.mark.parametrize("flushed", [0, 500])
@pytest.mark.parametrize("more", [1, 3000])
@pytest.mark.parametrize("end", ["abandon", "close"])
def test_what_is_left_behind_is_a_first_part_of_each_partition(side, flushed, more, end):
    log, some = side.log(), records(1, flushed + more)
    log.take_over()
    append(log, some[:flushed])
    log.flush()
    append(log, some[flushed:])
    getattr(log, end)()
    log.close()
    for partition, found in enumerate(eventually(lambda: left_behind(side), 30)):
        meant = of(partition, some)
        assert found == meant[: len(found)]
        assert len(found) >= len(of(partition, some[:flushed]))
        if side.delivery in ("transactional", "memory"):
            assert len(found) == len(of(partition, some[:flushed]))


def left_behind(side):
    """What each partition has, once the next leader is told the last position of just that.

    Without transactions, a batch may be on its way for a moment after its sender was closed.
    """
    positions = side.log().take_over()
    found = [side.read(partition) for partition in range(PARTITIONS)]
    assert [position and position.encoded() for position in positions] == [
        part[-1].position if part else None for part in found
    ]
    return found


def test_after_abandon_everything_is_refused(side):
    log = side.log()
    log.take_over()
    append(log, records(1, 10))
    log.abandon()
    for _ in range(2):
        with pytest.raises(FencedError):
            log.append(0, b"v", position(11).encoded(), None, 1)
        with pytest.raises(FencedError):
            log.flush()
    with pytest.raises(FencedError):
        log.take_over()
    log.close()


def test_a_former_leader_is_fenced(side):
    old, new = side.log(), side.log()
    old.take_over()
    append(old, records(1, 9))
    old.flush()
    append(old, records(10, 9))
    assert len(new.take_over()) == PARTITIONS
    if side.delivery not in ("transactional", "memory"):
        old.flush()  # nobody stops it; its records repeat what the new one writes
        append(new, records(10, 9))
        new.flush()
        assert without_repeats(side.read(0)) == of(0, records(1, 18))
        return
    with pytest.raises(FencedError):
        old.flush()
    with pytest.raises(FencedError):
        append(old, records(20, 1))
    append(new, records(30, 3))
    new.flush()
    assert side.read(0) == of(0, records(1, 9)) + of(0, records(30, 3))


def test_a_large_record(topic):
    log = topic.log()
    log.take_over()
    some = [*records(1, 3), *records(4, 3, size=2 << 20), *records(7, 3)]
    append(log, some)
    log.flush()
    for partition in range(PARTITIONS):
        assert topic.read(partition) == of(partition, some)
    with pytest.raises(DataError, match="too large"):
        append(log, records(10, 1, size=17 << 20))


def test_nothing_is_written_behind_a_record_that_is_refused(topic):
    """The broker takes batches of 20 KB only: what comes before is there, or not; after, never."""
    topic.make({"max.message.bytes": "20000"})
    log = topic.log(kafka={"linger.ms": 0})
    log.take_over()
    append(log, records(1, 30))
    log.flush()
    some = [*records(31, 30), *records(61, 3, size=30_000), *records(64, 300)]
    with pytest.raises(DataError, match="too large"):
        append_slowly(log, some)
    with pytest.raises(DataError, match="too large"):
        log.flush()
    with pytest.raises(DataError, match="too large"):
        append(log, records(1000, 1))
    log.close()
    for partition in range(PARTITIONS):
        found = topic.read(partition)
        before = of(partition, [*records(1, 30), *records(31, 30)])
        assert found == before[: len(found)]
        assert len(found) >= 10
    assert len(topic.log().take_over()) == PARTITIONS


def test_a_full_queue_is_waited_for(topic):
    log, some = topic.log(kafka={"queue.buffering.max.messages": 10}), records(1, 300)
    log.take_over()
    append(log, some)
    log.flush()
    assert [topic.read(n) for n in range(PARTITIONS)] == [of(n, some) for n in range(PARTITIONS)]


def test_a_full_queue_has_a_limit(own):
    broker, topic = own
    log = topic.log(kafka={"queue.buffering.max.messages": 10})
    log.take_over()
    log._waiting.limit = 3.0  # a broker that is busy may need longer until here
    broker.pause()
    with pytest.raises(TransientError) as entry:
        append(log, records(1, 300))
    with pytest.raises(TransientError) as again:
        log.flush()
    assert again.value is entry.value
    broker.resume()
    positions = topic.log().take_over()
    for partition in range(PARTITIONS):
        found = topic.read(partition)
        assert without_repeats(found) == of(partition, records(1, 300))[: len(found)]
        assert positions[partition] is None or topic.delivery != "transactional"


def test_flushing_has_a_limit(own):
    broker, topic = own
    log = topic.log()
    log.take_over()
    log._waiting.limit = 3.0  # a broker that is busy may need longer until here
    broker.pause()  # before they are sent: nothing may be answered already
    append(log, records(1, 30))
    began = time.monotonic()
    with pytest.raises(TransientError):
        log.flush()
    assert time.monotonic() - began < 20
    broker.resume()
    again = topic.log()
    again.take_over()
    append(again, records(31, 30))
    again.flush()
    assert topic.read(0)[-1] == of(0, records(31, 30))[-1]


def test_abandon_ends_a_wait_of_another_thread(own):
    broker, topic = own
    log = topic.log(limit=60.0)
    log.take_over()
    broker.pause()  # before they are sent: nothing may be answered already
    append(log, records(1, 30))
    ended: list[SetlError] = []

    def wait():
        try:
            log.flush()
        except SetlError as error:
            ended.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.5)  # inside the wait, or just before it: both have to end
    began = time.monotonic()
    log.abandon()
    thread.join(30)
    assert not thread.is_alive()
    assert time.monotonic() - began < 20
    assert isinstance(ended[0], FencedError)
    log.close()
    broker.resume()


def test_a_broker_that_goes_and_comes_back(own):
    """What was appended before, during and after is there, in order.

    The embedded broker forgets who wrote what when it stops. It confirms the commit of an open
    transaction all the same, and may find an idempotent sender's next batch out of order; both are
    noticed, and the relay goes on from what readers see.
    """
    broker, topic = own
    # Longer than a broker that has forgotten the sender keeps its transaction open.
    log, some = topic.log(limit=120.0), records(1, 900)
    log.take_over()
    append(log, some[:300])
    log.flush()
    size = topic.size()
    append(log, some[300:600])
    # What is on its way while the broker saves its data may be kept without its transaction,
    # before which readers wait for ever.
    if topic.delivery != "one_in_flight":
        eventually(lambda: topic.size() >= size + 300, 30)
    broker.stop()
    append(log, some[600:])
    back = threading.Timer(1.0, broker.start)
    back.start()
    failed = False
    try:
        log.flush()
    except TransientError:
        failed = True
        assert topic.delivery != "one_in_flight"
        positions = log.take_over()
        begins = [position.transaction.begin if position else 0 for position in positions]
        assert min(begins) >= 298
        append(log, [(at, one) for at, one in some if one.timestamp_ms > NOW + begins[at]])
        log.flush()
    finally:
        back.join()
    for partition in range(PARTITIONS):
        found = topic.read(partition)
        assert without_repeats(found) == of(partition, some)
        if topic.delivery == "transactional" or (topic.delivery == "idempotent" and not failed):
            assert found == of(partition, some)
