"""Connections with requests that never come in whole are closed, and there are only so many."""

import contextlib
import threading
import time

import pytest

from setl.node.http.connections import Limits
from tests.waiting import eventually

HALF = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "
HEAD = b"POST /pause HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n"
WHOLE = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
UNREAD = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n"


def received(connection, seconds=10):
    """Everything until the node closes; fails if it does not."""
    connection.settimeout(seconds)
    found = b""
    with contextlib.suppress(ConnectionError):
        while chunk := connection.recv(65536):
            found += chunk
    return found


def test_one_address_cannot_use_up_all_connections(node, connect):
    for _ in range(520):
        with contextlib.suppress(ConnectionError):
            connect(HALF)
    assert node.get("/liveness").code == 200


def test_what_is_promised():
    limits = Limits()
    assert (limits.head_seconds, limits.body_seconds) == (10.0, 12.0)
    assert limits.of_one_address * 4 <= limits.connections == 512


@pytest.mark.parametrize("sent", [b"", b"GET", HALF, HEAD[:-2]])
def test_a_head_that_does_not_come_whole(node, connect, sent):
    node.limits = Limits(head_seconds=0.2)
    assert received(connect(sent)) == b""


@pytest.mark.parametrize("sent", [HEAD, HEAD + b"{"])
def test_a_body_that_does_not_come_whole(node, connect, sent):
    node.limits = Limits(body_seconds=0.2)
    assert b"200 OK" not in received(connect(sent))


def test_a_body_that_nobody_reads(node, connect):
    node.limits = Limits(body_seconds=2)  # an answer needs some of it, on a slow machine
    assert b"200 OK" in received(connect(UNREAD))


@pytest.mark.parametrize("begin", [HALF, WHOLE + HALF, UNREAD])
def test_bytes_that_drip_renew_nothing(node, connect, begin):
    node.limits = Limits(head_seconds=0.5, body_seconds=0.5)
    connection = connect(begin)
    over = threading.Event()

    def drip():
        with contextlib.suppress(OSError):
            while not over.wait(0.05):
                connection.sendall(b"a")

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        received(connection)
    finally:
        over.set()
        thread.join()


def test_a_second_request_has_a_time_of_its_own(node, connect):
    node.limits = Limits(head_seconds=2.0)
    connection = connect(WHOLE)
    until = time.monotonic() + 4.5
    answers = 0
    connection.settimeout(20)
    while time.monotonic() < until:
        while b"}" not in (came := connection.recv(65536)):
            assert came, f"closed after {answers} answers"
        answers += 1
        connection.sendall(WHOLE)
    assert answers > 3


def test_an_answer_that_takes_its_time_is_waited_for(node, connect):
    node.limits = Limits(head_seconds=1, body_seconds=1)
    reply = node.ask("POST", "/switchover?wait=2.5", {"pipeline": "shop/there"}, token=node.token)
    assert reply.code == 202


def test_an_answer_that_nobody_takes(node, connect):
    """Else it fills the node's memory for as long as the connection stays open."""
    node.limits = Limits(head_seconds=600, stalled_seconds=0.3)
    node.figures.clear()
    for n in range(300):
        node.operator.channels.put(f"c{n}", {"pipelines": [{"name": "p" * 200}] * 20})
    node.look()
    connection = connect()
    connection.setsockopt(1, 8, 4096)  # SO_RCVBUF
    connection.sendall(WHOLE)
    assert b"200 OK" in connection.recv(4096)  # from here on the node knows of it
    state = node.server._listeners[0]._server.server_state
    assert state.connections
    connection.sendall(WHOLE.replace(b"/health", b"/status") * 20)
    eventually(lambda: not state.connections)


def test_too_many_of_one_address(node, connect):
    node.limits = Limits(of_one_address=3)
    stored = [connect(HALF) for _ in range(3)]
    assert received(connect()).startswith(b"HTTP/1.1 429 ")
    assert node.get("/health").code == 200
    stored.pop().close()
    until = time.monotonic() + 10
    while True:  # the node hears of it in a moment
        again = connect(WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        if received(again).startswith(b"HTTP/1.1 200 "):
            break
        assert time.monotonic() < until


def test_too_many_of_all(node, connect):
    node.limits = Limits(connections=2)
    stored = [connect(HALF, come_from=f"127.0.0.{n}") for n in (3, 4)]
    assert received(connect()).startswith(b"HTTP/1.1 503 ")
    assert stored
