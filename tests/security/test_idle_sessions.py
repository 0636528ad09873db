"""A page that is left open keeps nobody logged in: only what somebody does counts."""

import http.client
import json

import pytest

from setl.node.console.serving import stream
from setl.node.console.serving.authentication import IDLE_SECONDS
from tests.unit.node.console.browsing import Browser

EVENTS = "/console/events?of=/"


@pytest.fixture
def anna(node):
    anna = Browser(node)
    assert anna.log_in().code == 303
    return anna


@pytest.fixture
def open_page(node, anna, monkeypatch):
    """The events of a page that Anna has left open."""
    monkeypatch.setattr(stream, "EVERY_SECONDS", 0.01)
    host, port = node.server.address.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), 10)
    connection.request("GET", EVENTS, headers={"Cookie": anna.cookie})
    answer = connection.getresponse()
    assert answer.status == 200
    yield answer
    answer.close()
    connection.close()


def is_logged_in(anna):
    return "Log in to see who did what" not in anna.get("/console/actions").body.decode()


def next_event(answer):
    while not (line := answer.readline()).startswith(b"event: "):
        assert line, "the stream has ended"
    return line, json.loads(answer.readline().removeprefix(b"data: "))


def test_an_open_page_stores_no_session_alive(node, anna, open_page):
    for _ in range(6):
        node.cluster.clock.advance(IDLE_SECONDS / 5)
        next_event(open_page)
        next_event(open_page)
    assert not is_logged_in(anna)


def test_nor_does_one_that_connects_again_and_again(node, anna, monkeypatch):
    monkeypatch.setattr(stream, "MOST_STREAMS", 0)  # refused, as a page
    for _ in range(6):
        node.cluster.clock.advance(IDLE_SECONDS / 5)
        assert anna.get(EVENTS).code == 429
    assert not is_logged_in(anna)


def test_what_somebody_does_stores_it_alive(node, anna):
    for _ in range(6):
        node.cluster.clock.advance(IDLE_SECONDS / 5)
        assert anna.get("/").code == 200
    assert is_logged_in(anna)
