"""What one connection keeps for several streams, and how a stream goes from one to another."""

import struct

import pytest
from mysql_event_stream import MesError

from setl.codec.binlog.header import BinlogHeaderReader
from setl.errors import TransientError
from setl.model.position import BinlogOrigin, BinlogPosition
from setl.systems.mysql.binlog.client import EventReader
from setl.systems.mysql.binlog.shared_log import Behind, FilePosition, SharedLog, deliver_packets
from setl.systems.mysql.binlog.shared_reader import SharedReaders
from setl.systems.mysql.binlog.sharing_client import SharingClient
from tests.unit.codec.binlog_events import START, EventWriter
from tests.waiting import eventually


def packets(*events):
    return b"".join(struct.pack("<I", len(event) + 1) + b"\0" + event for event in events)


class Collected(EventReader):
    def __init__(self):
        self.events = []

    def read_rows(self, data, at, *, checksum):
        return at

    def read(self, event, *, checksum):
        self.events.append(event)

    def heartbeat(self):
        pass


class Stream:
    """Transactions of one file, and the log of a connection that has read its beginning."""

    def __init__(self, stored=1 << 20):
        self.writer = EventWriter()
        self.log = SharedLog(START, stored)
        for event in self.writer.opening():
            self.log.read(event, checksum=True)

    def position(self, **other):
        known = {"writer": 1, "created": self.writer.seconds, **other}
        return FilePosition(self.writer.file, self.writer.offset, **known)

    def transaction(self, number):
        writer = self.writer
        return [writer.gtid(number), writer.query("BEGIN"), writer.xid()]

    def write(self, number):
        """A transaction that comes in one piece; returns the events and the position behind it."""
        events = self.transaction(number)
        data = packets(*events)
        assert self.log.read_rows(data, 0, checksum=True) == len(data)
        return events, self.position()

    def after(self, other_position):
        stored = self.log.find(other_position)
        assert stored is not None
        number, at = stored
        found = Collected()
        for each in range(number, self.log.end):
            piece = self.log.piece(each)
            deliver_packets(piece.data, at, piece.checksum, found)
            at = 0
        return found.events


def test_what_follows_a_position_is_found_between_and_inside_pieces():
    stream = Stream()
    begin = stream.position()
    one, after_one = stream.write(1)
    two, three = stream.transaction(2), None
    after_two = stream.position()
    three = stream.transaction(3)
    data = packets(*two, *three)
    assert stream.log.read_rows(data, 0, checksum=True) == len(data)
    assert stream.after(begin) == [*one, *two, *three]
    assert stream.after(after_one) == [*two, *three]
    assert stream.after(after_two) == three
    assert stream.after(stream.position()) == []


def test_the_same_position_of_another_file_is_not_it():
    stream = Stream()
    _, other_position = stream.write(1)
    assert stream.log.find(other_position)
    for other in ({"writer": 2}, {"created": 7}, {"file": "binlog.000008"}, {"offset": 5}):
        assert stream.log.find(other_position._replace(**other)) is None
    # Until the file's beginning was read nobody knows which file it is.
    assert FilePosition.of(BinlogPosition("f.1", 4, "", BinlogOrigin("s"))) is None
    stream.log.read(stream.writer.rotate("binlog.000008"), checksum=True)
    assert stream.log.find(stream.position()) is None


def test_a_packet_that_has_not_come_whole_waits():
    stream = Stream()
    events = stream.transaction(1)
    data = packets(*events)
    whole = len(packets(*events[:2]))
    assert stream.log.read_rows(data[:-1], 0, checksum=True) == whole


def test_what_is_stored_is_bounded():
    stream = Stream(stored=1000)
    _, first = stream.write(1)
    last = first
    for number in range(2, 50):
        _, last = stream.write(number)
    assert stream.log.find(first) is None
    assert stream.log.find(last) == (stream.log.end, 0)
    with pytest.raises(Behind):
        stream.log.piece(0)


def test_a_damaged_event_is_an_error_of_whoever_reads_it():
    event = bytearray(EventWriter().gtid(1))
    event[25] ^= 1
    with pytest.raises(MesError, match="CRC32"):
        deliver_packets(packets(bytes(event)), 0, True, Collected())


class Client:
    """Gives what is in its list, then waits until it is stopped."""

    arriving = 0

    def __init__(self, items=()):
        self.items, self.stopped, self.closed, self.connected = list(items), False, False, False

    def connect(self):
        self.connected = True

    def start(self):
        pass

    def deliver(self, to):
        eventually(lambda: self.items or self.stopped, 20)
        if not self.items:
            raise TransientError("the connection to the source was lost")
        item = self.items.pop(0)
        if isinstance(item, Exception):
            raise item
        to.read(item, checksum=True)

    def stop(self):
        self.stopped = True

    def close(self):
        self.stopped = self.closed = True


def position(stream, **other):
    known = stream.position(**other)
    origin = BinlogOrigin("server", known.writer, known.created)
    return BinlogPosition(known.file, known.offset, "", origin)


def subscriptions(readers, other_position, client, count=1):
    return [
        eventually(lambda: readers.take("key", other_position, lambda: client), 20)
        for _ in range(count)
    ]


def test_each_subscription_gets_an_error_of_its_own_after_what_came_before():
    stream = Stream()
    opening = EventWriter().opening()
    other_position = position(stream)
    events = stream.transaction(1)
    client, readers = Client(opening), SharedReaders()
    both = subscriptions(readers, other_position, client, 2)
    client.items += [*events, TransientError("the connection to the source was lost")]
    errors = []
    for subscription in both:
        found = Collected()
        while len(found.events) < len(events):
            subscription.deliver(found)
        assert found.events == events
        with pytest.raises(TransientError, match="was lost") as caught:
            subscription.deliver(found)
        errors.append(caught.value)
    assert errors[0] is not errors[1]
    # Nothing is opened again at once: each stream has to see for itself first.
    assert readers.take("key", other_position, lambda: pytest.fail("opened again")) is None


def test_one_leaves_and_the_others_go_on_and_the_last_one_ends_it():
    stream = Stream()
    other_position = position(stream)
    events = stream.transaction(1)
    client, readers = Client(EventWriter().opening()), SharedReaders()
    one, other = subscriptions(readers, other_position, client, 2)
    one.leave()
    one.leave()
    client.items += events
    found = Collected()
    while len(found.events) < len(events):
        other.deliver(found)
    assert not client.stopped
    with pytest.raises(TransientError, match="closed"):
        one.deliver(found)
    other.leave()
    eventually(lambda: client.closed, 20)


class Subscription:
    arriving = 0

    def __init__(self):
        self.left = False

    def deliver(self, to):
        raise Behind

    def leave(self):
        self.left = True


def sharing(stream, boundary, subscription, goal):
    opened = []

    def alone(other_position):
        opened.append((other_position, Client([b"x"])))
        return opened[-1][1]

    client = SharingClient(
        alone, position(stream), lambda _: subscription, lambda: boundary[0], goal
    )
    client.connect()
    client.start()
    return client, opened


def test_who_is_too_slow_goes_on_alone_behind_the_last_transaction():
    stream, subscription = Stream(), Subscription()
    boundary: list[BinlogPosition | None] = [None]
    client, opened = sharing(stream, boundary, subscription, lambda: position(stream))
    client.deliver(Collected())
    assert not client.shared  # inside a transaction
    opened[0][1].items.append(b"y")
    boundary[0] = other_position = position(stream)
    client.deliver(Collected())
    assert client.shared
    assert opened[0][1].closed
    client.deliver(Collected())
    assert not client.shared
    assert subscription.left
    assert opened[1][0] == other_position
    assert opened[1][1].connected


def test_who_is_too_slow_inside_a_transaction_begins_again():
    stream = Stream()
    boundary: list[BinlogPosition | None] = [position(stream)]
    client, opened = sharing(stream, boundary, Subscription(), lambda: position(stream))
    client.deliver(Collected())
    boundary[0] = None
    with pytest.raises(TransientError, match="too slow"):
        client.deliver(Collected())
    assert len(opened) == 1


def test_who_is_far_from_the_end_reads_alone():
    stream = Stream()
    begin = position(stream)
    stream.write(1)
    client, _ = sharing(stream, [begin], Subscription(), lambda: position(stream))
    client.deliver(Collected())
    assert not client.shared


@pytest.mark.parametrize("first", ["gtid", "anonymous_gtid"])
def test_no_boundary_lies_behind_the_first_event_of_a_transaction(first):
    writer, reader = EventWriter(), BinlogHeaderReader(START)
    for event in writer.opening():
        reader.read(event, checksum=True)
    assert reader.boundary == reader.position
    begin = writer.gtid(1) if first == "gtid" else writer.anonymous_gtid()
    for event in (begin, writer.query("BEGIN")):
        list(reader.read(event, checksum=True))
        assert reader.boundary is None
    list(reader.read(writer.xid(), checksum=True))
    assert reader.boundary == reader.position
