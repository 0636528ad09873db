"""Streams that share a connection rest too: the thread that reads it receives for them."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from mysql_event_stream import MesError

from setl.errors import TransientError
from setl.systems.mysql.binlog.shared_log import Behind
from setl.systems.mysql.binlog.shared_reader import SharedReaders
from tests.unit.codec.binlog_events import EventWriter
from tests.unit.systems.mysql.test_binlog_sharing import (
    Client,
    Collected,
    Stream,
    packets,
    position,
    subscriptions,
)
from tests.waiting import eventually


class Connection(Client):
    """Gives bytes of packets as such, events one by one, and raises errors."""

    def deliver(self, to):
        eventually(lambda: self.items or self.stopped, 20)
        if self.items and isinstance(self.items[0], bytearray):
            data = bytes(self.items.pop(0))
            assert to.read_rows(data, 0, checksum=True) == len(data)
            return
        super().deliver(to)


class Resting:
    """A stream that rests while its `answers` say that all passes by."""

    def __init__(self, subscription):
        self.subscription, self.answers = subscription, []
        self.found, self.threads = Collected(), []

    def receive(self):
        self.threads.append(threading.current_thread().name)
        done = self.subscription.deliver_now(self.found)
        answer = self.answers.pop(0) if self.answers else True
        if isinstance(answer, Exception):
            raise answer
        return done and answer

    def rest(self):
        self.subscription.rest(self.receive)


@pytest.fixture
def shared():
    """A stream, its connection and three that rest, each of which may be told what to say."""
    stream = Stream()
    place = position(stream)
    client = Connection(EventWriter().opening())
    made = subscriptions(SharedReaders(kept=2000), place, client, 3)
    with ThreadPoolExecutor() as threads:
        resting = [Resting(each) for each in made]
        yield stream, client, resting, threads
        for each in made:
            each.leave()


def rests(each):
    return each.subscription in each.subscription._reader._resting


def rest(threads, *resting):
    ended = [threads.submit(each.rest) for each in resting]
    eventually(lambda: all(map(rests, resting)), 20)
    return ended


def sent(client, stream, number):
    events = stream.transaction(number)
    client.items.append(bytearray(packets(*events)))
    return events


def test_the_thread_of_the_connection_receives_for_all_that_rest(shared):
    stream, client, resting, threads = shared
    ended = rest(threads, *resting)
    events = []
    for number in range(1, 4):
        events += sent(client, stream, number)
        eventually(lambda: all(each.found.events == events for each in resting), 20)  # noqa: B023
    assert {name for each in resting for name in each.threads} == {"binlog-shared"}
    assert not any(one.done() for one in ended)

    resting[0].answers = [False]  # it has something to do, and the others do not
    events += sent(client, stream, 4)
    assert ended[0].result(20) is None
    eventually(lambda: all(each.found.events == events for each in resting), 20)
    assert [rests(each) for each in resting] == [False, True, True]
    more = sent(client, stream, 5)
    resting[0].subscription.deliver(resting[0].found)
    assert resting[0].found.events == [*events, *more], "its own thread goes on"


def test_what_takes_time_is_left_to_each_stream(shared):
    stream, client, resting, threads = shared
    ended = rest(threads, *resting)
    events = sent(client, stream, 1)
    rotation = stream.writer.rotate("binlog.000008")
    client.items.append(rotation)
    for each, one in zip(resting, ended, strict=True):
        assert one.result(20) is None
        assert each.found.events == events
        each.subscription.deliver(each.found)
        assert each.found.events == [*events, rotation]


def test_who_has_something_to_take_does_not_rest(shared):
    stream, client, resting, _ = shared
    one = resting[0]
    events = sent(client, stream, 1)
    one.subscription.deliver(one.found)
    events += sent(client, stream, 2)
    eventually(lambda: one.subscription._reader._log.end > one.subscription.number, 20)
    one.rest()  # returns at once
    assert one.subscription.deliver_now(one.found)
    assert one.found.events == events
    assert not one.threads


@pytest.mark.parametrize("error", [TransientError("the connection was lost"), MesError("bad", 1)])
def test_the_end_of_the_connection_ends_every_rest(shared, error):
    _, client, resting, threads = shared
    ended = rest(threads, *resting)
    client.items.append(error)
    for each, one in zip(resting, ended, strict=True):
        assert one.result(20) is None
        with pytest.raises(type(error), match=str(error)):
            each.subscription.deliver(each.found)
        each.rest()  # not again: nobody would receive


def test_leaving_ends_the_rest_of_that_stream_alone(shared):
    stream, client, resting, threads = shared
    ended = rest(threads, *resting)
    resting[0].subscription.leave()
    assert ended[0].result(20) is None
    events = sent(client, stream, 1)
    eventually(lambda: all(each.found.events == events for each in resting[1:]), 20)
    assert not resting[0].found.events
    assert not any(one.done() for one in ended[1:])


def test_what_receiving_raises_is_raised_in_the_streams_own_thread(shared):
    stream, client, resting, threads = shared
    ended = rest(threads, *resting)
    resting[1].answers = [MesError("damaged", 1)]
    events = sent(client, stream, 1)
    with pytest.raises(MesError, match="damaged"):
        ended[1].result(20)
    eventually(lambda: resting[2].found.events == events, 20)
    assert not ended[2].done(), "the others do not suffer from it"


def test_who_is_too_far_behind_learns_it_in_its_own_thread(shared):
    stream, client, resting, _ = shared
    one = resting[0]
    for number in range(1, 60):  # more than is kept
        sent(client, stream, number)
    eventually(lambda: not client.items and one.subscription._reader._log._first > 10, 20)
    assert one.subscription.deliver_now(one.found) is False
    assert not one.found.events
    with pytest.raises(Behind):
        one.subscription.deliver(one.found)
