"""Pages that strangers keep open take no place from operators, nor all places from others."""

import http.client
import socket

import pytest

from setl.node.console.serving import stream
from tests.unit.node.console.browsing import Browser
from tests.waiting import eventually

EVENTS = "/console/events?of=/"


@pytest.fixture
def opened():
    opened = []
    yield opened
    for each in opened:
        each.close()


@pytest.fixture
def watch(node, opened):
    """Opens a page as it is kept up to date; gives the code of the answer."""

    def watch(come_from, cookie=""):
        server = node.server or node.serve()
        host, port = server.address.removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(host, int(port), 10, (come_from, 0))
        opened.append(connection)
        connection.request("GET", EVENTS, headers={"Cookie": cookie} if cookie else {})
        answer = connection.getresponse()
        if answer.status == 200:
            answer.readline()  # it is counted by then
        return answer.status

    return watch


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(stream, "MOST_STREAMS", 4)
    monkeypatch.setattr(stream, "MOST_OF_STRANGER", 2)


def test_one_stranger_leaves_positions_to_others(watch):
    assert [watch("127.0.0.2") for _ in range(3)] == [200, 200, 429]
    assert watch("127.0.0.3") == 200


def test_strangers_leave_positions_to_who_is_logged_in(node, watch):
    codes = [watch(f"127.0.0.{n}") for n in (2, 2, 3, 3, 4)]
    assert codes == [200, 200, 200, 200, 429]
    anna = Browser(node)
    assert anna.log_in().code == 303
    assert [watch("127.0.0.2", anna.cookie) for _ in range(5)] == [200] * 4 + [429]


def test_a_page_that_is_closed_gives_its_position_back(node, watch, opened):
    assert [watch("127.0.0.2") for _ in range(2)] == [200, 200]
    streams = node.server._console._streams
    assert streams.is_full("127.0.0.2")
    opened[0].sock.shutdown(socket.SHUT_RDWR)
    eventually(lambda: not streams.is_full("127.0.0.2"))


def test_what_is_promised():
    assert stream.MOST_OF_STRANGER < stream.MOST_STREAMS
